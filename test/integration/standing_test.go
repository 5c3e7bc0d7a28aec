package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// What TestModel found, each kind of it once more by itself.

// TestExpiryEndsWhatIsTold lets a grant end by itself while something else
// stands in the way of claims that it covers: from then on they are told no more
// than anybody without a grant.
func TestExpiryEndsWhatIsTold(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		large := w.mirror(tenant, "large", o, ofSize("11Gi"))
		w.isRefused(large, mirror.TooLarge)
		bound := w.mirror(tenant, "bound", o)
		w.isBound(bound)
		w.merge(o.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:%q,%q:%q}}}`, names.ReadWriteGrant(),
			names.ReadOnlyGrant(), tenantsOnly, names.GrantExpires(), time.Now().Add(2*time.Second).UTC().Format(time.RFC3339Nano)))
		w.isSaid(bound, corev1.ConditionFalse, mirror.GrantReadOnly)
		w.isSaid(large, corev1.ConditionFalse, mirror.NotShared)
		w.isSaid(bound, corev1.ConditionFalse, mirror.NotShared)
	})
}

// TestVolumeBeingDeleted is a mirror volume that somebody deletes by hand: as
// long as its claim lives Kubernetes keeps it, and for so long it is a mirror
// like any other, whose grant can end and which is put back when it is edited.
func TestVolumeBeingDeleted(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		volume := w.isBound(claim)
		w.must(w.Delete(w.Context(), volume), "delete the mirror volume")
		w.isSaid(claim, corev1.ConditionFalse, mirror.VolumeLost)
		w.merge(volume, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		w.isSafe(volume)
		w.grantTo(o.PersistentVolumeClaim, "nobody=yes")
		w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		w.until("since when is recorded", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
			return unless(volume.Annotations[names.RevokedAt()] != "", "it is not")
		}, volume, claim)
		w.grantTo(o.PersistentVolumeClaim, tenantsOnly)
		w.isSaid(claim, corev1.ConditionFalse, mirror.VolumeLost)
		w.until("it is taken back", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
			return unless(volume.Annotations[names.RevokedAt()] == "", "it is recorded")
		}, volume, claim)
		w.must(w.Delete(w.Context(), claim), "delete the claim")
		w.isGone(volume)
	})
}

// isSafe waits until a mirror volume is one that no driver takes for its own.
func (w *world) isSafe(volume *corev1.PersistentVolume) {
	w.Helper()
	w.until("volume is Retain and Mooring's", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
		by := volume.Annotations["pv.kubernetes.io/provisioned-by"]
		isRetain := volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		return unless(isRetain && by == names.Provisioner(), fmt.Sprintf("%s, %q", volume.Spec.PersistentVolumeReclaimPolicy, by))
	}, volume)
}

// TestReleasedForRestored is a mirror volume that is Released until its claim,
// restored from a backup under another UID, is granted again: a driver that
// deletes what is Released must never take it for its own, and nobody may be bound
// to it, whatever is edited. Should the binder be faster and give it to the
// restored claim, whose name it has, that one is told that it is not let in.
func TestReleasedForRestored(t *testing.T) {
	for name, edit := range map[string]string{
		"policy and provisioner": `{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":null}},"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`,
		"UID":                    `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`,
		"claimRef":               `{"spec":{"claimRef":null}}`,
		"claimRef's name":        `{"spec":{"claimRef":{"uid":null,"name":"thief","resourceVersion":null}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			onEachGate(t, func(w *world) {
				o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
				claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
				volume := w.isBound(claim)
				w.merge(volume, `{"metadata":{"finalizers":["example.com/held"]}}`) // until the claim is back
				w.grantTo(o.PersistentVolumeClaim, "nobody=yes")
				w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
				restored := claim.DeepCopy()
				restored.ObjectMeta = metaNamed(claim.Name)
				restored.Namespace, restored.Annotations = claim.Namespace, map[string]string{names.Origin(): o.Namespace + "/" + o.Name}
				w.must(w.Delete(w.Context(), claim), "delete the claim")
				w.isGone(claim)
				w.must(w.Create(w.Context(), restored), "create it anew from its manifest")
				w.merge(volume, edit)
				w.isSafe(volume)
				w.until("nobody can be bound to it", func(ctx context.Context) string {
					w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
					w.must(w.Get(ctx, keyOf(restored), restored), "get the claim")
					ref := volume.Spec.ClaimRef
					if ref == nil || ref.Name != claim.Name {
						return "its claimRef is another's"
					}
					isReleased := ref.UID == claim.UID && volume.Status.Phase == corev1.VolumeReleased
					isTold := ref.UID == restored.UID && conditionOf(restored).Reason == string(mirror.NotShared)
					return unless(isReleased || isTold, string(volume.Status.Phase))
				}, volume, restored)
				w.merge(volume, `{"metadata":{"finalizers":null}}`)
			})
		})
	}
}

