package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The four objects that a backup holds of a mirror.
const (
	originClaim  = "origin claim"
	originVolume = "origin volume"
	backedClaim  = "mirror claim"
	backedVolume = "mirror volume"
)

// keeping is what a backup tool leaves in the manifests that it restores.
type keeping struct {
	name string
	// uids: the volumes' claimRefs have the UIDs of the former claims.
	uids bool
	// bindings: claims have the annotations by which the binder knows them as
	// bound.
	bindings bool
	// finalizers: origins have Mooring's.
	finalizers bool
}

var keepings = []keeping{
	{"UIDs and bindings, as kubectl get", true, true, true},
	{"UIDs", true, false, false},
	{"bindings", false, true, false},
	{"nothing, as Velero", false, false, false},
}

// restoration is one mirror with its origin, exported, lost, and restored.
type restoration struct {
	*world
	keeping
	name   string
	order  []string
	backup map[string]client.Object
}

// exported returns a manifest of an object as it could be created anew, under
// another UID.
func (k keeping) exported(object client.Object) client.Object {
	manifest, _ := object.DeepCopyObject().(client.Object)
	manifest.SetUID("")
	manifest.SetResourceVersion("")
	manifest.SetCreationTimestamp(metav1.Time{})
	manifest.SetManagedFields(nil)
	manifest.SetGeneration(0)
	manifest.SetFinalizers(slices.DeleteFunc(manifest.GetFinalizers(), func(f string) bool { return !k.finalizers || f != names.Finalizer() }))
	switch manifest := manifest.(type) {
	case *corev1.PersistentVolumeClaim:
		manifest.Status = corev1.PersistentVolumeClaimStatus{}
		if !k.bindings {
			for key := range manifest.Annotations {
				if strings.HasPrefix(key, "pv.kubernetes.io/") {
					delete(manifest.Annotations, key)
				}
			}
		}
	case *corev1.PersistentVolume:
		manifest.Status = corev1.PersistentVolumeStatus{}
		if !k.uids {
			manifest.Spec.ClaimRef.UID, manifest.Spec.ClaimRef.ResourceVersion = "", ""
		}
	}
	return manifest
}

// back takes a backup of a mirror and its origin.
func (r *restoration) back(o origin, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	r.Helper()
	r.backup = map[string]client.Object{originClaim: o.PersistentVolumeClaim, originVolume: o.volume, backedClaim: claim, backedVolume: volume}
	for what, object := range r.backup {
		r.must(r.Get(r.Context(), keyOf(object), object), "get the %s", what)
		r.backup[what] = r.exported(object)
	}
}

// lose deletes objects as a cluster that is lost loses them: nobody's finalizer
// holds them.
func (r *restoration) lose(what ...string) {
	r.Helper()
	for _, what := range what {
		object := live(r.backup[what])
		r.until(what+" of "+r.name+" gone", func(ctx context.Context) string {
			if err := r.Get(ctx, keyOf(object), object); err != nil {
				return unless(apierrors.IsNotFound(err), fmt.Sprint(err))
			}
			if object.GetDeletionTimestamp() == nil {
				r.must(client.IgnoreNotFound(r.Delete(ctx, object)), "delete the %s", what)
			}
			if err := r.Patch(ctx, object, jsonMerge(`{"metadata":{"finalizers":null}}`)); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				r.must(err, "strip the %s", what)
			}
			return "it exists"
		}, object)
	}
}

// live returns an empty object of a manifest's kind and name.
func live(manifest client.Object) client.Object {
	meta := metav1.ObjectMeta{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	if _, isClaim := manifest.(*corev1.PersistentVolumeClaim); isClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: meta}
	}
	return &corev1.PersistentVolume{ObjectMeta: meta}
}

// restore creates one object of the backup. Mooring may have made the mirror
// volume before, or still be about to delete the one before it.
func (r *restoration) restore(what string) {
	r.Helper()
	manifest, _ := r.backup[what].DeepCopyObject().(client.Object)
	err := r.Create(r.Context(), manifest)
	if what == backedVolume && apierrors.IsAlreadyExists(err) {
		return
	}
	r.must(err, "restore the %s of %s", what, r.name)
	r.Cleanup(func() { _ = r.Delete(context.Background(), manifest) })
}

