// Package picture is PURE: it draws who shares what with whom, from mirror
// claims as they were read. It groups them until a person can look at them.
package picture

import (
	"cmp"
	"slices"
	"strings"
)

// Mirror is one mirror claim.
type Mirror struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Access is ReadWrite or ReadOnly, State a state of mooring list.
	Access string `json:"access"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// Origin is a claim and the mirrors of it. Its names are empty for mirror claims
// that name none.
type Origin struct {
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name,omitempty"`
	Mirrors   []Mirror `json:"mirrors"`
}

// Graph is who shares what with whom: sorted, complete, what -o json prints.
type Graph struct {
	Origins []Origin `json:"origins"`
}

// Add adds a mirror of an origin, which is given as namespace/name.
func (g *Graph) Add(origin string, mirror Mirror) {
	namespace, name, _ := strings.Cut(origin, "/")
	at, found := slices.BinarySearchFunc(g.Origins, Origin{Namespace: namespace, Name: name}, compareOrigins)
	if !found {
		g.Origins = slices.Insert(g.Origins, at, Origin{Namespace: namespace, Name: name})
	}
	mirrors := &g.Origins[at].Mirrors
	to, _ := slices.BinarySearchFunc(*mirrors, mirror, compareMirrors)
	*mirrors = slices.Insert(*mirrors, to, mirror)
}

func compareOrigins(a, b Origin) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func compareMirrors(a, b Mirror) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