// TestVolumeGoesBeforeItsClaimIsBack restores a claim whose former volume is being
// deleted: that one is let go, and the claim gets another of its name.
func TestVolumeGoesBeforeItsClaimIsBack(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		volume := w.isBound(claim)
		w.merge(volume, `{"metadata":{"finalizers":["example.com/held"]}}`)
		w.must(w.Delete(w.Context(), claim), "delete the claim")
		w.isGone(claim)
		w.isTerminating(volume)
		restored := claim.DeepCopy()
		restored.ObjectMeta = metaNamed(claim.Name)
		restored.Namespace, restored.Annotations = claim.Namespace, map[string]string{
			names.Origin(): o.Namespace + "/" + o.Name, "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
		w.must(w.Create(w.Context(), restored), "create it anew from its manifest")
		w.until("it is lost", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(restored), restored), "get the claim")
			return unless(restored.Status.Phase == corev1.ClaimLost, string(restored.Status.Phase))
		}, restored, volume)
		w.merge(volume, `{"metadata":{"finalizers":null}}`)
		w.until("it is bound to a volume that lives", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(restored), restored), "get the claim")
			now := &corev1.PersistentVolume{ObjectMeta: metaNamed(volume.Name)}
			if err := w.Get(ctx, keyOf(now), now); err != nil {
				return err.Error()
			}
			return unless(now.UID != volume.UID && now.DeletionTimestamp == nil && restored.Status.Phase == corev1.ClaimBound, string(restored.Status.Phase))
		}, restored, volume)
	})
}

// TestEditedRecordKeepsOrigin edits the record of a mirror volume, in every way
// by which it no longer names its origin, while that is being deleted: it is
// kept all the same.
func TestEditedRecordKeepsOrigin(t *testing.T) {
	onEachGate(t, func(w *world) {
		t := w.T
		for name, patch := range map[string]string{
			"another origin": fmt.Sprintf(`{%q:"else/where"}`, names.OriginClaim()),
			"no origin":      fmt.Sprintf(`{%q:null}`, names.OriginClaim()),
			"no record":      fmt.Sprintf(`{%q:null,%q:null,%q:null}`, names.OriginClaim(), names.MirrorClaim(), names.MirrorClaimUID()),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := w.in(t)
				o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
				claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
				volume := w.isBound(claim)
				w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
				w.isSaid(claim, corev1.ConditionFalse, mirror.OriginTerminating)
				w.merge(volume, `{"metadata":{"annotations":`+patch+`}}`)
				w.until("the record is back", func(ctx context.Context) string {
					w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
					return unless(volume.Annotations[names.OriginClaim()] == o.Namespace+"/"+o.Name, volume.Annotations[names.OriginClaim()])
				}, volume, claim)
				w.must(w.Get(w.Context(), keyOf(o), o.PersistentVolumeClaim), "get the origin, which is kept")
				w.must(w.Delete(w.Context(), claim), "delete the claim")
				w.isGone(o.PersistentVolumeClaim)
			})
		}
	})
}

// TestSizeWithoutOrigin edits the size of a mirror volume whose origin is gone,
// so that there is nothing to follow: it is not above its claim's all the same.
func TestSizeWithoutOrigin(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly), annotating(names.AllowDeletion(), "true"))
		volume := w.isBound(w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o))
		w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
		w.isGone(o.PersistentVolumeClaim)
		w.must(w.Delete(w.Context(), o.volume), "delete the origin's volume")
		w.isGone(o.volume)
		w.merge(volume, `{"spec":{"capacity":{"storage":"90Gi"}}}`)
		w.until("the size is put back", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
			return unless(volume.Spec.Capacity.Storage().String() == gibibytes, volume.Spec.Capacity.Storage().String())
		}, volume)
	})
}

// TestFormerNameIsFree is a claim that names the volume of another claim, which
// goes before it got one: the name is nobody's then, as after a restore.
func TestFormerNameIsFree(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		other := w.mirror(tenant, "other", o, ofSize("11Gi"))
		w.isRefused(other, mirror.TooLarge)
		claim := w.mirror(w.namespace("tenant2", map[string]string{"type": "tenant"}), "m", o, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = mirror.VolumeName(other.UID) })
		w.isRefused(claim, mirror.ClaimNamesVolume)
		w.must(w.Delete(w.Context(), other), "delete the other claim")
		w.until("it is bound", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(claim), claim), "get the claim")
			return unless(claim.Status.Phase == corev1.ClaimBound, string(claim.Status.Phase))
		}, claim)
	})
}

