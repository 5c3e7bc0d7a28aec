package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// showGrants tells what will stand on the claim, when it ends, and what of it may
// come as a surprise.
func (s *session) showGrants(p *prose, after *corev1.PersistentVolumeClaim, next grant.Terms, now time.Time) {
	grants := 0
	for _, key := range []string{s.Names.ReadWriteGrant(), s.Names.ReadOnlyGrant()} {
		if selector, given := after.Annotations[key]; given {
			p.hang("", "  ", "Grant: "+key+": "+selector)
			grants++
		}
	}
	if grants == 0 {
		return
	}
	p.hang("", "  ", "Whoever may label namespaces can add to those it lets in, now and later.")
	switch until := next.Expires(); {
	case until.IsZero():
	case until.After(now):
		p.add("", "It ends at "+moment(&until)+".")
	default:
		p.warn("it ended at " + moment(&until) + " and lets nobody in: give a later --expires, or end it with mooring unshare")
	}
	for _, problem := range next.Problems() {
		p.warn(problem.Error())
	}
	if mirror.Origin(s.Names, after).Name != "" || inventory.ConditionOf(s.Names, after) != nil {
		p.warn("this claim is itself a mirror, and a mirror is never mirrored: the grant belongs on its origin")
	}
}

// printChanges tells people who gains and who loses, by name.
func printChanges(p *prose, changes []grant.Change) {
	groups := []struct {
		title string
		is    func(grant.Change) bool
	}{
		{"Gain read-write access", func(c grant.Change) bool { return c.After == grant.ReadWrite && c.Before == grant.None }},
		{"Gain read-only access", func(c grant.Change) bool { return c.After == grant.ReadOnly && c.Before == grant.None }},
		{"Read-write instead of read-only", func(c grant.Change) bool { return c.After == grant.ReadWrite && c.Before == grant.ReadOnly }},
		{"Read-only instead of read-write", func(c grant.Change) bool { return c.After == grant.ReadOnly && c.Before == grant.ReadWrite }},
		{"Lose access", func(c grant.Change) bool { return c.After == grant.None }},
	}
	if len(changes) == 0 {
		p.add("", "No namespace that exists now gains or loses access.")
	}
	for _, group := range groups {
		var names []string
		for _, change := range changes {
			if group.is(change) {
				names = append(names, change.Namespace)
			}
		}
		if len(names) > 0 {
			p.hang("", "  ", fmt.Sprintf("%s, %s: %s", group.title, namespaceCount(len(names)), strings.Join(names, ", ")))
		}
	}
}

func (p *prose) warn(text string) { p.hang("", "  ", "warning: "+text) }

func namespaceCount(n int) string {
	if n == 1 {
		return "1 namespace"
	}
	return fmt.Sprintf("%d namespaces", n)
}

// warnings tells what of the terms may not be meant.
func warnings(terms grant.Terms, namespaces map[string]map[string]string, now time.Time) []string {
	var system []string
	granted := 0
	for name, labels := range namespaces {
		if terms.For(labels, now).Access == grant.None {
			continue
		}
		granted++
		if strings.HasPrefix(name, "kube-") || name == "default" {
			system = append(system, name)
		}
	}
	var all []string
	if granted > 0 && granted == len(namespaces) {
		all = append(all, "every namespace of the cluster has access")
	}
	if len(system) > 0 {
		slices.Sort(system)
		all = append(all, "system namespaces have access: "+strings.Join(system, ", "))
	}
	return all
}
