package mirror_test

import (
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/choice"
	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// byValue compares names, which have no fields of their own to look at.
var byValue = cmp.AllowUnexported(mooringapi.Names{})

// hostile are texts that would forge a line, a colour or an order of reading.
const hostile = "a\nb\r\x1b[31m\u202e\u2066\u009b\x00\xff"

// factsFrom returns the base case with each of its parts changed as the choices
// say: what an API server would store, and what it never would.
func factsFrom(s *choice.Source) mirror.Facts {
	f := base()
	f.RefuseUnknownDrivers, f.FormerName = s.Yes(), s.Yes()
	f.Now = now.Add(choice.Of(s, 0, -time.Hour, time.Hour, 1_000_000*time.Hour))
	s.Perhaps(func() { chooseClaim(s, f.Claim) })
	s.Perhaps(func() { chooseClass(s, f.Class) })
	s.Perhaps(func() { f.NamespaceLabels = s.Map(3, labelKeys, []string{"tenant", "", hostile}) })
	s.Perhaps(func() { chooseOrigin(s, f.Origin) })
	s.Perhaps(func() { chooseVolume(s, f.OriginVolume) })
	s.Perhaps(func() {
		f.Driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: choice.Of(s, ptr(false), nil, ptr(true))}}
		f.Driver.Name = s.Text("shared.example.com", "nfs.csi.k8s.io")
	})
	for range s.Int(4) {
		f.Rivals = append(f.Rivals, mirror.Rival{
			Name: s.Text("other", hostile), UID: types.UID(s.Text("0", askUID, "ffff")),
			Created: now.Add(choice.Of(s, 0, -time.Hour, time.Hour)), Served: s.Yes(),
		})
	}
	for _, forget := range []func(){
		func() { f.Claim = nil }, func() { f.Class = nil }, func() { f.NamespaceLabels = nil },
		func() { f.Origin = nil }, func() { f.OriginVolume = nil },
	} {
		if s.Int(32) == 31 {
			forget()
		}
	}
	return f
}

var labelKeys = []string{"crownlabs.polito.it/type", "kubernetes.io/metadata.name", "guest", hostile}

func chooseMeta(s *choice.Source, meta *metav1.ObjectMeta) {
	// Names are those that an API server stores; it is what stands beside them that
	// users choose freely.
	meta.Namespace = choice.Of(s, meta.Namespace, "drives", "tenant-1", longest("n")[:63])
	meta.Name = choice.Of(s, meta.Name, "mydrive", "drive", "pvc-"+askUID, longest("c"))
	meta.UID = types.UID(s.Text(string(meta.UID), askUID, originUID, volumeUID, ""))
	s.Perhaps(func() { meta.DeletionTimestamp = &metav1.Time{Time: now} })
}

func chooseClaim(s *choice.Source, claim *corev1.PersistentVolumeClaim) {
	chooseMeta(s, &claim.ObjectMeta)
	s.Perhaps(func() {
		claim.Annotations = map[string]string{names.Origin(): s.Text("drives/mydrive", "drives/", "/", "tenant-1/drive", hostile)}
	})
	spec := &claim.Spec
	s.Perhaps(func() { spec.DataSourceRef = nil })
	s.Perhaps(func() {
		spec.DataSourceRef = &corev1.TypedObjectReference{
			APIGroup: choice.Of(s, nil, ptr(""), ptr(s.Text("snapshot.storage.k8s.io", hostile))),
			Kind:     s.Text("PersistentVolumeClaim", "VolumeSnapshot", hostile), Name: s.Text("mydrive", "", hostile),
			Namespace: choice.Of(s, ptr("drives"), nil, ptr(s.Text("tenant-1", "", hostile))),
		}
	})
	s.Perhaps(func() {
		spec.DataSource = &corev1.TypedLocalObjectReference{Kind: s.Text("PersistentVolumeClaim"), Name: s.Text("x")}
	})
	s.Perhaps(func() { spec.Selector = &metav1.LabelSelector{MatchLabels: s.Map(1, labelKeys, []string{"x"})} })
	s.Perhaps(func() { spec.VolumeName = s.Text(mirror.VolumeName(askUID), "pvc-origin", hostile) })
	s.Perhaps(func() { spec.StorageClassName = choice.Of(s, ptr(s.Text("other", "", hostile)), nil) })
	s.Perhaps(func() { spec.VolumeAttributesClassName = ptr(s.Text("fast", "", hostile)) })
	s.Perhaps(func() { spec.AccessModes = accessModes(s) })
	s.Perhaps(func() { spec.VolumeMode = volumeMode(s) })
	s.Perhaps(func() { spec.Resources.Requests = size(s) })
	claim.Status.Phase = corev1.PersistentVolumeClaimPhase(s.Text(string(claim.Status.Phase), "Bound", "Lost", "", "Unheard"))
}