// bindOrigin does what whoever restores must do where the binder cannot: it
// gives the origin volume the UID that its claim has now.
func (r *restoration) bindOrigin() {
	r.Helper()
	claim, volume := r.claim(originClaim), r.volume(originVolume)
	r.must(r.Get(r.Context(), keyOf(claim), claim), "get the origin")
	if r.uids || r.bindings {
		r.merge(volume, fmt.Sprintf(`{"spec":{"claimRef":{"uid":%q,"resourceVersion":null}}}`, claim.UID))
	}
}

func (r *restoration) claim(what string) *corev1.PersistentVolumeClaim {
	claim, _ := live(r.backup[what]).(*corev1.PersistentVolumeClaim)
	return claim
}

func (r *restoration) volume(what string) *corev1.PersistentVolume {
	volume, _ := live(r.backup[what]).(*corev1.PersistentVolume)
	return volume
}

// isWhole waits until the mirror is one again: bound to a volume that knows it
// and its origin as they are now.
func (r *restoration) isWhole() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	r.Helper()
	claim, volume, origin, behind := r.claim(backedClaim), r.volume(backedVolume), r.claim(originClaim), r.volume(originVolume)
	r.until(r.name+" is whole", func(ctx context.Context) string {
		for _, object := range []client.Object{claim, volume, origin, behind} {
			if err := r.Get(ctx, keyOf(object), object); err != nil {
				return err.Error()
			}
		}
		record := mirror.RecordOf(names, volume)
		switch {
		case origin.Status.Phase != corev1.ClaimBound || claim.Status.Phase != corev1.ClaimBound || volume.Status.Phase != corev1.VolumeBound:
			return fmt.Sprintf("origin %s, claim %s, volume %s", origin.Status.Phase, claim.Status.Phase, volume.Status.Phase)
		case record.ClaimUID != claim.UID || record.OriginUID != origin.UID || record.OriginVolume != behind.Name || record.OriginVolumeUID != behind.UID:
			return fmt.Sprintf("the record is %+v", record)
		case !mirror.IsMirrorOf(names, volume, claim) || !record.RevokedAt.IsZero() || volume.DeletionTimestamp != nil:
			return "the volume is not this claim's, revoked, or being deleted"
		case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
			return "the volume's policy is " + string(volume.Spec.PersistentVolumeReclaimPolicy)
		case conditionOf(claim).Status == corev1.ConditionFalse:
			return "the condition says " + conditionOf(claim).Reason
		case !slices.Contains(origin.Finalizers, names.Finalizer()):
			return "the origin has no finalizer"
		}
		return ""
	}, claim, volume, origin, behind)
	return claim, volume
}

// permutations returns all orders of the four objects.
func permutations(of []string) [][]string {
	if len(of) == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i, first := range of {
		rest := slices.Delete(slices.Clone(of), i, i+1)
		for _, order := range permutations(rest) {
			all = append(all, append([]string{first}, order...))
		}
	}
	return all
}

