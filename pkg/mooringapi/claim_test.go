package mooringapi_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

func TestNewMirrorClaim(t *testing.T) {
	var names mooringapi.Names
	origin := types.NamespacedName{Namespace: "team-a", Name: "data"}
	for _, tc := range []struct {
		name      string
		options   mooringapi.MirrorOptions
		class     string
		mode      corev1.PersistentVolumeAccessMode
		reference bool
	}{
		{"nothing more", mooringapi.MirrorOptions{}, "pvc-mirror", corev1.ReadWriteMany, false},
		{"another class", mooringapi.MirrorOptions{Class: "other"}, "other", corev1.ReadWriteMany, false},
		{"read-only", mooringapi.MirrorOptions{ReadOnly: true}, "pvc-mirror", corev1.ReadOnlyMany, false},
		{"by reference", mooringapi.MirrorOptions{ByReference: true}, "pvc-mirror", corev1.ReadWriteMany, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim, err := names.NewMirrorClaim(origin, "team-b", "inputs", tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if claim.Namespace != "team-b" || claim.Name != "inputs" || claim.Kind != "PersistentVolumeClaim" || claim.APIVersion != "v1" ||
				*claim.Spec.StorageClassName != tc.class || len(claim.Spec.AccessModes) != 1 || claim.Spec.AccessModes[0] != tc.mode ||
				claim.Spec.Resources.Requests.Storage().Value() != 1 {
				t.Errorf("unexpected claim %+v", claim)
			}
			ref, annotation := claim.Spec.DataSourceRef, claim.Annotations[names.Origin()]
			if tc.reference {
				if annotation != "" || ref == nil || ref.APIGroup != nil || ref.Kind != "PersistentVolumeClaim" || ref.Name != "data" || *ref.Namespace != "team-a" {
					t.Errorf("annotation %q, reference %+v; want a reference to team-a/data alone", annotation, ref)
				}
			} else if ref != nil || annotation != "team-a/data" {
				t.Errorf("annotation %q, reference %+v; want the annotation alone", annotation, ref)
			}
		})
	}
}

func TestNewMirrorClaimRefuses(t *testing.T) {
	var names mooringapi.Names
	for _, tc := range []struct{ name, originNamespace, origin, namespace, claim, class, want string }{
		{"no origin namespace", "", "data", "team-b", "c", "", `mirror claim: origin namespace "": expected the name of a namespace: `},
		{"no origin name", "team-a", "", "team-b", "c", "", `mirror claim: origin name "": expected the name of a claim: `},
		{"two in one", "team-a", "a/b", "team-b", "c", "", `mirror claim: origin name "a/b": expected the name of a claim: `},
		{"namespace in capitals", "team-a", "data", "Team", "c", "", `mirror claim: namespace "Team": expected the name of a namespace: `},
		{"name with a line break", "team-a", "data", "team-b", "c\n", "", `mirror claim: name "c\n": expected the name of a claim: `},
		{"no class's name", "team-a", "data", "team-b", "c", "_", `mirror claim: class "_": expected the name of a StorageClass: `},
		{"own namespace", "team-a", "data", "team-a", "c", "", `mirror claim: namespace "team-a" is the origin's own: expected another one; use the claim "data" there directly`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim, err := names.NewMirrorClaim(types.NamespacedName{Namespace: tc.originNamespace, Name: tc.origin}, tc.namespace, tc.claim,
				mooringapi.MirrorOptions{Class: tc.class})
			if claim != nil || err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Fatalf("claim %v, error %v; want %s", claim, err, tc.want)
			}
		})
	}
}
