package mirror_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

func TestNameOf(t *testing.T) {
	const own, former = "pvc-" + askUID, "pvc-" + newClaimUID
	for _, tc := range []struct {
		name, volume, want string
	}{
		{"names no volume", "", own},
		{"names its own", own, own},
		{"names one in a mirror volume's form", former, former},
		{"names another", "data", own},
		{"names a prefix alone", "pvc-", own},
		{"more than a UID", former + "-1", own},
		{"less than a UID", former[:len(former)-1], own},
		{"in capitals", "pvc-AAAAAAAA-0000-4000-8000-00000000FFFF", own},
		{"without prefix", newClaimUID, own},
		{"behind a line", "x\n" + former, own},
		{"before a line", former + "\n", own},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim := asking()
			claim.Spec.VolumeName = tc.volume
			if got := mirror.NameOf(claim); got != tc.want {
				t.Errorf("its mirror volume is %q, want %q", got, tc.want)
			}
			if got := mirror.IsRestored(claim); got != (tc.want == former) {
				t.Errorf("restored: %v", got)
			}
		})
	}
}

func TestIsRestoredFor(t *testing.T) {
	type change = func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
	for _, tc := range []struct {
		name   string
		change change
		want   bool
	}{
		{"restored", func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, true},
		{"without reference, by annotation", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.DataSourceRef, c.Annotations = nil, map[string]string{names.Origin(): "drives/mydrive"}
		}, true},
		{"its own claim", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.UID = askUID }, false},
		{"names no volume", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "" }, false},
		{"names another volume", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.VolumeName = "pvc-" + newClaimUID
		}, false},
		{"another name", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Name = "other" }, false},
		{"another namespace", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Namespace = "tenant-2" }, false},
		{"names no origin", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.DataSourceRef = nil }, false},
		{"names another origin", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.DataSourceRef.Name = "other" }, false},
		{"wants to read only", func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}, false},
		{"no record", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		{"no access in the record", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			delete(v.Annotations, names.GrantedBy())
		}, false},
		{"a broken access in the record", func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Annotations[names.GrantedBy()] = "{"
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claim, volume := made()
			claim.UID = newClaimUID
			tc.change(claim, volume)
			if got := mirror.IsRestoredFor(names, volume, claim); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			// Until a restored claim is recorded it is bound to nothing of its own.
			if claim.UID != askUID && mirror.IsMadeFor(names, volume, claim) {
				t.Error("the volume passes for one made for this claim")
			}
			if left := mirror.Leftover(names, volume, claim); claim.UID != askUID && (left == "") != tc.want {
				t.Errorf("a leftover: %q", left)
			}
		})
	}
}

// A record goes with one volume: that of the UID in its name, or, after a
// restore, the one whose name it holds.
func TestRecordOfCopies(t *testing.T) {
	for _, tc := range []struct {
		name             string
		volume, uid, own string // "": as it was made, or none
		want             bool
	}{
		{"as it was made", "", "", "", true},
		{"after a restore", "", newClaimUID, "pvc-" + askUID, true},
		{"after a restore, its own name lost", "", newClaimUID, "", false},
		{"copied", "pvc-" + newClaimUID, "", "", false},
		{"copied after a restore", "pvc-copy", newClaimUID, "pvc-" + askUID, false},
		{"copied to the volume that the UID names", "pvc-" + newClaimUID, newClaimUID, "pvc-" + askUID, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, volume := made()
			if tc.volume != "" {
				volume.Name = tc.volume
			}
			if tc.uid != "" {
				volume.Annotations[names.MirrorClaimUID()] = tc.uid
			}
			if tc.own != "" {
				volume.Annotations[names.VolumeName()] = tc.own
			}
			if got := mirror.RecordOf(names, volume).IsMirror(); got != tc.want {
				t.Errorf("a record: %v, want %v", got, tc.want)
			}
		})
	}
}

// What happened to a mirror since it was made.
func TestRecordOfLife(t *testing.T) {
	_, volume := made()
	if record := mirror.RecordOf(names, volume); !record.RevokedAt.IsZero() || record.Adopted {
		t.Fatalf("as it was made: %+v", record)
	}
	for text, want := range map[string]time.Time{
		"2027-01-01T12:00:00Z": now, "2027-01-01T13:00:00.5+01:00": now.Add(time.Second / 2), "": {}, "yesterday": {}, "2027-01-01": {},
	} {
		volume.Annotations[names.RevokedAt()] = text
		if got := mirror.RecordOf(names, volume).RevokedAt; !got.Equal(want) {
			t.Errorf("%q: revoked at %v, want %v", text, got, want)
		}
	}
	volume.Annotations[names.AdoptedAt()] = "2027-01-01T12:00:00Z"
	if !mirror.RecordOf(names, volume).Adopted {
		t.Error("not known as adopted")
	}
}

// A claim that names a former volume, and may, gets one of that name: the same
// as it had.
func TestFormerName(t *testing.T) {
	original := mirror.Decide(base()).Volume
	restored := func(f *mirror.Facts) {
		f.Claim.UID, f.Claim.Spec.VolumeName, f.FormerName = newClaimUID, original.Name, true
	}
	facts := base()
	restored(&facts)
	got := mirror.Decide(facts)
	if got.Verdict != mirror.Allow {
		t.Fatalf("%v %s", got.Reason, got.Message)
	}
	if got.Volume.Name != original.Name || got.Volume.Annotations[names.VolumeName()] != original.Name {
		t.Errorf("it would be %s, recorded as %q", got.Volume.Name, got.Volume.Annotations[names.VolumeName()])
	}
	if now, before := got.Volume.Spec.CSI.VolumeHandle, original.Spec.CSI.VolumeHandle; now != before {
		t.Errorf("handle %s, and was %s", now, before)
	}
	if got.Volume.Spec.ClaimRef.UID != types.UID(newClaimUID) || !mirror.IsMirrorOf(names, got.Volume, facts.Claim) {
		t.Errorf("it is not this claim's: %+v", got.Volume)
	}
	for name, change := range map[string]func(*mirror.Facts){
		"the claim of that UID lives":    func(f *mirror.Facts) { f.FormerName = false },
		"a name of no mirror volume":     func(f *mirror.Facts) { f.Claim.Spec.VolumeName = "data" },
		"another name, in capitals":      func(f *mirror.Facts) { f.Claim.Spec.VolumeName = "pvc-AAAAAAAA-0000-4000-8000-000000000001" },
		"a name with something after it": func(f *mirror.Facts) { f.Claim.Spec.VolumeName += "0" },
	} {
		facts := base()
		restored(&facts)
		change(&facts)
		if got := mirror.Decide(facts); got.Verdict != mirror.Refuse || got.Reason != mirror.ClaimNamesVolume {
			t.Errorf("%s: %v %s", name, got.Verdict, got.Reason)
		}
	}
	// Nothing else gets easier.
	facts = base()
	restored(&facts)
	facts.Origin.Annotations = nil
	if got := mirror.Decide(facts); got.Reason != mirror.NotShared {
		t.Errorf("without a grant: %v %s", got.Verdict, got.Reason)
	}
}

func TestClaimRefs(t *testing.T) {
	claim, volume := made()
	for name, got := range map[string]*corev1.ObjectReference{"of the record": mirror.RecordOf(names, volume).ClaimRef(), "to the claim": mirror.RefTo(claim)} {
		if *got != *volume.Spec.ClaimRef {
			t.Errorf("the claimRef %s is %v, want %v", name, got, volume.Spec.ClaimRef)
		}
	}
}