// TestRestore loses mirrors and their origins and restores them from their
// manifests, in every order of the four objects, as several tools do it. All of
// them at once: the binder takes up to 15 s to look again at what it could not
// bind.
func TestRestore(t *testing.T) {
	onEachGate(t, func(w *world) {
		var all []*restoration
		for i, order := range permutations([]string{originClaim, originVolume, backedClaim, backedVolume}) {
			// Each order with and without UIDs, one of them on each plane.
			pair := [][]keeping{{keepings[0], keepings[3]}, {keepings[1], keepings[2]}}[i%2]
			keep := pair[i/2%2]
			if w.gateOn {
				keep = pair[1-i/2%2]
			}
			all = append(all, &restoration{world: w, keeping: keep, name: strings.Join(order, ", ") + ", keeping " + keep.name, order: order})
		}
		owner, tenant := w.namespace("owner", nil), w.namespace("tenant", map[string]string{"type": "tenant"})
		began := time.Now()
		for i, r := range all {
			o := w.origin(owner, fmt.Sprintf("data%d", i), granting(tenantsOnly))
			claim := w.mirror(tenant, fmt.Sprintf("m%d", i), o)
			r.back(o, claim, w.isBound(claim))
		}
		for _, r := range all {
			r.back(origin{r.claim(originClaim), r.volume(originVolume)}, r.claim(backedClaim), r.volume(backedVolume)) // with its finalizer
			r.lose(backedClaim, backedVolume, originClaim, originVolume)
		}
		for step := range 4 {
			for _, r := range all {
				r.restore(r.order[step])
			}
		}
		for _, r := range all {
			r.bindOrigin()
		}
		for _, r := range all {
			r.isWhole()
		}
		w.Logf("restored %d mirrors with their origins, in %v", len(all), time.Since(began).Round(time.Second))
		for _, r := range all { // and they can go as they came
			claim := r.claim(backedClaim)
			w.must(w.Delete(w.Context(), claim), "delete a restored mirror")
		}
		for _, r := range all {
			w.isGone(r.volume(backedVolume))
			w.isLetGo(r.claim(originClaim))
		}
	})
}

// isLetGo waits until an origin has no finalizer of Mooring's.
func (w *world) isLetGo(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	w.until("origin "+claim.Name+" is let go", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(claim), claim), "get the origin")
		return unless(!slices.Contains(claim.Finalizers, names.Finalizer()), "it has the finalizer")
	}, claim)
}

// restorations are what is lost and restored of a mirror that is whole.
var restorations = []struct {
	name string
	run  func(r *restoration, claim *corev1.PersistentVolumeClaim)
}{
	{"only the origin, as it was", func(r *restoration, claim *corev1.PersistentVolumeClaim) {
		r.lose(originClaim, originVolume)
		r.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		r.restore(originClaim)
		r.restore(originVolume)
		r.bindOrigin()
		r.isWhole()
		r.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
		r.isTold(claim, "Rerecorded", "came back under another UID")
	}},
	{"only the origin, with other data", func(r *restoration, claim *corev1.PersistentVolumeClaim) {
		r.lose(originClaim, originVolume)
		volume, _ := r.backup[originVolume].(*corev1.PersistentVolume)
		volume.Spec.CSI.VolumeAttributes["share"] = "/export/other"
		r.restore(originVolume)
		r.restore(originClaim)
		r.bindOrigin()
		r.isSaid(claim, corev1.ConditionFalse, mirror.OriginReplaced)
		mirrored := r.volume(backedVolume)
		r.until("since when is recorded", func(ctx context.Context) string {
			r.must(r.Get(ctx, keyOf(mirrored), mirrored), "get the mirror volume")
			return unless(!mirror.RecordOf(names, mirrored).RevokedAt.IsZero(), "it is not")
		}, mirrored)
		if record := mirror.RecordOf(names, mirrored); record.OriginUID == r.now(originClaim) {
			r.Errorf("other data was recorded as the mirror's:\n%s", r.show(mirrored))
		}
	}},
	{"only the origin, which grants nobody", func(r *restoration, claim *corev1.PersistentVolumeClaim) {
		r.lose(originClaim, originVolume)
		delete(r.backup[originClaim].GetAnnotations(), names.ReadWriteGrant())
		r.restore(originVolume)
		r.restore(originClaim)
		r.bindOrigin()
		r.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		r.grantTo(r.claim(originClaim), tenantsOnly)
		r.isWhole()
	}},
	{"only the mirror, claim first", func(r *restoration, _ *corev1.PersistentVolumeClaim) {
		r.lose(backedClaim, backedVolume)
		r.restore(backedClaim)
		r.restore(backedVolume)
		r.isWhole()
	}},
	{"only the mirror, volume first", func(r *restoration, _ *corev1.PersistentVolumeClaim) {
		r.lose(backedClaim, backedVolume)
		r.restore(backedVolume)
		r.restore(backedClaim)
		r.isWhole()
	}},
	{"only the mirror claim", func(r *restoration, _ *corev1.PersistentVolumeClaim) {
		r.lose(backedClaim)
		r.restore(backedClaim)
		r.isWhole()
	}},
	{"the mirror, whose grant has ended", func(r *restoration, _ *corev1.PersistentVolumeClaim) {
		r.lose(backedClaim, backedVolume)
		r.grantTo(r.claim(originClaim), "nobody=yes")
		r.restore(backedClaim)
		claim := r.claim(backedClaim)
		r.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		r.absent(r.volume(backedVolume))
		r.restore(backedVolume)
		r.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		if r.uids || r.bindings { // else the binder itself binds what names each other
			r.stillPending(claim)
		}
		r.grantTo(r.claim(originClaim), tenantsOnly)
		r.isWhole()
	}},
	{"the mirror, asking to read only what it could write", func(r *restoration, _ *corev1.PersistentVolumeClaim) {
		r.lose(backedClaim, backedVolume)
		claim, _ := r.backup[backedClaim].(*corev1.PersistentVolumeClaim)
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		r.restore(backedClaim)
		r.restore(backedVolume)
		_, volume := r.isWhole()
		if !slices.Contains(volume.Spec.MountOptions, "ro") {
			r.Errorf("a mirror that asks to read can write:\n%s", r.show(volume))
		}
	}},
}