// TestStrippedLeftoverGoes removes the record of a mirror volume and deletes its
// claim at once: the volume goes, and does not keep its origin for ever.
func TestStrippedLeftoverGoes(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		volume := w.isBound(claim)
		w.must(w.Delete(w.Context(), claim), "delete the claim")
		_ = w.Patch(w.Context(), volume, jsonMerge(fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null,%q:null}}}`,
			names.OriginClaim(), names.MirrorClaim(), names.MirrorClaimUID()))) // fails where the volume is gone already
		w.isGone(volume)
		w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
		w.isGone(o.PersistentVolumeClaim)
	})
}

// TestStrippedIsReserved takes the record from a mirror volume, and with it what
// reserves it for its claim: no other claim is bound to it, the claim has it
// again, and the record is there again.
func TestStrippedIsReserved(t *testing.T) {
	for name, ref := range map[string]string{
		"no claimRef":           `null`,
		"no UID":                `{"uid":null,"resourceVersion":null}`,
		"another's name":        `{"uid":null,"name":"thief","resourceVersion":null}`,
		"another's namespace":   `{"uid":null,"namespace":"elsewhere","resourceVersion":null}`,
		"nothing but its claim": `{"uid":null,"resourceVersion":null,"kind":null,"apiVersion":null}`,
		"another's UID":         `{"name":"thief","uid":"THIEF","resourceVersion":null}`, // as the binder may leave it
	} {
		t.Run(name, func(t *testing.T) {
			onEachGate(t, func(w *world) {
				o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
				tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
				claim := w.mirror(tenant, "m", o)
				volume := w.isBound(claim)
				thief := w.claimOf(tenant, "thief", class)
				thief.Spec.VolumeName = volume.Name
				w.must(w.Create(w.Context(), thief), "create the thief")
				ref := strings.ReplaceAll(ref, "THIEF", string(thief.UID))
				w.merge(volume, fmt.Sprintf(`{"metadata":{"annotations":null},"spec":{"claimRef":%s}}`, ref))
				w.until("the volume is its claim's again, and says so", func(ctx context.Context) string {
					w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
					w.must(w.Get(ctx, keyOf(claim), claim), "get the claim")
					whole := mirror.IsMirrorOf(names, volume, claim) && mirror.RecordOf(names, volume).Origin == keyOf(o)
					return unless(whole && claim.Status.Phase == corev1.ClaimBound, string(claim.Status.Phase))
				}, volume, claim)
				w.until("the thief has nothing", func(ctx context.Context) string {
					w.must(w.Get(ctx, keyOf(thief), thief), "get the thief")
					lost := thief.Status.Phase == corev1.ClaimLost && conditionOf(thief).Reason == string(mirror.MirrorOfAnother)
					return unless(lost || thief.Status.Phase == corev1.ClaimPending, string(thief.Status.Phase))
				}, thief)
				w.must(w.Delete(w.Context(), claim), "delete the claim")
				w.isGone(volume)
			})
		})
	}
}

// TestStrippedAndUnclaimedGoes takes record and UID from a volume while its claim
// is being deleted: nobody is bound to it, and it goes.
func TestStrippedAndUnclaimedGoes(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		volume := w.isBound(claim)
		w.must(w.Delete(w.Context(), claim), "delete the claim")
		_ = w.Patch(w.Context(), volume, jsonMerge(`{"metadata":{"annotations":null},"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)) // fails where the volume is gone already
		w.isGone(volume)
	})
}

// TestOneVoice is a claim that names, in the way of a restore, a volume of
// Mooring's which has lost its record, and is not bound to it: what it is told
// comes to an end.
func TestOneVoice(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data")
		former := string(uuid.NewUUID())
		stripped := &corev1.PersistentVolume{ObjectMeta: metaNamed("pvc-" + former)}
		inTreeNFS(stripped)
		stripped.Labels = map[string]string{names.OriginLabel(): mirror.OriginHash(keyOf(o))}
		stripped.Spec.AccessModes, stripped.Spec.Capacity = o.volume.Spec.AccessModes, o.volume.Spec.Capacity
		stripped.Spec.StorageClassName = "mirror-00000000000000000000"
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = stripped.Name })
		stripped.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: types.UID(former)}
		w.must(w.Create(w.Context(), stripped), "create the volume without a record")
		w.Cleanup(func() { _ = w.Delete(context.Background(), stripped) })
		w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		w.origin(w.namespace("barrier", nil), "barrier")
		w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		if n := len(w.events(claim)); n > 1 {
			w.Errorf("it was told %d times:\n%s", n, w.show(claim))
		}
	})
}

// TestRestoredToOtherData is a claim restored from a backup that names its former
// volume, while its origin has other data by now: it does not get the volume,
// and is told so.
func TestRestoredToOtherData(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data")
		former := string(uuid.NewUUID())
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-" + former })
		w.isRefused(claim, mirror.NotShared)
		volume := w.mirrorVolumeOf(claim, o)
		volume.Name = "pvc-" + former
		volume.Spec.CSI.VolumeAttributes["share"] = "/export/former"
		volume.Spec.ClaimRef.UID = types.UID(former)
		volume.Annotations[names.MirrorClaimUID()] = former
		volume.Annotations[names.OriginClaimUID()] = "former"
		w.must(w.Create(w.Context(), volume), "create the former volume")
		w.Cleanup(func() { _ = w.Delete(context.Background(), volume) })
		w.grantTo(o.PersistentVolumeClaim, tenantsOnly)
		w.isSaid(claim, corev1.ConditionFalse, mirror.OriginReplaced)
		w.stillPending(claim)
	})
}