func accessModes(s *choice.Source) []corev1.PersistentVolumeAccessMode {
	var all []corev1.PersistentVolumeAccessMode
	for range s.Int(4) {
		all = append(all, corev1.PersistentVolumeAccessMode(s.Text(string(rwx), string(rox), string(rwo), string(rwop), hostile)))
	}
	return all
}

func volumeMode(s *choice.Source) *corev1.PersistentVolumeMode {
	return choice.Of(s, nil, ptr(corev1.PersistentVolumeFilesystem), ptr(corev1.PersistentVolumeBlock), ptr(corev1.PersistentVolumeMode(s.Text("Unheard", ""))))
}

func size(s *choice.Source) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: choice.Of(s,
		resource.MustParse("5Gi"), resource.MustParse("6Gi"), resource.Quantity{}, resource.MustParse("-1"), resource.MustParse("9E"))}
}

func chooseClass(s *choice.Source, class *storagev1.StorageClass) {
	class.Name = s.Text("pvc-mirror", "other", hostile)
	class.Provisioner = s.Text(class.Provisioner, "somebody.example.com", "")
	class.Parameters = s.Map(2, []string{mooringapi.ParameterAccess, "Access", hostile}, []string{"ReadOnly", "ReadWrite", "readonly", hostile})
	class.AllowVolumeExpansion = choice.Of(s, nil, ptr(false), ptr(true))
}

func chooseOrigin(s *choice.Source, origin *corev1.PersistentVolumeClaim) {
	chooseMeta(s, &origin.ObjectMeta)
	s.Perhaps(func() { origin.Annotations = grants(s) })
	origin.Spec.VolumeName = s.Text("pvc-origin", "", "pvc-"+askUID)
	origin.Status.Phase = corev1.PersistentVolumeClaimPhase(s.Text("Bound", "Pending", "Lost", "", "Unheard"))
}

func grants(s *choice.Source) map[string]string {
	annotations := map[string]string{}
	for _, key := range []string{names.ReadWriteGrant(), names.ReadOnlyGrant()} {
		s.Perhaps(func() {
			annotations[key] = s.Text(selector, "", "!guest", "kubernetes.io/metadata.name", "guest in (a, b)", "((", "a=b,a=c", hostile)
		})
	}
	s.Perhaps(func() {
		annotations[names.GrantExpires()] = s.Text(now.Add(time.Minute).Format(time.RFC3339), now.Format(time.RFC3339), "0001-01-01T00:00:00Z", "tomorrow", "")
	})
	return annotations
}

func chooseVolume(s *choice.Source, volume *corev1.PersistentVolume) {
	chooseMeta(s, &volume.ObjectMeta)
	s.Perhaps(func() {
		volume.Annotations = s.Map(3, []string{names.MirrorClaimUID(), "x.example.com/mirror-claim-uid", mooringapi.ProvisionedBy, names.OriginClaim(), hostile},
			[]string{names.Provisioner(), askUID, "nfs.csi.k8s.io", "", hostile})
	})
	spec := &volume.Spec
	s.Perhaps(func() {
		spec.ClaimRef = &corev1.ObjectReference{
			Namespace: s.Text("drives", ""), Name: s.Text("mydrive", ""), UID: types.UID(s.Text(originUID, askUID, "")),
		}
	})
	s.Perhaps(func() { spec.ClaimRef = nil })
	s.Perhaps(func() { spec.AccessModes = accessModes(s) })
	s.Perhaps(func() { spec.VolumeMode = volumeMode(s) })
	s.Perhaps(func() { spec.Capacity = size(s) })
	s.Perhaps(func() { spec.NodeAffinity = nil })
	s.Perhaps(func() {
		spec.MountOptions = []string{s.Text("ro", "nosharecache", hostile), s.Text("rw", "ro,rw", "", hostile)}
	})
	s.Perhaps(func() { chooseSource(s, &spec.PersistentVolumeSource) })
}

func chooseSource(s *choice.Source, source *corev1.PersistentVolumeSource) {
	attributes := source.CSI.VolumeAttributes
	for key, value := range s.Map(3, []string{"server", "share", "subdir", "source", "mountOptions", "clusterID", hostile}, []string{"nas", "/", "ro", "", hostile}) {
		attributes[key] = value
	}
	source.CSI.Driver = choice.Of(s, "nfs.csi.k8s.io", "shared.example.com", "smb.csi.k8s.io", "cephfs.csi.ceph.com", "efs.csi.aws.com", "file.csi.azure.com",
		"rook-ceph.cephfs.csi.ceph.com", "ebs.csi.aws.com", "csi.juicefs.com", "")
	source.CSI.VolumeHandle = s.Text("h", "", "a#b#c", hostile)
	switch s.Int(8) {
	case 1:
		*source = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: s.Text("nas", hostile), Path: s.Text("/", hostile), ReadOnly: s.Yes()}}
	case 2:
		*source = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: s.Text("/", hostile)}}
	case 3:
		*source = corev1.PersistentVolumeSource{}
	}
}

