package retain

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// situation is a manifest's cluster, to be changed in one place per row.
type situation struct {
	t     *testing.T
	facts Facts
}

// live makes the volume be there, with changes.
func (s *situation) live(changes ...any) {
	s.facts.Live = stored(s.t, nfsManifest())
	for i := 0; i < len(changes); i += 2 {
		path, ok := changes[i].(string)
		if !ok {
			s.t.Fatal("a change begins with a path")
		}
		set(s.facts.Live, path, changes[i+1])
	}
}

// bound makes volume and claim be there and bound to each other.
func (s *situation) bound() {
	s.live()
	s.facts.Claim = fittingClaim()
	boundTo(s.facts.Live, s.facts.Claim)
}

func (s *situation) claim(changes ...func(*corev1.PersistentVolumeClaim)) {
	s.facts.Claim = fittingClaim()
	for _, change := range changes {
		change(s.facts.Claim)
	}
}

func (s *situation) neighbour(o object, changes ...func(*Neighbour)) {
	m := parsed(s.t, set(set(o, "metadata/name", "other"), "spec/claimRef/name", "other"))
	n := NeighbourOf(m.Volume)
	for _, change := range changes {
		change(&n)
	}
	s.facts.Neighbours = append(s.facts.Neighbours, n)
}

// mirror makes a mirror volume of the live volume, with changes.
func (s *situation) mirror(changes ...func(*corev1.PersistentVolume)) {
	pv := parsed(s.t, nfsManifest()).Volume.DeepCopy()
	pv.Name = "pvc-m"
	pv.Annotations = map[string]string{
		"mirror.example.com/mirror-claim-uid": "m", "mirror.example.com/origin-volume": "v", "mirror.example.com/origin-volume-uid": "uid-v",
	}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns2", Name: "c2", UID: "m"}
	for _, change := range changes {
		change(pv)
	}
	s.facts.Neighbours = append(s.facts.Neighbours, NeighbourOf(pv))
}

