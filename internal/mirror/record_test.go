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
	facts := base()
	_, volume := made()
	want := mirror.Record{Claim: key("tenant-1", "drive"), ClaimUID: askUID, Origin: key("drives", "mydrive"), OriginUID: facts.Origin.UID,
		OriginVolume: "pvc-origin", OriginVolumeUID: "cccccccc-0000-4000-8000-000000000003", ServedBy: facts.Instance}
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
		{"replaced", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.UID, c.Spec.VolumeName = "x", "" }, "replaced"},
		{"a namesake that asks for no mirror", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.UID, c.Spec.DataSourceRef = "x", nil
		}, "replaced"},
		{"restored from a backup", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.UID = "x" }, ""},
		{"claim bound elsewhere", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "x" }, "another volume"},
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

func TestHasOwnClaimRef(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		{"as it was made", func(*corev1.PersistentVolume) {}, true},
		{"after the binder has seen it", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.ResourceVersion = "7" }, true},
		{"cleared", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, false},
		{"without UID", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }, false},
		{"another UID", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" }, false},
		{"another namespace", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "x" }, false},
		{"another name", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Name = "x" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, volume := made()
			want := volume.Spec.ClaimRef.DeepCopy()
			tc.change(volume)
			if got := mirror.HasOwnClaimRef(names, volume); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if got := mirror.RecordOf(names, volume).ClaimRef(); *got != *want {
				t.Errorf("the record gives %v, want %v", got, want)
			}
		})
	}
}

// A record is believed on the volume that it was written on, and whole.
func TestDamagedRecords(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"copied to another volume":  func(v *corev1.PersistentVolume) { v.Name = "restored" },
		"no UID":                    func(v *corev1.PersistentVolume) { delete(v.Annotations, names.MirrorClaimUID()) },
		"no claim":                  func(v *corev1.PersistentVolume) { delete(v.Annotations, names.MirrorClaim()) },
		"a claim without namespace": func(v *corev1.PersistentVolume) { v.Annotations[names.MirrorClaim()] = "drive" },
		"no origin":                 func(v *corev1.PersistentVolume) { delete(v.Annotations, names.OriginClaim()) },
	} {
		t.Run(name, func(t *testing.T) {
			_, volume := made()
			change(volume)
			if got := mirror.RecordOf(names, volume); got.IsMirror() {
				t.Errorf("believed: %v", got)
			}
		})
	}
}

func TestSameOrigin(t *testing.T) {
	_, volume := made()
	record := mirror.RecordOf(names, volume)
	if !record.SameOrigin(record) {
		t.Error("a record differs from itself")
	}
	for name, change := range map[string]func(*mirror.Record){
		"another claim":              func(r *mirror.Record) { r.Origin.Name = "x" },
		"a claim of that name anew":  func(r *mirror.Record) { r.OriginUID = "x" },
		"another volume":             func(r *mirror.Record) { r.OriginVolume = "x" },
		"a volume of that name anew": func(r *mirror.Record) { r.OriginVolumeUID = "x" },
	} {
		other := record
		change(&other)
		if record.SameOrigin(other) {
			t.Errorf("%s: taken for the same origin", name)
		}
	}
}
