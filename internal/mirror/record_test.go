package mirror_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// made returns the base case's claim and the volume that was made for it.
func made() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	facts := base()
	volume := mirror.Decide(facts).Volume
	volume.Status.Phase = corev1.VolumeBound
	facts.Claim.Spec.VolumeName = volume.Name
	return facts.Claim, volume
}

func TestRecordOf(t *testing.T) {
	_, volume := made()
	want := mirror.Record{Claim: key("tenant-1", "drive"), ClaimUID: askUID, Origin: key("drives", "mydrive"),
		OriginVolume: "pvc-origin", OriginVolumeUID: "cccccccc-0000-4000-8000-000000000003"}
	if got := mirror.RecordOf(names, volume); got != want || !got.IsMirror() {
		t.Errorf("got %v, want %v", got, want)
	}
	other, err := mooringapi.NewNames("mirror.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for name, record := range map[string]mirror.Record{
		"another provisioner name's": mirror.RecordOf(other, volume),
		"a volume without record":    mirror.RecordOf(names, originVolume()),
		"an empty volume":            mirror.RecordOf(names, &corev1.PersistentVolume{}),
	} {
		if record != (mirror.Record{}) || record.IsMirror() {
			t.Errorf("%s: got %v, want nothing", name, record)
		}
	}
	volume.Annotations[names.MirrorClaim()] = "no slash"
	if got := mirror.RecordOf(names, volume); !got.IsMirror() || got.Claim.Name != "" {
		t.Errorf("a damaged record reads %v: want a mirror of no claim", got)
	}
}

func TestIsMirrorOf(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		want   bool
	}{
		{"as it was made", func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, true},
		{"after the binder has seen it", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef.ResourceVersion = "7"
			v.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
		}, true},
		{"another name", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Name = "pvc-x" }, false},
		{"another claim's UID", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.UID = "x" }, false},
		{"no record", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			delete(v.Annotations, names.MirrorClaimUID())
		}, false},
		{"another's record", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Annotations[names.MirrorClaimUID()] = "x"
		}, false},
		{"made by a driver", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Annotations[mooringapi.ProvisionedBy] = "nfs.csi.k8s.io"
		}, false},
		{"made by nobody", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			delete(v.Annotations, mooringapi.ProvisionedBy)
		}, false},
		{"no annotations", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		{"claimRef cleared", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, false},
		{"claimRef without UID", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }, false},
		{"claimRef with another UID", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" }, false},
		{"claimRef in another namespace", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "x" }, false},
		{"claimRef with another name", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.Name = "x" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim, volume := made()
			tc.change(claim, volume)
			if got := mirror.IsMirrorOf(names, volume, claim); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// A leftover's row says why it is one; a volume that serves its claim says
// nothing.
func TestLeftover(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		why    string
	}{
		{"bound", func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, ""},
		{"not bound yet", func(c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			c.Spec.VolumeName, v.Status.Phase = "", corev1.VolumePending
		}, ""},
		{"just made", func(c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			c.Spec.VolumeName, v.Status.Phase = "", ""
		}, ""},
		{"replaced", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.UID = "x" }, "replaced"},
		{"claimRef cleared", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, "cleared"},
		{"claimRef without UID", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }, "cleared"},
		{"claimRef with another UID", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" }, "another claim"},
		{"claimRef in another namespace", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "x" }, "another claim"},
		{"claimRef with another name", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.Name = "x" }, "another claim"},
		{"claim bound elsewhere", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "x" }, "another volume"},
		{"available", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeAvailable
		}, "Available"},
		// The binder turns these back into Bound, and nobody else can take them.
		{"released by mistake", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeReleased
		}, ""},
		{"failed", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeFailed
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim, volume := made()
			tc.change(claim, volume)
			got := mirror.Leftover(names, volume, claim)
			if (got == "") != (tc.why == "") || !strings.Contains(got, tc.why) {
				t.Errorf("got %q, want %q", got, tc.why)
			}
		})
	}
	_, volume := made()
	if got := mirror.Leftover(names, volume, nil); got != "its claim is gone" {
		t.Errorf("without claim: got %q", got)
	}
}