func TestDecide(t *testing.T) {
	type claim = *corev1.PersistentVolumeClaim
	text := func(s string) *string { return &s }
	for _, tc := range []struct {
		name   string
		change func(s *situation)
		want   Reason // empty: not refused
		action Action
	}{
		{"nothing there", func(*situation) {}, "", Create},
		{"exactly there", func(s *situation) { s.live() }, "", Keep},
		{"there, pending", func(s *situation) { s.live("status/phase", "Pending") }, "", Keep},
		{"there, of another uid", func(s *situation) { s.live("metadata/uid", "other") }, "", Keep},
		{"with a claimRef of v1", func(s *situation) { s.live("spec/claimRef/apiVersion", "v1") }, "", Keep},
		{"with others' label", func(s *situation) { s.live("metadata/labels/tool", "x") }, "", Keep},
		{"with others' annotation", func(s *situation) { s.live("metadata/annotations/tool", "x") }, "", Keep},
		{"without the protection finalizer", func(s *situation) { s.live("metadata/finalizers", nil) }, "", Keep},

		{"terminating", func(s *situation) { s.live("metadata/deletionTimestamp", "2026-01-01T00:00:00Z") }, VolumeTerminating, 0},
		{"released", func(s *situation) { s.live("status/phase", "Released") }, VolumeReleased, 0},
		{"failed", func(s *situation) { s.live("status/phase", "Failed") }, VolumeFailed, 0},
		{"in a phase that nobody knows", func(s *situation) { s.live("status/phase", "Sleeping") }, VolumeFailed, 0},

		{"another path", func(s *situation) { s.live("spec/nfs/path", "/x") }, VolumeDiffers, 0},
		{"another server", func(s *situation) { s.live("spec/nfs/server", "x") }, VolumeDiffers, 0},
		{"another capacity", func(s *situation) { s.live("spec/capacity/storage", "11Gi") }, VolumeDiffers, 0},
		{"other modes", func(s *situation) { s.live("spec/accessModes", []any{"ReadWriteMany"}) }, VolumeDiffers, 0},
		{"modes in another order", func(s *situation) { s.live("spec/accessModes", []any{"ReadOnlyMany", "ReadWriteMany"}) }, VolumeDiffers, 0},
		{"another policy", func(s *situation) { s.live("spec/persistentVolumeReclaimPolicy", "Delete") }, VolumeDiffers, 0},
		{"another class", func(s *situation) { s.live("spec/storageClassName", "x") }, VolumeDiffers, 0},
		{"no class", func(s *situation) { s.live("spec/storageClassName", nil) }, VolumeDiffers, 0},
		{"another volume mode", func(s *situation) { s.live("spec/volumeMode", "Block") }, VolumeDiffers, 0},
		{"another claim's name", func(s *situation) { s.live("spec/claimRef/name", "x") }, VolumeDiffers, 0},
		{"no claimRef", func(s *situation) { s.live("spec/claimRef", nil) }, VolumeDiffers, 0},
		{"another label value", func(s *situation) { s.live("metadata/labels/owner", "x") }, VolumeDiffers, 0},
		{"a label missing", func(s *situation) { s.live("metadata/labels", nil) }, VolumeDiffers, 0},
		{"an annotation missing", func(s *situation) { s.live("metadata/annotations/note", nil) }, VolumeDiffers, 0},
		{"another source", func(s *situation) { s.live("spec/nfs", nil, "spec/hostPath/path", "/x") }, VolumeDiffers, 0},

		{"node affinity", func(s *situation) { s.live("spec/nodeAffinity", object{"required": object{}}) }, VolumeExtraFields, 0},
		{"mount options", func(s *situation) { s.live("spec/mountOptions", []any{"ro"}) }, VolumeExtraFields, 0},
		{"an attributes class", func(s *situation) { s.live("spec/volumeAttributesClassName", "gold") }, VolumeExtraFields, 0},
		{"a second source", func(s *situation) { s.live("spec/csi/driver", "d") }, VolumeExtraFields, 0},
		{"read-only", func(s *situation) { s.live("spec/nfs/readOnly", true) }, VolumeExtraFields, 0},
		{"a field of a later API", func(s *situation) { s.live("spec/sharing", "all") }, VolumeExtraFields, 0},
		{"a field of a later API in the source", func(s *situation) { s.live("spec/nfs/tls", true) }, VolumeExtraFields, 0},
		{"metadata of a later API", func(s *situation) { s.live("metadata/tenant", "x") }, VolumeExtraFields, 0},
		{"an owner", func(s *situation) { s.live("metadata/ownerReferences", []any{object{"name": "x"}}) }, VolumeExtraFields, 0},
		{"a foreign finalizer", func(s *situation) { s.live("metadata/finalizers", []any{protection, "example.com/x"}) }, VolumeExtraFields, 0},
		{"a controllers' annotation", func(s *situation) {
			s.live("metadata/annotations", object{"note": "mine", "pv.kubernetes.io/bound-by-controller": "yes"})
		}, VolumeExtraFields, 0},

		{"bound", func(s *situation) { s.bound() }, "", Keep},
		{"bound, phase not yet", func(s *situation) { s.bound(); set(s.facts.Live, "status/phase", "Available") }, "", Keep},
		{"bound, claim gone", func(s *situation) { s.bound(); s.facts.Claim = nil }, BoundClaimMissing, 0},
		{"bound, claim made anew", func(s *situation) { s.bound(); s.facts.Claim.UID = "other" }, BoundOtherClaim, 0},
		{"bound, claim names another", func(s *situation) { s.bound(); s.facts.Claim.Spec.VolumeName = "x" }, BoundClaimDisowns, 0},
		{"bound, claim names none yet", func(s *situation) { s.bound(); s.facts.Claim.Spec.VolumeName = "" }, BoundUnproven, 0},
		{"bound, no uid", func(s *situation) { s.bound(); set(s.facts.Live, "spec/claimRef/uid", nil) }, BoundUnproven, 0},
		{"bound, claim lost", func(s *situation) { s.bound(); s.facts.Claim.Status.Phase = corev1.ClaimLost }, ClaimLost, 0},
		{"unbound, claim bound to it", func(s *situation) {
			s.bound()
			set(s.facts.Live, "spec/claimRef/uid", nil)
			set(s.facts.Live, "status/phase", "Available")
		}, BoundUnproven, 0},

		{"neighbour apart", func(s *situation) { s.neighbour(set(nfsManifest(), "spec/nfs/path", "/export/v2")) }, "", Create},
		{"neighbour on another server", func(s *situation) { s.neighbour(set(nfsManifest(), "spec/nfs/server", "nas2.example.com")) }, "", Create},
		{"neighbour on the same place", func(s *situation) { s.neighbour(nfsManifest()) }, BackendShared, 0},
		{"neighbour on the same place, by name", func(s *situation) { s.neighbour(nfsManifest()); s.facts.AllowOverlap = []string{"other"} }, BackendShared, 0},
		{"neighbour on the same place, unchanged", func(s *situation) { s.live(); s.neighbour(nfsManifest()) }, BackendShared, 0},
		{"neighbour by CSI", func(s *situation) {
			s.neighbour(csiManifest(driverNFS, object{"server": "NAS.example.com.", "share": "/export", "subDir": "v"}))
		}, BackendShared, 0},
		{"neighbour above", func(s *situation) { s.neighbour(set(nfsManifest(), "spec/nfs/path", "/export")) }, BackendNested, 0},
		{"neighbour at the root", func(s *situation) { s.neighbour(set(nfsManifest(), "spec/nfs/path", "/")) }, BackendNested, 0},
		{"neighbour below", func(s *situation) { s.neighbour(set(nfsManifest(), "spec/nfs/path", "/export/v/x")) }, BackendNested, 0},
		{"neighbour below, by name", func(s *situation) {
			s.neighbour(set(nfsManifest(), "spec/nfs/path", "/export/v/x"))
			s.facts.AllowOverlap = []string{"other"}
		}, "", Create},
		{"neighbour below, another name", func(s *situation) {
			s.neighbour(set(nfsManifest(), "spec/nfs/path", "/export/v/x"))
			s.facts.AllowOverlap = []string{"another"}
		}, BackendNested, 0},

		{"mirror", func(s *situation) { s.live(); s.mirror() }, "", Keep},
		{"mirror, not provisioned yet for a claim", func(s *situation) {
			s.live()
			s.mirror(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" })
		}, "", Keep},
		{"mirror of a volume that is not there", func(s *situation) { s.mirror() }, BackendShared, 0},
		{"mirror of another volume", func(s *situation) {
			s.live()
			s.mirror(func(pv *corev1.PersistentVolume) { pv.Annotations["mirror.example.com/origin-volume"] = "x" })
		}, BackendShared, 0},
		{"mirror of an earlier volume", func(s *situation) {
			s.live()
			s.mirror(func(pv *corev1.PersistentVolume) { pv.Annotations["mirror.example.com/origin-volume-uid"] = "x" })
		}, BackendShared, 0},
		{"mirror of another name", func(s *situation) { s.live(); s.mirror(func(pv *corev1.PersistentVolume) { pv.Name = "m" }) }, BackendShared, 0},
		{"mirror for another claim", func(s *situation) {
			s.live()
			s.mirror(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "x" })
		}, BackendShared, 0},
		{"mirror without claimRef", func(s *situation) { s.live(); s.mirror(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }) }, BackendShared, 0},
		{"mirror with Delete", func(s *situation) {
			s.live()
			s.mirror(func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "Delete" })
		}, BackendShared, 0},
		{"mirror, half a record", func(s *situation) {
			s.live()
			s.mirror(func(pv *corev1.PersistentVolume) { delete(pv.Annotations, "mirror.example.com/origin-volume-uid") })
		}, BackendShared, 0},

		{"claim fits", func(s *situation) { s.claim() }, "", Create},
		{"claim fits, unchanged", func(s *situation) { s.live(); s.claim() }, "", Keep},
		{"claim names the volume", func(s *situation) { s.claim(func(c claim) { c.Spec.VolumeName = "v" }) }, "", Create},
		{"claim terminating", func(s *situation) { s.claim(func(c claim) { c.DeletionTimestamp = &metav1.Time{} }) }, ClaimTerminating, 0},
		{"claim lost", func(s *situation) { s.claim(func(c claim) { c.Status.Phase = corev1.ClaimLost }) }, ClaimLost, 0},
		{"claim was bound to it", func(s *situation) {
			s.claim(func(c claim) { c.Spec.VolumeName = "v"; c.Annotations = map[string]string{bindCompleted: "yes"} })
		}, ClaimLost, 0},
		{"claim bound elsewhere", func(s *situation) {
			s.claim(func(c claim) { c.Spec.VolumeName = "x"; c.Status.Phase = corev1.ClaimBound })
		}, ClaimBoundElse, 0},
		{"claim bound to nothing", func(s *situation) { s.claim(func(c claim) { c.Status.Phase = corev1.ClaimBound }) }, BoundUnproven, 0},
		{"claim names another", func(s *situation) { s.claim(func(c claim) { c.Spec.VolumeName = "x" }) }, ClaimOtherVolume, 0},
		{"claim too large", func(s *situation) {
			s.claim(func(c claim) { c.Spec.Resources.Requests["storage"] = resource.MustParse("10241Mi") })
		}, ClaimTooLarge, 0},
		{"claim smaller", func(s *situation) {
			s.claim(func(c claim) { c.Spec.Resources.Requests["storage"] = resource.MustParse("1Gi") })
		}, "", Create},
		{"claim too large, unchanged", func(s *situation) {
			s.live()
			s.claim(func(c claim) { c.Spec.Resources.Requests["storage"] = resource.MustParse("11Gi") })
		}, ClaimTooLarge, 0},
		{"claim of another class", func(s *situation) { s.claim(func(c claim) { c.Spec.StorageClassName = text("x") }) }, ClaimOtherClass, 0},
		{"claim without class", func(s *situation) { s.claim(func(c claim) { c.Spec.StorageClassName = nil }) }, ClaimOtherClass, 0},
		{"claim with the old annotation", func(s *situation) { s.claim(func(c claim) { c.Annotations = map[string]string{betaClass: "x"} }) }, ClaimOtherClass, 0},
		{"claim of another mode", func(s *situation) {
			s.claim(func(c claim) { c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce} })
		}, ClaimOtherModes, 0},
		{"claim of blocks", func(s *situation) {
			s.claim(func(c claim) { block := corev1.PersistentVolumeBlock; c.Spec.VolumeMode = &block })
		}, ClaimOtherMode, 0},
		{"claim's selector matches", func(s *situation) {
			s.claim(func(c claim) { c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"owner": "me"}} })
		}, "", Create},
		{"claim's selector", func(s *situation) {
			s.claim(func(c claim) { c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"owner": "x"}} })
		}, ClaimSelector, 0},
		{"claim's selector broken", func(s *situation) {
			s.claim(func(c claim) { c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "x"}} })
		}, ClaimSelector, 0},
		{"claim's attributes class", func(s *situation) { s.claim(func(c claim) { c.Spec.VolumeAttributesClassName = text("x") }) }, ClaimOtherAttrs, 0},

		{"another volume for the claim", func(s *situation) { s.neighbour(csiManifest("d", nil), forClaim("")) }, ClaimContested, 0},
		{"another volume for this very claim", func(s *situation) { s.claim(); s.neighbour(csiManifest("d", nil), forClaim("uid-c")) }, ClaimContested, 0},
		{"left behind by an earlier claim", func(s *situation) { s.claim(); s.neighbour(csiManifest("d", nil), forClaim("earlier")) }, "", Create},
		{"left behind, no claim now", func(s *situation) { s.neighbour(csiManifest("d", nil), forClaim("earlier")) }, "", Create},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &situation{t: t}
			tc.change(s)
			plan := Decide(parsed(t, nfsManifest()), s.facts)
			if plan.Action != tc.action || plan.Reason != tc.want {
				t.Fatalf("got %s, %q: %s; want %s, %q", plan.Action, plan.Reason, plan.Message, tc.action, tc.want)
			}
			if (plan.Message == "") != (tc.want == "") {
				t.Errorf("message %q for %q", plan.Message, tc.want)
			}
		})
	}
}

