package recipe_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

func TestWhichDriversAreKnown(t *testing.T) {
	csi := func(driver string) *corev1.PersistentVolume {
		volume := &corev1.PersistentVolume{}
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver}
		return volume
	}
	inTree := &corev1.PersistentVolume{}
	inTree.Spec.NFS = &corev1.NFSVolumeSource{}
	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		known  bool
	}{
		"a driver of the table":           {csi("nfs.csi.k8s.io"), true},
		"a vendor's name of one":          {csi("rook-ceph.nfs.csi.ceph.com"), true},
		"in-tree NFS":                     {inTree, true},
		"another driver":                  {csi("directory.test"), false},
		"a row's name that no driver has": {csi(recipe.UnknownDriver), false},
		"another kind of volume":          {&corev1.PersistentVolume{}, false},
	} {
		if got := recipe.Knows(test.volume); got != test.known {
			t.Errorf("%s: known %t, want %t", name, got, test.known)
		}
	}
}
