package mirror_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// naming returns a claim with a reference and an annotation; "" for none.
func naming(namespace, name, annotation string) *corev1.PersistentVolumeClaim {
	claim := asking()
	claim.Spec.DataSourceRef = nil
	if name != "" {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: name, Namespace: ptr(namespace)}
	}
	if annotation != "" {
		claim.Annotations = map[string]string{names.Origin(): annotation}
	}
	return claim
}

func TestOrigins(t *testing.T) {
	snapshot := naming("a", "b", "")
	snapshot.Spec.DataSourceRef.Kind = "VolumeSnapshot"
	for _, tc := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		one   types.NamespacedName
		all   []types.NamespacedName
		asks  bool
	}{
		{"neither", naming("", "", ""), types.NamespacedName{}, nil, false},
		{"reference", naming("a", "b", ""), key("a", "b"), []types.NamespacedName{key("a", "b")}, false},
		{"annotation", naming("", "", "a/b"), key("a", "b"), []types.NamespacedName{key("a", "b")}, true},
		{"both, equal", naming("a", "b", "a/b"), key("a", "b"), []types.NamespacedName{key("a", "b")}, true},
		{"both, different", naming("a", "b", "c/d"), types.NamespacedName{}, []types.NamespacedName{key("a", "b"), key("c", "d")}, true},
		{"a good reference and a bad annotation", naming("a", "b", "c"), types.NamespacedName{}, []types.NamespacedName{key("a", "b")}, true},
		{"a bad reference and a good annotation", naming("a", "b_", "c/d"), types.NamespacedName{}, []types.NamespacedName{key("c", "d")}, true},
		{"the own namespace", naming("tenant-1", "b", ""), types.NamespacedName{}, []types.NamespacedName{key("tenant-1", "b")}, false},
		{"a snapshot", snapshot, types.NamespacedName{}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := mirror.Origin(names, tc.claim); got != tc.one {
				t.Errorf("Origin is %v, want %v", got, tc.one)
			}
			if diff := cmp.Diff(tc.all, mirror.Origins(names, tc.claim)); diff != "" {
				t.Errorf("Origins (-want +got)\n%s", diff)
			}
			if got := mirror.AsksForMirror(names, tc.claim); got != tc.asks {
				t.Errorf("AsksForMirror is %v, want %v", got, tc.asks)
			}
		})
	}
}

// FuzzReference holds what must be true of every reference: no panic, one
// answer, and whatever is understood is a name that a claim can have.
func FuzzReference(f *testing.F) {
	for _, seed := range []string{"a/b", "a", "/", "a/", "/b", "a/b/c", "A/b", "a/B", " a/b", "a/b\n", "a.b/c", "../..", "a/..", "\x00/\xff", "drives/mydrive"} {
		f.Add(true, seed, false, "", "", "", "")
		f.Add(false, "", true, seed, seed, "PersistentVolumeClaim", "")
		f.Add(true, seed, true, "drives", "mydrive", "PersistentVolumeClaim", "")
		f.Add(true, "drives/mydrive", true, "drives", seed, "VolumeSnapshot", "snapshot.storage.k8s.io")
	}
	f.Fuzz(func(t *testing.T, annotated bool, annotation string, referenced bool, namespace, name, kind, group string) {
		claim := naming("", "", "")
		if annotated {
			claim.Annotations = map[string]string{names.Origin(): annotation}
		}
		if referenced {
			claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: kind, Name: name, Namespace: &namespace, APIGroup: &group}
		}
		one, all := mirror.Origin(names, claim), mirror.Origins(names, claim)
		if again := mirror.Origin(names, claim); again != one {
			t.Fatalf("%v and then %v", one, again)
		}
		for _, origin := range all {
			if len(validation.IsDNS1123Label(origin.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(origin.Name)) > 0 {
				t.Fatalf("%q is no claim's name", origin)
			}
			if origin.String() != annotation && origin != key(namespace, name) {
				t.Fatalf("%v is not what was written", origin)
			}
		}
		if one.Name != "" && (len(all) != 1 || all[0] != one || one.Namespace == claim.Namespace) {
			t.Fatalf("Origin is %v, Origins are %v", one, all)
		}
		if one.Name != "" && referenced && (kind != "PersistentVolumeClaim" || group != "") {
			t.Fatalf("%v from a %s of group %q", one, kind, group)
		}
		facts := base()
		facts.Claim = claim
		got := mirror.Decide(facts)
		if (got.Verdict == mirror.Allow) != (one == key("drives", "mydrive")) {
			t.Fatalf("origin %v: %v %s", one, got.Verdict, got.Reason)
		}
		first := []mirror.Reason{mirror.NoOrigin, mirror.OriginMalformed, mirror.OriginAmbiguous, mirror.OriginKindUnsupported, mirror.SameNamespace}
		if (one.Name == "") != slices.Contains(first, got.Reason) {
			t.Fatalf("origin %v: %s", one, got.Reason)
		}
	})
}
