// Package permissions says which rights of a role an audit log shows to have been
// used, and which requests were refused for want of one.
package permissions

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Account is a ServiceAccount and what it may do.
type Account struct {
	Namespace, Name string
	// ClusterRules hold in every namespace, Rules in the account's own.
	ClusterRules, Rules []rbacv1.PolicyRule
}

// User is the name by which the API server knows the account.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// right is one verb on one resource, as one rule gives it.
type right struct {
	verb, group, resource string // the resource with its subresource
	namespace, name       string // empty: all
}

// String tells a right as it is in every installation of the same choices: what is
// named after the release is its own.
func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += ", its own"
	}
	if r.namespace != "" {
		text += ", in its namespace"
	}
	return text
}

// rights takes the rules apart. Rules that this cannot take apart, since they hold
// a wildcard or are about no resource, are an error.
func (a Account) rights() ([]right, error) {
	var all []right
	for _, of := range []struct {
		namespace string
		rules     []rbacv1.PolicyRule
	}{{"", a.ClusterRules}, {a.Namespace, a.Rules}} {
		for _, rule := range of.rules {
			if slices.Contains(slices.Concat(rule.Verbs, rule.APIGroups, rule.Resources), "*") || len(rule.NonResourceURLs) > 0 {
				return nil, fmt.Errorf("%s: cannot tell what of %v is used", a.User(), rule)
			}
			all = append(all, apart(rule, of.namespace)...)
		}
	}
	return all, nil
}

func apart(rule rbacv1.PolicyRule, namespace string) []right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []right
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all = append(all, right{verb: verb, group: group, resource: resource, namespace: namespace, name: name})
				}
			}
		}
	}
	return all
}

// covers reports whether a right is enough for a request.
func (r right) covers(event *auditv1.Event) bool {
	object := event.ObjectRef
	resource := object.Resource
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	return r.verb == event.Verb && r.group == object.APIGroup && r.resource == resource &&
		(r.namespace == "" || r.namespace == object.Namespace) && (r.name == "" || r.name == object.Name)
}

// Report is what an audit log says of an account.
type Report struct {
	// Requests is how many were made to resources.
	Requests int
	// Refused are the requests that the account may not make, Denied those that
	// admission refused, each kind of them once.
	Refused, Denied []string
	// Used and Unused are the account's rights, by whether a request needed them.
	Used, Unused []string
}

// Judge reads an audit log. Requests that name no object of the API, such as
// discovery, are every account's by Kubernetes' own roles.
func Judge(log io.Reader, account Account) (Report, error) {
	rights, err := account.rights()
	if err != nil {
		return Report{}, err
	}
	report := Report{}
	used := map[right]bool{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil { // the last line may be half written
			continue
		}
		if event.User.Username != account.User() || event.ObjectRef == nil || !isAnswered(&event) {
			continue
		}
		report.Requests++
		report.judge(&event)
		for _, right := range rights {
			if right.covers(&event) {
				used[right] = true
			}
		}
	}
	for _, right := range rights {
		if used[right] {
			report.Used = append(report.Used, right.String())
		} else {
			report.Unused = append(report.Unused, right.String())
		}
	}
	return report, lines.Err()
}

// isAnswered reports whether an event is of a request that was answered. A watch is
// when it begins, and may end with its server, which says no more then.
func isAnswered(event *auditv1.Event) bool {
	return event.Stage == auditv1.StageResponseComplete || event.Verb == "watch"
}

// judge notes a request that was refused: by authorization, which says so in an
// annotation, or by admission.
func (r *Report) judge(event *auditv1.Event) {
	switch {
	case event.Annotations["authorization.k8s.io/decision"] == "forbid":
		r.Refused = addOnce(r.Refused, told(event))
	case event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden:
		r.Denied = addOnce(r.Denied, told(event))
	}
}

// told is a request without what differs from one object to the next.
func told(event *auditv1.Event) string {
	text := event.Verb + " " + event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		text += "/" + event.ObjectRef.Subresource
	}
	if event.ResponseStatus != nil {
		_, why, _ := strings.Cut(event.ResponseStatus.Message, " is forbidden: ")
		text += ": " + why
	}
	return text
}

func addOnce(all []string, one string) []string {
	if slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}

// Shape is what an account may do, whatever its release is called: two accounts of
// one shape are what two installations with the same choices have.
func (a Account) Shape() (string, error) {
	rights, err := a.rights()
	if err != nil {
		return "", err
	}
	var all []string
	for _, right := range rights {
		all = addOnce(all, right.String())
	}
	slices.Sort(all)
	return strings.Join(all, "\n"), nil
}
