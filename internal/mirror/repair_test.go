package mirror_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// kept is the mirror of base, as it was made: every case is this one and one
// change.
func kept(t *testing.T) mirror.Kept {
	t.Helper()
	facts := base()
	decision := mirror.Decide(facts)
	if decision.Verdict != mirror.Allow {
		t.Fatal(decision.Message)
	}
	return mirror.Kept{Names: names, Volume: decision.Volume, Claim: facts.Claim, Origin: facts.OriginVolume, Grant: decision.Grant}
}

// put returns what a repair would make of the volume, and what it names.
func put(volume *corev1.PersistentVolume, repair mirror.Repair) *corev1.PersistentVolume {
	for key, value := range repair.Annotations {
		if text, isText := value.(string); isText {
			set(&volume.Annotations, key, text)
		} else {
			delete(volume.Annotations, key)
		}
	}
	for key, value := range repair.Labels {
		set(&volume.Labels, key, value)
	}
	for field, value := range repair.Spec {
		switch value := value.(type) {
		case corev1.PersistentVolumeReclaimPolicy:
			volume.Spec.PersistentVolumeReclaimPolicy = value
		case []corev1.PersistentVolumeAccessMode:
			volume.Spec.AccessModes = value
		case []string:
			volume.Spec.MountOptions = value
		case string:
			volume.Spec.StorageClassName = value
		default:
			panic("the test does not know field " + field)
		}
	}
	return volume
}

func set(values *map[string]string, key, value string) {
	if *values == nil {
		*values = map[string]string{}
	}
	(*values)[key] = value
}

const otherUID = "dddddddd-0000-4000-8000-000000000004"

func editing(key, value string) func(*mirror.Kept) {
	return func(k *mirror.Kept) { k.Volume.Annotations[key] = value }
}

func TestRepairOf(t *testing.T) {
	annotation := func(name string) string { return "metadata.annotations[" + name + "]" }
	label := "metadata.labels[" + names.OriginLabel() + "]"
	unknownOrigin := func(k *mirror.Kept) { k.Origin = nil }
	for _, tc := range []struct {
		name string
		edit func(*mirror.Kept)
		want []string
	}{
		{"nothing", func(*mirror.Kept) {}, nil},
		{"nothing, and the origin is not known", unknownOrigin, nil},
		{"the policy", func(k *mirror.Kept) {
			k.Volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}, []string{"spec.persistentVolumeReclaimPolicy"}},
		{"the policy, and the origin is not known", func(k *mirror.Kept) {
			unknownOrigin(k)
			k.Volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
		}, []string{"spec.persistentVolumeReclaimPolicy"}},
		{"provisioned-by", editing(mooringapi.ProvisionedBy, "nfs.csi.k8s.io"), []string{annotation(mooringapi.ProvisionedBy)}},
		{"mount options", func(k *mirror.Kept) { k.Volume.Spec.MountOptions = append(k.Volume.Spec.MountOptions, "rw") }, []string{"spec.mountOptions"}},
		{"the order of mount options", func(k *mirror.Kept) { k.Volume.Spec.MountOptions = []string{"nfsvers=4.1", "hard"} }, []string{"spec.mountOptions"}},
		{"mount options removed", func(k *mirror.Kept) { k.Volume.Spec.MountOptions = nil }, []string{"spec.mountOptions"}},
		{"access modes", func(k *mirror.Kept) {
			k.Volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		}, []string{"spec.accessModes"}},
		{"a real class", func(k *mirror.Kept) { k.Volume.Spec.StorageClassName = "pvc-mirror" }, []string{"spec.storageClassName"}},
		{"no class", func(k *mirror.Kept) { k.Volume.Spec.StorageClassName = "" }, []string{"spec.storageClassName"}},
		{"the mirror claim", editing(names.MirrorClaim(), "tenant-1/other"), []string{annotation(names.MirrorClaim())}},
		{"whose it is, in all its parts", func(k *mirror.Kept) {
			editing(names.MirrorClaim(), "tenant-1/other")(k)
			editing(names.MirrorClaimUID(), otherUID)(k)
			editing(names.VolumeName(), k.Volume.Name)(k)
		}, []string{annotation(names.MirrorClaim()), annotation(names.MirrorClaimUID()), annotation(names.VolumeName())}},
		{"a name that it does not need", editing(names.VolumeName(), "other"), []string{annotation(names.VolumeName())}},
		{"the origin", editing(names.OriginClaim(), "drives/other"), []string{annotation(names.OriginClaim())}},
		{"the origin, by the claim's reference", func(k *mirror.Kept) {
			unknownOrigin(k)
			editing(names.OriginClaim(), "drives/other")(k)
		}, []string{annotation(names.OriginClaim())}},
		{"the label", func(k *mirror.Kept) { k.Volume.Labels = nil }, []string{label}},
		{"the origin and the label", func(k *mirror.Kept) {
			editing(names.OriginClaim(), "drives/other")(k)
			k.Volume.Labels[names.OriginLabel()] = mirror.OriginHash(key("drives", "other"))
		}, []string{annotation(names.OriginClaim()), label}},
		{"the grant", editing(names.GrantedBy(), "{"), []string{annotation(names.GrantedBy())}},
		{"the grant's access", editing(names.GrantedBy(), `{"access":"ReadOnly"}`), []string{annotation(names.GrantedBy())}},
		{"the mark of an adoption", editing(names.AdoptedAt(), "2027-01-01T00:00:00Z"), []string{annotation(names.AdoptedAt())}},
		{"two edits", func(k *mirror.Kept) {
			editing(mooringapi.ProvisionedBy, "")(k)
			k.Volume.Spec.MountOptions = []string{"soft"}
		}, []string{annotation(mooringapi.ProvisionedBy), "spec.mountOptions"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := kept(t)
			before := k.Volume.DeepCopy()
			tc.edit(&k)
			repair := mirror.RepairOf(k)
			if diff := cmp.Diff(tc.want, repair.Fields); diff != "" {
				t.Errorf("what it names (-want +got):\n%s", diff)
			}
			if repair.IsNeeded() != (tc.want != nil) {
				t.Errorf("needed: %v", repair.IsNeeded())
			}
			if diff := cmp.Diff(before, put(k.Volume, repair)); diff != "" {
				t.Errorf("not put back (-before +after):\n%s", diff)
			}
		})
	}
}

