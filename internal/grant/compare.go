package grant

import (
	"slices"
	"strings"
	"time"
)

// Change is what a change of an origin's annotations means for one namespace.
type Change struct {
	Namespace string
	Before    Access
	After     Access
}

// Compare returns which of these namespaces, given by name with their labels,
// have another access by other terms at this time, sorted by name.
func Compare(before, after Terms, namespaces map[string]map[string]string, now time.Time) []Change {
	var changes []Change
	for name, labels := range namespaces {
		change := Change{Namespace: name, Before: before.For(labels, now).Access, After: after.For(labels, now).Access}
		if change.Before != change.After {
			changes = append(changes, change)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Namespace, b.Namespace) })
	return changes
}
