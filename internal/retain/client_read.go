package retain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// Version implements Reader.
func (c *Client) Version(ctx context.Context) (string, error) {
	var info version.Info
	if err := c.get(ctx, "/version", &info); err != nil {
		return "", err
	}
	if info.GitVersion == "" {
		return "", errors.New("GET /version: the answer names no version")
	}
	return info.GitVersion, nil
}

// Namespace implements Reader.
func (c *Client) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	var ns corev1.Namespace
	if err := c.get(ctx, "/api/v1/namespaces/"+name, &ns); err != nil {
		return nil, err
	}
	if ns.Name != name || ns.UID == "" {
		return nil, fmt.Errorf("GET namespace %s: the answer is another object", name)
	}
	return &ns, nil
}

// Volume implements Reader.
func (c *Client) Volume(ctx context.Context, name string) (map[string]any, error) {
	var volume map[string]any
	err := c.get(ctx, volumesPath+"/"+name, &volume)
	if saysAbsent(err, "persistentvolumes", name) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if volume["kind"] != "PersistentVolume" || child(volume, "metadata")["name"] != name || liveUID(volume) == "" {
		return nil, fmt.Errorf("GET volume %s: the answer is another object", name)
	}
	return volume, nil
}

// Claim implements Reader.
func (c *Client) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	var claim corev1.PersistentVolumeClaim
	err := c.get(ctx, "/api/v1/namespaces/"+namespace+"/persistentvolumeclaims/"+name, &claim)
	if saysAbsent(err, "persistentvolumeclaims", name) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if claim.Name != name || claim.Namespace != namespace || claim.UID == "" {
		return nil, fmt.Errorf("GET claim %s/%s: the answer is another object", namespace, name)
	}
	return &claim, nil
}

// saysAbsent says whether the API server itself said that this very object is
// not there. Anybody else's 404 says nothing.
func saysAbsent(err error, resource, name string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	s := status.Status()
	return s.Code == http.StatusNotFound && s.Reason == metav1.StatusReasonNotFound &&
		s.Details != nil && s.Details.Kind == resource && s.Details.Name == name
}

const (
	pageSize = "500"
	// maxLists is how often a list is begun anew whose continue token expired.
	maxLists = 3
)

// Volumes implements Reader.
func (c *Client) Volumes(ctx context.Context, visit func(*corev1.PersistentVolume)) error {
	var err error
	for range maxLists {
		var all []*corev1.PersistentVolume
		all, err = c.list(ctx)
		if statusCode(err) == http.StatusGone {
			continue // etcd compacted the list's revision while it was read
		}
		if err != nil {
			return err
		}
		for _, volume := range all {
			visit(volume)
		}
		return nil
	}
	return err
}

func (c *Client) list(ctx context.Context) ([]*corev1.PersistentVolume, error) {
	query := url.Values{"limit": {pageSize}}
	var all []*corev1.PersistentVolume
	for {
		var page corev1.PersistentVolumeList
		if err := c.do(ctx, request{method: http.MethodGet, path: volumesPath, query: query, isPage: true}, &page); err != nil {
			return nil, err
		}
		if page.Kind != "PersistentVolumeList" {
			return nil, errors.New("LIST volumes: the answer is no list of volumes")
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
		if page.Continue == "" {
			return all, nil
		}
		query.Set("continue", page.Continue)
	}
}

// WhoAmI implements Reviewer.
func (c *Client) WhoAmI(ctx context.Context) (receipt.Caller, error) {
	review := authenticationv1.SelfSubjectReview{}
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "SelfSubjectReview"
	var answer authenticationv1.SelfSubjectReview
	if err := c.post(ctx, whoAmIPath, nil, review, &answer); err != nil {
		return receipt.Caller{}, err
	}
	user := answer.Status.UserInfo
	if user.Username == "" {
		return receipt.Caller{}, errors.New("SelfSubjectReview: the answer names no user")
	}
	return receipt.Caller{Username: user.Username, UID: user.UID, Groups: user.Groups}, nil
}

// May implements Reviewer.
func (c *Client) May(ctx context.Context, right Right) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right.Verb, Resource: right.Resource, Subresource: right.Subresource, Name: right.Name,
		},
	}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	// A no must be said: a field that is not there is not false.
	var answer struct {
		Kind   string
		Status struct {
			Allowed         *bool
			EvaluationError string
		}
	}
	if err := c.post(ctx, reviewsPath+"selfsubjectaccessreviews", nil, review, &answer); err != nil {
		return false, err
	}
	allowed := answer.Status.Allowed
	if answer.Kind != review.Kind || allowed == nil {
		return false, fmt.Errorf("may I %s: the answer is another object", right)
	}
	if answer.Status.EvaluationError != "" && !*allowed {
		return false, fmt.Errorf("may I %s: the server could not decide: %s", right, answer.Status.EvaluationError)
	}
	return *allowed, nil
}

// noNamespace is the namespace in whose name the rules are asked for: rights
// that a RoleBinding gives in a namespace do not reach volumes, and this one
// does not exist.
const noNamespace = "mooring-asks-in-no-namespace"

// Rules implements Reviewer. The list is not whole where an authorizer cannot
// enumerate its rules, such as a webhook.
func (c *Client) Rules(ctx context.Context) ([]Right, bool, error) {
	review := authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: noNamespace}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectRulesReview"
	var answer authorizationv1.SelfSubjectRulesReview
	if err := c.post(ctx, reviewsPath+"selfsubjectrulesreviews", nil, review, &answer); err != nil {
		return nil, false, err
	}
	// An identity that may ask has rules; without any the list is not whole.
	whole := !answer.Status.Incomplete && answer.Status.EvaluationError == "" && len(answer.Status.ResourceRules) > 0
	if answer.Kind != review.Kind {
		return nil, false, errors.New("SelfSubjectRulesReview: the answer is another object")
	}
	var rights []Right
	for _, rule := range answer.Status.ResourceRules {
		rights = append(rights, rightsOf(rule)...)
	}
	return rights, whole, nil
}

// DryRunCreate implements Creator.
func (c *Client) DryRunCreate(ctx context.Context, volume map[string]any) (map[string]any, error) {
	return c.createVolume(ctx, volume, url.Values{"dryRun": {metav1.DryRunAll}})
}

// CreateVolume implements Creator.
func (c *Client) CreateVolume(ctx context.Context, volume map[string]any) (map[string]any, error) {
	return c.createVolume(ctx, volume, url.Values{})
}

func (c *Client) createVolume(ctx context.Context, volume map[string]any, query url.Values) (map[string]any, error) {
	query.Set("fieldManager", "mooring")
	query.Set("fieldValidation", metav1.FieldValidationStrict)
	var made map[string]any
	if err := c.post(ctx, volumesPath, query, volume, &made); err != nil {
		return nil, err
	}
	return made, nil
}