// TestRepairLeavesAlone has edits of which nothing says what was there before,
// and volumes that are as another provisioner made them.
func TestRepairLeavesAlone(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*mirror.Kept)
	}{
		{"an origin that nothing else names", func(k *mirror.Kept) {
			editing(names.OriginClaim(), "drives/other")(k)
			editing(names.OriginVolumeUID(), otherUID)(k)
			k.Origin, k.Claim.Spec.DataSourceRef = nil, nil
		}},
		{"a recorded origin volume that is another claim's by now", func(k *mirror.Kept) {
			k.Origin.Spec.ClaimRef.UID, k.Origin.Spec.ClaimRef.Name = otherUID, "other"
		}},
		{"mount options of an unknown origin", func(k *mirror.Kept) {
			k.Origin = nil
			k.Volume.Spec.MountOptions = []string{"soft"}
		}},
		{"a selector that somebody else wrote", editing(names.GrantedBy(), `{"annotation":"a","selector":"b","access":"ReadWrite"}`)},
		{"class and mount options of an adopted volume", func(k *mirror.Kept) {
			editing(names.AdoptedAt(), "2027-01-01T00:00:00Z")(k)
			k.Volume.Spec.StorageClassName, k.Volume.Spec.MountOptions = "pvc-mirror", []string{"soft"}
			k.Volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		}},
		{"the name of a restored volume", func(k *mirror.Kept) {
			editing(names.VolumeName(), k.Volume.Name)(k)
			editing(names.MirrorClaimUID(), otherUID)(k)
			k.Claim.UID, k.Claim.Spec.VolumeName = otherUID, k.Volume.Name
		}},
		{"annotations and labels of others", func(k *mirror.Kept) {
			editing("example.com/note", "theirs")(k)
			k.Volume.Labels["example.com/note"] = "theirs"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := kept(t)
			tc.edit(&k)
			if repair := mirror.RepairOf(k); repair.IsNeeded() {
				t.Errorf("it would put back %s", strings.Join(repair.Fields, ", "))
			}
		})
	}
}