func forClaim(uid types.UID) func(*Neighbour) {
	return func(n *Neighbour) {
		n.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "c", UID: uid}
	}
}

func TestZeroPlanRefuses(t *testing.T) {
	if (Plan{}).Action != Refuse || Action(99).String() != "refused" {
		t.Error("a plan that nobody made does not refuse")
	}
}

func TestPlanListsWhatItAccepted(t *testing.T) {
	s := &situation{t: t}
	s.live("metadata/labels/tool", "x", "metadata/annotations/other", "y")
	s.mirror()
	s.neighbour(set(nfsManifest(), "spec/nfs/path", "/export/v/x"))
	s.facts.AllowOverlap = []string{"other"}
	plan := Decide(parsed(t, nfsManifest()), s.facts)
	if plan.Action != Keep || !slices.Equal(plan.Mirrors, []string{"pvc-m"}) || !slices.Equal(plan.AllowedOverlaps, []string{"other at nfs://nas.example.com/export/v/x"}) ||
		!slices.Equal(plan.OtherMetadata, []string{"annotation other", "label tool"}) || plan.LiveUID != "uid-v" {
		t.Fatalf("got %+v", plan)
	}
}

func TestEveryDifferenceIsTold(t *testing.T) {
	s := &situation{t: t}
	s.live("spec/nfs/path", "/x", "spec/mountOptions", []any{"ro"}, "metadata/labels/owner", nil)
	plan := Decide(parsed(t, nfsManifest()), s.facts)
	for _, field := range []string{"spec.nfs.path", "spec.mountOptions", "metadata.labels.owner"} {
		if !strings.Contains(plan.Message, field) {
			t.Errorf("%s is not told in %s", field, plan.Message)
		}
	}
}
