package doctor

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/inventory"
)

// right is one thing that a controller must be allowed to do everywhere.
type right struct{ verb, group, resource, subresource string }

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	return text
}

var needed = []right{
	{"list", "", "persistentvolumeclaims", ""}, {"watch", "", "persistentvolumeclaims", ""}, {"patch", "", "persistentvolumeclaims", ""},
	{"patch", "", "persistentvolumeclaims", "status"},
	{"list", "", "persistentvolumes", ""}, {"watch", "", "persistentvolumes", ""}, {"create", "", "persistentvolumes", ""},
	{"patch", "", "persistentvolumes", ""}, {"delete", "", "persistentvolumes", ""},
	{"list", "", "namespaces", ""}, {"watch", "", "namespaces", ""},
	{"list", "storage.k8s.io", "storageclasses", ""}, {"watch", "storage.k8s.io", "storageclasses", ""},
	{"list", "storage.k8s.io", "csidrivers", ""}, {"create", "events.k8s.io", "events", ""},
}

// endsClaims is needed where a class says that claims are deleted.
var endsClaims = right{"delete", "", "persistentvolumeclaims", ""}

const accountRights = "what the controller's account may do"

// rights asks, for each controller's account, what it is not allowed to do. Who
// may not ask that learns nothing.
func (p *Patient) rights(ctx context.Context, c *inventory.Cluster) error {
	want := needed
	for _, class := range p.Classes {
		if class.Annotations[p.Names.OnRevoke()] == "Delete" {
			want = append(want[:len(want):len(want)], endsClaims)
			break
		}
	}
	for _, deployment := range p.Deployments {
		account := deployment.Spec.Template.Spec.ServiceAccountName
		user := fmt.Sprintf("system:serviceaccount:%s:%s", deployment.Namespace, account)
		for _, right := range want {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   user,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + deployment.Namespace, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: right.verb, Group: right.group, Resource: right.resource, Subresource: right.subresource,
				},
			}}
			answer, err := c.API.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) {
				p.Hidden = append(p.Hidden, accountRights)
				return nil
			}
			if err != nil {
				return fmt.Errorf("ask what %s may do: %w", user, err)
			}
			if !answer.Status.Allowed {
				p.Rights[user] = append(p.Rights[user], right.String())
			}
		}
	}
	return nil
}