// TestRepairWithoutGrant records that nothing grants any more, and who asks.
func TestRepairWithoutGrant(t *testing.T) {
	k := kept(t)
	k.Grant = grant.Grant{}
	delete(k.Volume.Annotations, names.GrantedBy())
	if got, want := mirror.RepairOf(k).Annotations[names.GrantedBy()], `{"annotation":"","selector":"","access":"ReadWrite"}`; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestJudgeKnowsEditedRecords sees an edit of the record that is about to be put
// back be no reason to say or to take anything, and one that cannot be put back
// told and not acted on.
func TestJudgeKnowsEditedRecords(t *testing.T) {
	for _, tc := range []struct {
		name         string
		edit         func(*mirror.Bound)
		wantStanding mirror.Standing
		wantReason   mirror.Reason
		wantMending  bool
	}{
		{"nothing", func(*mirror.Bound) {}, mirror.Valid, mirror.Mirrored, false},
		{"the origin", func(b *mirror.Bound) {
			b.Volume.Annotations[names.OriginClaim()] = "drives/other"
			b.Origin, b.OriginVolume = nil, nil // there is no other
		}, mirror.Unclear, mirror.RecordBroken, true},
		{"the origin and the label", func(b *mirror.Bound) {
			b.Volume.Annotations[names.OriginClaim()] = "drives/other"
			b.Volume.Labels[names.OriginLabel()] = mirror.OriginHash(key("drives", "other"))
			b.Origin, b.OriginVolume = nil, nil
		}, mirror.Unclear, mirror.RecordBroken, true},
		{"the label", func(b *mirror.Bound) { b.Volume.Labels = nil }, mirror.Valid, mirror.Mirrored, false},
		{"the origin, and its volume is gone", func(b *mirror.Bound) {
			b.Volume.Annotations[names.OriginClaim()] = "drives/other"
			b.Origin, b.OriginVolume, b.RecordedVolume = nil, nil, nil
		}, mirror.Unclear, mirror.RecordBroken, true},
		{"the origin, its volume and the claim's reference", func(b *mirror.Bound) {
			b.Volume.Annotations[names.OriginClaim()] = "drives/other"
			b.Origin, b.OriginVolume, b.RecordedVolume, b.Claim.Spec.DataSourceRef = nil, nil, nil, nil
		}, mirror.Unclear, mirror.RecordBroken, false},
		{"no record", func(b *mirror.Bound) { b.Volume.Annotations = nil }, mirror.Unclear, mirror.RecordBroken, false},
		{"another claim's record", func(b *mirror.Bound) { b.Claim.UID = otherUID }, mirror.Unclear, mirror.RecordBroken, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := base()
			volume := mirror.Decide(facts).Volume
			bound := mirror.Bound{Names: names, Now: now, Claim: facts.Claim, Volume: volume, NamespaceLabels: facts.NamespaceLabels,
				Origin: facts.Origin, OriginVolume: facts.OriginVolume, RecordedVolume: facts.OriginVolume}
			tc.edit(&bound)
			if got := mirror.Judge(bound); got.Standing != tc.wantStanding || got.Reason != tc.wantReason || got.Mending != tc.wantMending || got.Record != nil {
				t.Errorf("got %+v; want %s %q, mending %v", got, tc.wantStanding, tc.wantReason, tc.wantMending)
			}
		})
	}
}

// TestIsStripped tells a volume of Mooring's without a record from others', of
// other provisioner names among them.
func TestIsStripped(t *testing.T) {
	other, err := mooringapi.NewNames("mirror.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		edit func(*corev1.PersistentVolume)
		want bool
	}{
		{"the label is left", func(v *corev1.PersistentVolume) { v.Annotations = nil }, true},
		{"the class of nobody is left", func(v *corev1.PersistentVolume) { v.Annotations, v.Labels = nil, nil }, true},
		{"nothing is left", func(v *corev1.PersistentVolume) {
			v.Annotations, v.Labels, v.Spec.StorageClassName = nil, nil, "pvc-mirror"
		}, false},
		{"another name's", func(v *corev1.PersistentVolume) {
			v.Labels = map[string]string{other.OriginLabel(): "x"}
			v.Annotations = map[string]string{mooringapi.ProvisionedBy: other.Provisioner(), other.MirrorClaimUID(): askUID}
		}, false},
		{"another name's, its maker removed", func(v *corev1.PersistentVolume) {
			v.Labels, v.Annotations = nil, map[string]string{other.MirrorClaimUID(): askUID}
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			volume := kept(t).Volume
			tc.edit(volume)
			if got := mirror.IsStripped(names, volume); got != tc.want {
				t.Errorf("got %v", got)
			}
			if got := mirror.IsFormer(names, volume); got != tc.want {
				t.Errorf("former: got %v", got)
			}
		})
	}
}
