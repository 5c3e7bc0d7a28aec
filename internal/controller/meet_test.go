package controller

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// A claim that the cache shows as waiting meets a volume of the name that its
// mirror volume has: its own, which somebody has edited, is none of its
// business, and a stranger is refused.
func TestMeetEdited(t *testing.T) {
	for _, tc := range []struct {
		name    string
		edit    func(*corev1.PersistentVolume)
		refused bool
	}{
		{"as it was made", func(*corev1.PersistentVolume) {}, false},
		{"its maker removed", func(v *corev1.PersistentVolume) { delete(v.Annotations, mooringapi.ProvisionedBy) }, false},
		{"its maker changed", func(v *corev1.PersistentVolume) { v.Annotations[mooringapi.ProvisionedBy] = "nfs.csi.k8s.io" }, false},
		{"its claim changed", func(v *corev1.PersistentVolume) { v.Annotations[names.MirrorClaim()] = "elsewhere/other" }, false},
		{"its record removed", func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		{"a stranger", func(v *corev1.PersistentVolume) { v.Annotations, v.Labels = nil, nil }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			origin, data := shared()
			claim, volume := mirrorOf(1, origin, data)
			claim.Status.Phase = corev1.ClaimPending
			made := volume.DeepCopy()
			tc.edit(volume)
			say, recorder := heard(t, cluster(t, origin, data, claim, volume))
			r := &claimReconciler{options: Options{Names: names}, say: say}
			_, err := r.meet(context.Background(), mirror.Facts{Names: names, Claim: claim}, mirror.Decision{Verdict: mirror.Allow, Volume: made}, volume)
			if err != nil {
				t.Fatal(err)
			}
			if told := said(recorder); (len(told) > 0) != tc.refused {
				t.Errorf("told %q, want it refused: %v", told, tc.refused)
			}
		})
	}
}
