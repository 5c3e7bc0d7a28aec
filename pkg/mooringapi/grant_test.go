package mooringapi_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const (
	needsPositive = " only says which labels a namespace must not have, or compares numbers, so a namespace with no " +
		"labels at all could match; add a label that it must have (key, key=value or key in (…))"
	isBlank = " is blank; write a selector, or kubernetes.io/metadata.name for every namespace"
)

// A selector that would let in nobody, or everybody by mistake, is not written.
func TestGrant(t *testing.T) {
	var names mooringapi.Names
	for _, tc := range []struct{ name, selector, wantError string }{
		{"one label", "team=atlas", ""},
		{"one of several values", "team in (atlas,borealis)", ""},
		{"a label that exists", "kubernetes.io/metadata.name", ""},
		{"a negative one besides", "team=atlas,!suspended", ""},
		{"empty", "", `""` + isBlank},
		{"spaces", " \t", `" \t"` + isBlank},
		{"only a negative one", "!suspended", `"!suspended"` + needsPositive},
		{"only another value", "team!=atlas", `"team!=atlas"` + needsPositive},
		{"only not in", "team notin (atlas)", `"team notin (atlas)"` + needsPositive},
		{"only a number", "rank>3", `"rank>3"` + needsPositive},
		{"as long as may be", "team=atlas" + strings.Repeat(" ", mooringapi.MaxSelectorBytes-10), ""},
		{"longer", "team=atlas" + strings.Repeat(" ", mooringapi.MaxSelectorBytes-9), `(cut) is longer than 16384 bytes; share by a label that the namespaces have in common`},
		{"no selector", "((", `"((" is not a label selector ("found '(', expected: !, identifier, or 'end of string'")`},
		{"long, and with a line break", strings.Repeat("a\n", 101), `is not a label selector`},
	} {
		for grant, write := range map[string]func(*corev1.PersistentVolumeClaim, string) error{
			names.ReadWriteGrant(): names.Grant, names.ReadOnlyGrant(): names.GrantReadOnly,
		} {
			t.Run(tc.name+" "+grant, func(t *testing.T) {
				claim := &corev1.PersistentVolumeClaim{}
				claim.Annotations = map[string]string{"own": "kept"}
				before := maps.Clone(claim.Annotations)
				err := write(claim, tc.selector)
				if tc.wantError == "" {
					if before[grant] = tc.selector; err != nil || !maps.Equal(claim.Annotations, before) {
						t.Fatalf("annotations %v, error %v; want %v", claim.Annotations, err, before)
					}
					return
				}
				head := "grant " + grant + ": selector "
				if err == nil || !strings.HasPrefix(err.Error(), head) || !strings.Contains(err.Error(), tc.wantError) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %v; want %s%s", err, head, tc.wantError)
				}
				if !maps.Equal(claim.Annotations, before) {
					t.Errorf("a refused grant changed the claim: %v", claim.Annotations)
				}
			})
		}
	}
}

func TestExpireGrantsAndUngrant(t *testing.T) {
	var names mooringapi.Names
	claim := &corev1.PersistentVolumeClaim{}
	names.Ungrant(claim) // without annotations too
	at := time.Date(2027, 1, 31, 19, 0, 0, 999, time.FixedZone("", 3600))
	if err := names.ExpireGrants(claim, at); err != nil || claim.Annotations[names.GrantExpires()] != "2027-01-31T18:00:00Z" {
		t.Fatalf("annotations %v, error %v", claim.Annotations, err)
	}
	for when, want := range map[time.Time]string{
		{}:                             `expire grants: "0001-01-01T00:00:00Z" is not an RFC 3339 time such as 2027-01-31T18:00:00Z`,
		at.AddDate(10_000, 0, 0).UTC(): `expire grants: "12027-01-31T18:00:00Z" is not an RFC 3339 time such as 2027-01-31T18:00:00Z`,
	} {
		if err := names.ExpireGrants(claim, when); err == nil || err.Error() != want {
			t.Errorf("%s: error %v; want %s", when, err, want)
		}
	}
	if err := names.Grant(claim, "team=atlas"); err != nil {
		t.Fatal(err)
	}
	claim.Annotations["own"] = "kept"
	names.Ungrant(claim)
	if want := map[string]string{"own": "kept"}; !maps.Equal(claim.Annotations, want) {
		t.Errorf("after Ungrant: %v; want %v", claim.Annotations, want)
	}
}
