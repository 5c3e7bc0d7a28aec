package mooringapi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Grant writes on an origin claim that the namespaces which this selector
// matches may mirror it, read-write or read-only. It replaces such a grant that
// the claim has. The claim is not sent anywhere; where the selector would let in
// nobody, it is left as it was and the error says why.
func (n Names) Grant(claim *corev1.PersistentVolumeClaim, selector string) error {
	return grantTo(claim, n.ReadWriteGrant(), selector)
}

// GrantReadOnly is Grant for namespaces that may mirror the claim read-only. A
// namespace that both grants match may do what the greater one says.
func (n Names) GrantReadOnly(claim *corev1.PersistentVolumeClaim, selector string) error {
	return grantTo(claim, n.ReadOnlyGrant(), selector)
}

// ExpireGrants writes on an origin claim when both its grants end. A part of a
// second is cut off, so that they never end later than was said.
func (n Names) ExpireGrants(claim *corev1.PersistentVolumeClaim, at time.Time) error {
	text := at.UTC().Format(time.RFC3339)
	if _, err := ParseExpiry(text); err != nil {
		return fmt.Errorf("expire grants: %w", err)
	}
	annotate(claim, n.GrantExpires(), text)
	return nil
}

// Ungrant takes both grants and their end off an origin claim. What becomes of
// its mirrors is up to their StorageClass.
func (n Names) Ungrant(claim *corev1.PersistentVolumeClaim) {
	for _, key := range []string{n.ReadWriteGrant(), n.ReadOnlyGrant(), n.GrantExpires()} {
		delete(claim.Annotations, key)
	}
}

func grantTo(claim *corev1.PersistentVolumeClaim, annotation, selector string) error {
	if _, err := ParseSelector(selector); err != nil {
		return fmt.Errorf("grant %s: selector %w", annotation, err)
	}
	annotate(claim, annotation, selector)
	return nil
}

func annotate(claim *corev1.PersistentVolumeClaim, key, value string) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[key] = value
}

// MaxSelectorBytes is how long the text of a grant may be: enough for the names of
// a thousand namespaces. What is longer lets in nobody, since everybody's memory
// would have to hold it.
const MaxSelectorBytes = 16384

var (
	errLong     = fmt.Errorf("is longer than %d bytes; share by a label that the namespaces have in common", MaxSelectorBytes)
	errBlank    = errors.New("is blank; write a selector, or kubernetes.io/metadata.name for every namespace")
	errNegative = errors.New("only says which labels a namespace must not have, or compares numbers, so a namespace " +
		"with no labels at all could match; add a label that it must have (key, key=value or key in (…))")
)

// ParseSelector reads the text of a grant as the controller does. It accepts
// what kubectl's -l accepts (k8s.io/apimachinery, labels.Parse), but for
// selectors that have no positive requirement: an empty selector matches
// everything in Kubernetes, and "!key" matches whoever nobody thought of; and but
// for those longer than MaxSelectorBytes. The error begins with the quoted text.
func ParseSelector(text string) (labels.Selector, error) {
	if len(text) > MaxSelectorBytes {
		return nil, fmt.Errorf("%s %w", quote(text), errLong)
	}
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("%s %w", quote(text), errBlank)
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a label selector (%s)", quote(text), quote(err.Error()))
	}
	requirements, selectable := selector.Requirements()
	if !selectable || len(requirements) == 0 {
		return nil, fmt.Errorf("%s %w", quote(text), errBlank)
	}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In, selection.Exists:
			return selector, nil
		}
	}
	return nil, fmt.Errorf("%s %w", quote(text), errNegative)
}

// longestTime is longer than every RFC 3339 time with nanoseconds and an offset.
const longestTime = 64

// ParseExpiry reads the time at which grants end as the controller does. The
// error begins with the quoted text.
func ParseExpiry(text string) (time.Time, error) {
	expires, err := time.Parse(time.RFC3339, text)
	if err != nil || expires.IsZero() || len(text) > longestTime {
		return time.Time{}, fmt.Errorf("%s is not an RFC 3339 time such as 2027-01-31T18:00:00Z", quote(text))
	}
	return expires, nil
}

// quote returns user-controlled text fit for an event: quoted, so that it
// cannot forge lines or move the cursor, and short.
func quote(text string) string {
	const most = 200
	runes := []rune(text)
	if len(runes) > most {
		return fmt.Sprintf("%+q (cut)", string(runes[:most]))
	}
	return fmt.Sprintf("%+q", text)
}
