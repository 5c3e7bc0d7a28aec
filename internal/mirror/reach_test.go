package mirror_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// former returns the base case as the former provisioner leaves it: the claim
// bound to a volume of its name with the very source of the origin's, and no
// record.
func former() (mirror.Facts, *corev1.PersistentVolume) {
	facts := base()
	volume := &corev1.PersistentVolume{
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      storage("1"),
			AccessModes:                   facts.Claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              "pvc-mirror",
			PersistentVolumeSource:        *facts.OriginVolume.Spec.PersistentVolumeSource.DeepCopy(),
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "tenant-1", Name: "drive", UID: askUID},
		},
	}
	volume.Name = mirror.VolumeName(askUID)
	volume.Labels = map[string]string{"crownlabs.polito.it/mirrored-pv": "pvc-origin"}
	volume.Annotations = map[string]string{mooringapi.ProvisionedBy: names.Provisioner()}
	facts.Claim.Spec.VolumeName = volume.Name
	facts.Claim.Status.Phase = corev1.ClaimBound
	return facts, volume
}

type formerChange func(*mirror.Facts, *corev1.PersistentVolume)

func TestReaches(t *testing.T) {
	ofMooring := func(_ *mirror.Facts, v *corev1.PersistentVolume) { *v = *mirror.Decide(base()).Volume }
	readOnly := func(f *mirror.Facts, _ *corev1.PersistentVolume) {
		f.Claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	}
	inTree := func(f *mirror.Facts, v *corev1.PersistentVolume) {
		f.OriginVolume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/a"}}
		v.Spec.PersistentVolumeSource = *f.OriginVolume.Spec.PersistentVolumeSource.DeepCopy()
	}
	for _, tc := range []struct {
		name    string
		changes []formerChange
		want    bool
	}{
		{"the very source", nil, true},
		{"the source that the recipe makes", []formerChange{ofMooring}, true},
		{"the same, however it is mounted", []formerChange{func(_ *mirror.Facts, v *corev1.PersistentVolume) {
			v.Spec.CSI.ReadOnly, v.Spec.MountOptions = true, []string{"ro"}
		}}, true},
		{"another driver", []formerChange{func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "x" }}, false},
		{"another handle", []formerChange{func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "x" }}, false},
		{"another attribute", []formerChange{func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.CSI.VolumeAttributes["share"] = "/x" }}, false},
		{"one attribute more", []formerChange{func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.CSI.VolumeAttributes["x"] = "x" }}, false},
		{"one attribute less", []formerChange{func(_ *mirror.Facts, v *corev1.PersistentVolume) { delete(v.Spec.CSI.VolumeAttributes, "subdir") }}, false},
		{"the recipe's for another claim", []formerChange{ofMooring, func(_ *mirror.Facts, v *corev1.PersistentVolume) {
			v.Name = mirror.VolumeName("dddddddd-0000-4000-8000-000000000004")
		}}, false},
		{"the recipe's, and the origin's share moved", []formerChange{ofMooring, func(f *mirror.Facts, _ *corev1.PersistentVolume) {
			f.OriginVolume.Spec.CSI.VolumeAttributes["share"] = "/x"
		}}, false},
		{"of a claim that reads", []formerChange{readOnly}, true},
		{"in-tree NFS", []formerChange{inTree}, true},
		{"in-tree NFS, another server", []formerChange{inTree, func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.NFS.Server = "b" }}, false},
		{"in-tree NFS, another path", []formerChange{inTree, func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.NFS.Path = "/b" }}, false},
		{"another kind of source", []formerChange{func(_ *mirror.Facts, v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/export"}}
		}}, false},
		{"no source that is known", []formerChange{func(f *mirror.Facts, v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}
			f.OriginVolume.Spec.PersistentVolumeSource = v.Spec.PersistentVolumeSource
		}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts, volume := former()
			for _, change := range tc.changes {
				change(&facts, volume)
			}
			if got := mirror.Reaches(volume, facts.OriginVolume, facts.Claim, facts.Driver); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// A mirror with its origin's handle reaches it too.
func TestReachesBySharedHandle(t *testing.T) {
	facts := base()
	sharedHandle(&facts)
	volume := mirror.Decide(facts).Volume
	if volume == nil || !mirror.Reaches(volume, facts.OriginVolume, facts.Claim, facts.Driver) {
		t.Error("it does not")
	}
	if !mirror.Reaches(volume, facts.OriginVolume, facts.Claim, &storagev1.CSIDriver{}) {
		t.Error("it does not any more where the driver's object has changed")
	}
}

func TestProve(t *testing.T) {
	facts, volume := former()
	proof, missing := mirror.Prove(facts, volume)
	if missing != "" || proof.Origin != key("drives", "mydrive") {
		t.Fatalf("got %+v, missing %q", proof, missing)
	}
	adopted := volume.DeepCopy()
	adopted.Annotations = proof.Record
	want := mirror.Record{Claim: key("tenant-1", "drive"), ClaimUID: askUID, Origin: key("drives", "mydrive"), OriginUID: originUID,
		OriginVolume: "pvc-origin", OriginVolumeUID: volumeUID, ServedBy: "mooring"}
	if got := mirror.RecordOf(names, adopted); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}

	// What is proven is what is mirrored, not that it may be.
	facts.NamespaceLabels = nil
	if _, missing := mirror.Prove(facts, volume); missing != "" {
		t.Errorf("without a grant: missing %q", missing)
	}
	for _, tc := range []struct {
		name, missing string
		change        formerChange
	}{
		{"no claim", "does not exist", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.Claim = nil }},
		{"the claim names no origin", "names no origin", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.Claim.Spec.DataSourceRef = nil }},
		{"the claim's UID is another", "each other by UID", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.Claim.UID = "x" }},
		{"the claim names another volume", "each other by UID", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.Claim.Spec.VolumeName = "x" }},
		{"the volume is for nobody", "each other by UID", func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }},
		{"the volume is for another's UID", "each other by UID", func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" }},
		{"the volume is for any UID", "each other by UID", func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }},
		{"the volume has another name", "each other by UID", func(f *mirror.Facts, v *corev1.PersistentVolume) {
			v.Name = mirror.VolumeName("dddddddd-0000-4000-8000-000000000004")
			f.Claim.Spec.VolumeName = v.Name
		}},
		{"no origin", "does not exist", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.Origin = nil }},
		{"no origin volume", "not bound", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.OriginVolume = nil }},
		{"an origin of another UID", "its volume do not name each other", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.Origin.UID = "x" }},
		{"an origin without UID", "its volume do not name each other", func(f *mirror.Facts, _ *corev1.PersistentVolume) {
			f.Origin.UID, f.OriginVolume.Spec.ClaimRef.UID = "", ""
		}},
		{"an origin bound to another volume", "its volume do not name each other", func(f *mirror.Facts, _ *corev1.PersistentVolume) { f.Origin.Spec.VolumeName = "x" }},
		{"an origin that is a mirror", "itself a mirror", func(f *mirror.Facts, _ *corev1.PersistentVolume) {
			f.OriginVolume.Annotations[mooringapi.ProvisionedBy] = names.Provisioner()
		}},
		{"other data", "other data", func(_ *mirror.Facts, v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "x" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts, volume := former()
			tc.change(&facts, volume)
			proof, missing := mirror.Prove(facts, volume)
			if !strings.Contains(missing, tc.missing) || proof.Record != nil {
				t.Errorf("got %+v, missing %q; want nothing, since %q", proof, missing, tc.missing)
			}
		})
	}
}

func TestIsFormer(t *testing.T) {
	_, recorded := made()
	for _, tc := range []struct {
		name   string
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		{"as the former provisioner made it", func(*corev1.PersistentVolume) {}, true},
		{"by somebody else", func(v *corev1.PersistentVolume) { v.Annotations[mooringapi.ProvisionedBy] = "nfs.csi.k8s.io" }, false},
		{"by nobody", func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		{"under another name", func(v *corev1.PersistentVolume) { v.Name = "data" }, false},
		{"under a name that looks alike", func(v *corev1.PersistentVolume) { v.Name += "0" }, false},
		{"with a record", func(v *corev1.PersistentVolume) { *v = *recorded.DeepCopy() }, false},
		{"Mooring's own, its record removed", func(v *corev1.PersistentVolume) {
			*v = *recorded.DeepCopy()
			v.Annotations = nil
		}, true},
		{"Mooring's own, a part of its record removed", func(v *corev1.PersistentVolume) {
			*v = *recorded.DeepCopy()
			delete(v.Annotations, names.OriginClaim())
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, volume := former()
			tc.change(volume)
			if got := mirror.IsFormer(names, volume); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