// mayBeAllowed is what must be known for a yes, told otherwise than the ladder
// tells it.
func mayBeAllowed(f mirror.Facts) bool {
	if f.Claim == nil || f.Class == nil || f.NamespaceLabels == nil || f.Origin == nil || f.OriginVolume == nil || f.Claim.UID == "" {
		return false
	}
	spec, ref, named := f.Claim.Spec, f.OriginVolume.Spec.ClaimRef, mirror.Origin(f.Names, f.Claim)
	given := grant.Evaluate(f.Names, f.Origin.Annotations, f.NamespaceLabels, f.Now).Access
	for _, mode := range spec.AccessModes {
		if mode != rwx && mode != rox {
			return false
		}
	}
	provisioned := f.OriginVolume.Annotations[mooringapi.ProvisionedBy] == f.Names.Provisioner()
	return len(spec.AccessModes) > 0 && spec.DataSource == nil && spec.Selector == nil &&
		named.Namespace == f.Origin.Namespace && named.Name == f.Origin.Name && named.Namespace != f.Claim.Namespace &&
		f.Class.Provisioner == f.Names.Provisioner() && spec.StorageClassName != nil && *spec.StorageClassName == f.Class.Name &&
		(f.Class.AllowVolumeExpansion == nil || !*f.Class.AllowVolumeExpansion) &&
		given != grant.None && given >= mirror.Access(f.Claim) &&
		f.Origin.DeletionTimestamp == nil && f.OriginVolume.DeletionTimestamp == nil && f.Origin.Status.Phase == corev1.ClaimBound &&
		ref != nil && ref.UID == f.Origin.UID && ref.UID != "" && f.Origin.Spec.VolumeName == f.OriginVolume.Name &&
		!mooringapi.IsMirrorVolume(f.OriginVolume.Annotations) && !provisioned &&
		(f.OriginVolume.Spec.CSI != nil || f.OriginVolume.Spec.NFS != nil)
}

// checkText holds that a text for people is one line, of characters that neither
// move the cursor nor turn the order of reading around.
func checkText(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) {
			t.Fatalf("a reader would get %U in %q", r, text)
		}
	}
}

// FuzzDecideFacts holds what must be true of every decision, on facts that no
// table would list.
func FuzzDecideFacts(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		facts := factsFrom(choice.From(data))
		got := mirror.Decide(facts)
		if diff := cmp.Diff(facts, factsFrom(choice.From(data)), byValue); diff != "" {
			t.Fatalf("the facts were changed\n%s", diff)
		}
		if diff := cmp.Diff(got, mirror.Decide(facts)); diff != "" {
			t.Fatalf("the same facts give two decisions\n%s", diff)
		}
		if (got.Volume != nil) != (got.Verdict == mirror.Allow) || got.Reason == "" || got.Message == "" {
			t.Fatalf("%v %q %q comes with volume %v", got.Verdict, got.Reason, got.Message, got.Volume)
		}
		if (got.Reason == mirror.Mirrored) != (got.Verdict == mirror.Allow) {
			t.Fatalf("%v for the reason %s", got.Verdict, got.Reason)
		}
		checkText(t, got.Message)
		if got.Verdict == mirror.Allow {
			if !mayBeAllowed(facts) {
				t.Fatalf("a wrong yes: %s", got.Message)
			}
			checkVolume(t, facts, got.Volume)
		}
		checkTaking(t, data, got)
	})
}

// checkTaking takes one thing after the other away: nothing of that is a yes where
// there was none before.
func checkTaking(t *testing.T, data []byte, before mirror.Decision) {
	t.Helper()
	for what, take := range map[string]func(*mirror.Facts){
		"the read-write grant": func(f *mirror.Facts) { delete(f.Origin.Annotations, names.ReadWriteGrant()) },
		"the read-only grant":  func(f *mirror.Facts) { delete(f.Origin.Annotations, names.ReadOnlyGrant()) },
		"the namespace's labels": func(f *mirror.Facts) {
			f.NamespaceLabels = nil
		},
		"the origin":        func(f *mirror.Facts) { f.Origin = nil },
		"the origin volume": func(f *mirror.Facts) { f.OriginVolume = nil },
		"the class":         func(f *mirror.Facts) { f.Class = nil },
		"the claimRef":      func(f *mirror.Facts) { f.OriginVolume.Spec.ClaimRef = nil },
	} {
		facts := factsFrom(choice.From(data))
		if facts.Origin == nil || facts.OriginVolume == nil {
			return
		}
		take(&facts)
		if got := mirror.Decide(facts); got.Verdict == mirror.Allow && before.Verdict != mirror.Allow {
			t.Fatalf("without %s it is allowed, with it not: %s", what, before.Message)
		}
	}
	facts := factsFrom(choice.From(data))
	if facts.Origin != nil {
		delete(facts.Origin.Annotations, names.ReadWriteGrant())
		delete(facts.Origin.Annotations, names.ReadOnlyGrant())
	}
	if got := mirror.Decide(facts); got.Verdict != mirror.Refuse {
		t.Fatalf("without any grant: %v %s", got.Verdict, got.Reason)
	}
}
