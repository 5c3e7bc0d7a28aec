package grant_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-k8s/mooring/internal/grant"
)

func TestCompare(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	namespaces := map[string]map[string]string{
		"c": {"team": "x"}, "b": {"team": "x", "guest": "yes"}, "a": {"team": "y"}, "none": {}, "unknown": nil,
	}
	rw, ro, expires := names.ReadWriteGrant(), names.ReadOnlyGrant(), names.GrantExpires()
	for _, tc := range []struct {
		name          string
		before, after map[string]string
		want          []grant.Change
	}{
		{"nothing", nil, nil, nil},
		{"first grant", nil, map[string]string{rw: "team=x"}, []grant.Change{{"b", grant.None, grant.ReadWrite}, {"c", grant.None, grant.ReadWrite}}},
		{"another text of the same meaning", map[string]string{rw: "team=x"}, map[string]string{rw: "team in (x)"}, nil},
		{"narrowed", map[string]string{rw: "team"}, map[string]string{rw: "team=x"}, []grant.Change{{"a", grant.ReadWrite, grant.None}}},
		{"read-only besides", map[string]string{rw: "guest"}, map[string]string{rw: "guest", ro: "team"},
			[]grant.Change{{"a", grant.None, grant.ReadOnly}, {"c", grant.None, grant.ReadOnly}}},
		{"read-only instead", map[string]string{rw: "guest"}, map[string]string{ro: "guest"}, []grant.Change{{"b", grant.ReadWrite, grant.ReadOnly}}},
		{"broken", map[string]string{rw: "guest"}, map[string]string{rw: "((("}, []grant.Change{{"b", grant.ReadWrite, grant.None}}},
		{"expired", map[string]string{rw: "guest"}, map[string]string{rw: "guest", expires: "2026-01-02T03:04:05Z"}, []grant.Change{{"b", grant.ReadWrite, grant.None}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := grant.Compare(grant.Parse(names, tc.before), grant.Parse(names, tc.after), namespaces, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