// now returns the UID that a restored object has now.
func (r *restoration) now(what string) any {
	object := live(r.backup[what])
	r.must(r.Get(r.Context(), keyOf(object), object), "get the %s", what)
	return object.GetUID()
}

// TestRestoreOfParts restores some objects of a mirror whose others lived on.
func TestRestoreOfParts(t *testing.T) {
	onEachGate(t, func(w *world) {
		t := w.T
		for _, tc := range restorations {
			for _, keep := range keepings {
				if w.gateOn != (keep.uids == keep.bindings) {
					continue // two of the ways on each plane
				}
				t.Run(tc.name+", keeping "+keep.name, func(t *testing.T) {
					t.Parallel()
					w := w.in(t)
					o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
					claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
					r := &restoration{world: w, keeping: keep, name: tc.name}
					r.back(o, claim, w.isBound(claim))
					tc.run(r, claim)
				})
			}
		}
	})
}

// TestRestoredNameIsNobodysKey is a claim that pretends to be restored, to come
// by the volume of another claim or by one under its name.
func TestRestoredNameIsNobodysKey(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant, other := w.namespace("tenant", map[string]string{"type": "tenant"}), w.namespace("other", map[string]string{"type": "tenant"})
		victim := w.mirror(tenant, "victim", o)
		volume := w.isBound(victim)
		before := volume.DeepCopy()

		naming := func(name string) claimEdit {
			return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = name }
		}
		for _, claim := range []*corev1.PersistentVolumeClaim{
			w.mirror(tenant, "neighbour", o, naming(volume.Name)),
			w.mirror(other, "victim", o, naming(volume.Name)),
			w.mirror(other, "stranger", o, naming(volume.Name)),
			w.mirror(tenant, "origins", o, naming(o.volume.Name)),
			w.mirror(tenant, "upper", o, naming("pvc-"+strings.Repeat("0", 36))),
			w.mirror(tenant, "longer", o, naming(volume.Name+"0")),
			w.mirror(tenant, "any", o, naming(w.prefix+"-any")),
		} {
			w.isRefused(claim, mirror.ClaimNamesVolume)
			w.stillPending(claim)
			w.absent(mirrorVolume(claim))
		}
		taken := w.mirror(other, "taken", o, naming(volume.Name), annotating("pv.kubernetes.io/bind-completed", "yes"))
		w.until("the binder calls it Lost", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(taken), taken), "get the claim")
			return unless(taken.Status.Phase == corev1.ClaimLost, string(taken.Status.Phase))
		}, taken)
		if got := w.isBound(victim); got.UID != before.UID || got.Spec.ClaimRef.UID != before.Spec.ClaimRef.UID ||
			mirror.RecordOf(names, got) != mirror.RecordOf(names, before) {
			w.Errorf("the mirror that they named has changed:\n%s", w.show(got))
		}
	})
}
