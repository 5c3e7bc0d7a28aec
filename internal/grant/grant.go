// Package grant decides which namespaces the owner of an origin claim has let
// in. It is pure: no client, no clock, no log.
//
// A grant is a label selector in an annotation of the origin claim, matched
// against the labels of the namespace that asks. Everything that is not a
// clear yes grants nobody.
package grant

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Access is what a namespace may do with an origin's data. The zero value is
// nothing, and a greater value includes the smaller ones.
type Access int

// The degrees of access.
const (
	None Access = iota
	ReadOnly
	ReadWrite
)

// String returns the access as it stands in records, metrics and documentation.
func (a Access) String() string {
	switch a {
	case ReadOnly:
		return mooringapi.AccessReadOnly
	case ReadWrite:
		return mooringapi.AccessReadWrite
	default:
		return "None"
	}
}

// Grant is the answer for one namespace: what it may do, and by which
// annotation. The zero value grants nothing.
type Grant struct {
	Access Access
	// Annotation and Selector are the annotation that grants the access and its
	// text; both are empty when nothing is granted.
	Annotation string
	Selector   string
	// Expires is when the grant ends by itself; zero means never.
	Expires time.Time
}

// Terms are what the owner of an origin claim has written: both grants and
// their end, parsed once and asked for many namespaces. The zero value grants
// nobody.
type Terms struct {
	clauses []clause // greatest access first
	expires time.Time
	broken  []error
}

type clause struct {
	access     Access
	annotation string
	text       string
	selector   labels.Selector
}

// Parse reads the grants out of an origin claim's annotations. What it cannot
// understand grants nobody and is listed by Problems.
func Parse(names mooringapi.Names, annotations map[string]string) Terms {
	var terms Terms
	expiryKnown := terms.parseExpiry(names.GrantExpires(), annotations)
	terms.parseClause(ReadWrite, names.ReadWriteGrant(), annotations)
	terms.parseClause(ReadOnly, names.ReadOnlyGrant(), annotations)
	if !expiryKnown {
		terms.clauses = nil // an end that cannot be read may have passed
	}
	return terms
}

// Evaluate returns what a namespace with these labels may do at this time. It
// is Parse and For in one.
func Evaluate(names mooringapi.Names, annotations, namespaceLabels map[string]string, now time.Time) Grant {
	return Parse(names, annotations).For(namespaceLabels, now)
}

// For returns what a namespace with these labels may do at this time: the
// greatest access that any grant gives it.
func (t Terms) For(namespaceLabels map[string]string, now time.Time) Grant {
	if !t.expires.IsZero() && !now.Before(t.expires) {
		return Grant{}
	}
	for _, c := range t.clauses {
		if c.selector.Matches(labels.Set(namespaceLabels)) {
			return Grant{Access: c.access, Annotation: c.annotation, Selector: c.text, Expires: t.expires}
		}
	}
	return Grant{}
}

// Expires returns when the grants end; zero where nothing is granted or there is
// no end.
func (t Terms) Expires() time.Time {
	if len(t.clauses) == 0 {
		return time.Time{}
	}
	return t.expires
}

// Problems returns what is wrong with the annotations, a sentence each, for the
// origin's owner. The namespace that asks is never told.
func (t Terms) Problems() []error { return t.broken }

// parseExpiry reports whether it is known when the grants end: never, where
// nothing is written, or at a time that can be read.
func (t *Terms) parseExpiry(annotation string, annotations map[string]string) bool {
	text, present := annotations[annotation]
	if !present {
		return true
	}
	expires, err := mooringapi.ParseExpiry(text)
	if err != nil {
		t.broken = append(t.broken, fmt.Errorf("annotation %s: %w; until it is mended nobody is granted anything", annotation, err))
		return false
	}
	t.expires = expires
	return true
}

func (t *Terms) parseClause(access Access, annotation string, annotations map[string]string) {
	text, present := annotations[annotation]
	if !present {
		return
	}
	selector, err := mooringapi.ParseSelector(text)
	if err != nil {
		t.broken = append(t.broken, fmt.Errorf("annotation %s: %w; it grants nobody", annotation, err))
		return
	}
	t.clauses = append(t.clauses, clause{access: access, annotation: annotation, text: text, selector: selector})
}
