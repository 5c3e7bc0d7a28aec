package controller

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// waker finds, for a change of any object, exactly the claims, volumes and
// origins that depend on it. Every method is a handler.MapFunc.
type waker struct {
	names mooringapi.Names
	cache reader
}

// itself wakes a claim that may be a mirror claim. Claims of other classes,
// that is nearly all, go no further.
func (w waker) itself(ctx context.Context, object client.Object) []reconcile.Request {
	claim := asClaim(object)
	if !wishes(w.names, claim) {
		class, err := w.cache.class(ctx, className(claim))
		if err != nil {
			log.FromContext(ctx).Error(err, "read a class from the cache", "claim", client.ObjectKeyFromObject(claim))
		}
		if class == nil || class.Provisioner != w.names.Provisioner() {
			return nil
		}
	}
	return requests(client.ObjectKeyFromObject(claim))
}

// siblings wakes, when a claim is gone, the claims of its namespace that it may
// have stood in the way of, since one of them may be the oldest now; and those
// that name its volume, since that name is nobody's now.
func (w waker) siblings(ctx context.Context, object client.Object) []reconcile.Request {
	woken := w.claims(ctx, claimsByVolume, mirror.VolumeName(object.GetUID()))
	for _, origin := range mirror.Origins(w.names, asClaim(object)) {
		woken = append(woken, w.duplicates(ctx, origin, object.GetNamespace())...)
	}
	return woken
}

// duplicates wakes the claims of a namespace that were told that another one has
// the origin. One that is about to be told decides once more when the cache
// shows that; all others, and there may be many, depend on no sibling.
func (w waker) duplicates(ctx context.Context, origin types.NamespacedName, namespace string) []reconcile.Request {
	claims, err := claimsWhere(ctx, w.cache, claimsByOrigin, origin.String(), client.InNamespace(namespace))
	if err != nil {
		log.FromContext(ctx).Error(err, "list claims from the cache", "index", claimsByOrigin)
	}
	var woken []reconcile.Request
	for i := range claims {
		if said := conditionOf(w.names, &claims[i]); said != nil && said.Reason == string(mirror.DuplicateMirror) {
			woken = append(woken, requests(client.ObjectKeyFromObject(&claims[i]))...)
		}
	}
	return woken
}

// mirrorsOfClaim wakes the claims that name a claim as their origin, and those
// that are its mirrors by the record of their volume.
func (w waker) mirrorsOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	return w.mirrorsOf(ctx, client.ObjectKeyFromObject(object))
}

func (w waker) mirrorsOf(ctx context.Context, origin types.NamespacedName) []reconcile.Request {
	return append(w.claims(ctx, claimsByOrigin, origin.String()), w.recorded(ctx, volumesOf, origin.String())...)
}

// recorded wakes the claims of mirror volumes.
func (w waker) recorded(ctx context.Context, field, value string) []reconcile.Request {
	volumes, err := volumesWhere(ctx, w.cache, field, value)
	if err != nil {
		log.FromContext(ctx).Error(err, "list volumes from the cache", "index", field)
	}
	var woken []reconcile.Request
	for i := range volumes {
		woken = append(woken, requests(mirror.RecordOf(w.names, &volumes[i]).Claim)...)
	}
	return woken
}

// mirrorsOfVolume wakes the claims whose origin is bound to a volume, the claim
// whose mirror volume would have this volume's name, and those of the same
// namespace that a mirror volume stands in the way of.
func (w waker) mirrorsOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	volume, _ := object.(*corev1.PersistentVolume)
	woken := w.claims(ctx, claimsByVolume, volume.Name)
	if ref := volume.Spec.ClaimRef; ref != nil {
		woken = append(woken, w.mirrorsOf(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})...)
	}
	if record := w.record(object); record.IsMirror() {
		woken = append(woken, w.duplicates(ctx, record.Origin, record.Claim.Namespace)...)
	}
	return woken
}

// inNamespace wakes the claims of a namespace that have mirrors, ask for them,
// or are of a class of Mooring's and have yet to be told how to ask.
func (w waker) inNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	in := client.InNamespace(object.GetName())
	woken := append(w.claims(ctx, claimsByWish, wish, in), w.recorded(ctx, volumesIn, object.GetName())...)
	var classes storagev1.StorageClassList
	if err := w.cache.List(ctx, &classes); err != nil {
		log.FromContext(ctx).Error(err, "list classes from the cache")
	}
	for _, class := range classes.Items {
		if class.Provisioner == w.names.Provisioner() {
			woken = append(woken, w.claims(ctx, claimsByClass, class.Name, in)...)
		}
	}
	return woken
}

// ofClass wakes the claims of a class.
func (w waker) ofClass(ctx context.Context, object client.Object) []reconcile.Request {
	return w.claims(ctx, claimsByClass, object.GetName())
}

// ofDriver wakes every claim that asks for a mirror: drivers change seldom.
func (w waker) ofDriver(ctx context.Context, _ client.Object) []reconcile.Request {
	return w.claims(ctx, claimsByWish, wish)
}

// volume wakes a mirror volume, also one without a record.
func (w waker) volume(_ context.Context, object client.Object) []reconcile.Request {
	volume, _ := object.(*corev1.PersistentVolume)
	if !w.record(object).IsMirror() && !mirror.IsFormer(w.names, volume) {
		return nil
	}
	return requests(client.ObjectKeyFromObject(object))
}

// volumesOfClaim wakes the mirror volumes whose record names a claim, and those
// that a mirror claim may have without a record.
func (w waker) volumesOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	woken := w.volumes(ctx, volumesByClaim, client.ObjectKeyFromObject(object).String())
	return append(woken, w.withoutRecord(ctx, object)...)
}

// withoutRecord wakes the volumes without a record of a claim, and of the claims
// that name it as their origin.
func (w waker) withoutRecord(ctx context.Context, object client.Object) []reconcile.Request {
	claim := asClaim(object)
	asking, err := claimsWhere(ctx, w.cache, claimsByOrigin, client.ObjectKeyFromObject(object).String())
	if err != nil {
		log.FromContext(ctx).Error(err, "list claims from the cache", "index", claimsByOrigin)
	}
	var woken []reconcile.Request
	for _, claim := range append(asking, *claim) {
		volume, err := w.cache.volume(ctx, claim.Spec.VolumeName)
		if err == nil && volume != nil && mirror.IsFormer(w.names, volume) {
			woken = append(woken, requests(types.NamespacedName{Name: volume.Name})...)
		}
	}
	return woken
}

// volumesOfOrigin wakes the mirror volumes of the claim that a volume is bound
// to.
func (w waker) volumesOfOrigin(ctx context.Context, object client.Object) []reconcile.Request {
	volume, _ := object.(*corev1.PersistentVolume)
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return nil
	}
	return w.volumes(ctx, volumesOf, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}.String())
}

func (w waker) volumes(ctx context.Context, field, value string) []reconcile.Request {
	volumes, err := volumesWhere(ctx, w.cache, field, value)
	if err != nil {
		log.FromContext(ctx).Error(err, "list volumes from the cache", "index", field)
	}
	var woken []reconcile.Request
	for i := range volumes {
		woken = append(woken, requests(client.ObjectKeyFromObject(&volumes[i]))...)
	}
	return woken
}

// origin wakes a claim that is, was or could be an origin.
func (w waker) origin(_ context.Context, object client.Object) []reconcile.Request {
	return requests(client.ObjectKeyFromObject(object))
}

// mirrored wakes a claim that has mirrors by their record, with or without the
// finalizer: it may have replaced the claim that they were made of.
func (w waker) mirrored(ctx context.Context, object client.Object) []reconcile.Request {
	if len(w.volumes(ctx, volumesOf, client.ObjectKeyFromObject(object).String())) == 0 {
		return nil
	}
	return requests(client.ObjectKeyFromObject(object))
}

// originOfVolume wakes the origin of a mirror volume.
func (w waker) originOfVolume(_ context.Context, object client.Object) []reconcile.Request {
	record := w.record(object)
	if !record.IsMirror() {
		return nil
	}
	return requests(record.Origin)
}

// originsIn wakes the origins of the mirrors in a namespace.
func (w waker) originsIn(ctx context.Context, object client.Object) []reconcile.Request {
	volumes, err := volumesWhere(ctx, w.cache, volumesIn, object.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "list volumes from the cache", "index", volumesIn)
	}
	var woken []reconcile.Request
	for i := range volumes {
		woken = append(woken, requests(w.record(&volumes[i]).Origin)...)
	}
	return woken
}

// heldIn wakes the origins in a namespace, which is being deleted.
func (w waker) heldIn(ctx context.Context, object client.Object) []reconcile.Request {
	var claims corev1.PersistentVolumeClaimList
	if err := w.cache.List(ctx, &claims, client.InNamespace(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list claims from the cache", "namespace", object.GetName())
	}
	var woken []reconcile.Request
	for i := range claims.Items {
		if slices.Contains(claims.Items[i].Finalizers, w.names.Finalizer()) {
			woken = append(woken, requests(client.ObjectKeyFromObject(&claims.Items[i]))...)
		}
	}
	return woken
}

func (w waker) record(object client.Object) mirror.Record {
	volume, _ := object.(*corev1.PersistentVolume)
	return mirror.RecordOf(w.names, volume)
}

func (w waker) claims(ctx context.Context, field, value string, options ...client.ListOption) []reconcile.Request {
	claims, err := claimsWhere(ctx, w.cache, field, value, options...)
	if err != nil {
		log.FromContext(ctx).Error(err, "list claims from the cache", "index", field)
	}
	var woken []reconcile.Request
	for i := range claims {
		woken = append(woken, requests(client.ObjectKeyFromObject(&claims[i]))...)
	}
	return woken
}

func requests(keys ...types.NamespacedName) []reconcile.Request {
	var woken []reconcile.Request
	for _, key := range keys {
		woken = append(woken, reconcile.Request{NamespacedName: key})
	}
	return woken
}

// Predicates: which updates can change a decision at all.

// changed lets creations and deletions pass, and updates that differ.
func changed[T client.Object](differ func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isT := e.ObjectOld.(T)
		after, isT2 := e.ObjectNew.(T)
		return !isT || !isT2 || before.GetUID() != after.GetUID() || differ(before, after)
	}}
}

func claimAsOriginChanged(names mooringapi.Names) predicate.Predicate {
	granting := []string{names.ReadWriteGrant(), names.ReadOnlyGrant(), names.GrantExpires()}
	return changed(func(before, after *corev1.PersistentVolumeClaim) bool {
		for _, key := range granting {
			was, wasThere := before.Annotations[key]
			is, isThere := after.Annotations[key]
			if was != is || wasThere != isThere {
				return true
			}
		}
		return before.Spec.VolumeName != after.Spec.VolumeName || before.Status.Phase != after.Status.Phase ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	})
}

func volumeAsOriginChanged() predicate.Predicate {
	return changed(func(before, after *corev1.PersistentVolume) bool {
		return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Annotations, after.Annotations) ||
			!maps.Equal(before.Labels, after.Labels) || // the cache keeps one, by which an edited record is known
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	})
}

// volumeAsModelChanged lets pass changes of an origin volume that its mirror
// volumes follow.
func volumeAsModelChanged() predicate.Predicate {
	return changed(func(before, after *corev1.PersistentVolume) bool {
		return !equality.Semantic.DeepEqual(before.Spec.NodeAffinity, after.Spec.NodeAffinity) ||
			!equality.Semantic.DeepEqual(before.Spec.Capacity, after.Spec.Capacity) ||
			!equality.Semantic.DeepEqual(before.Spec.MountOptions, after.Spec.MountOptions)
	})
}

func driverChanged() predicate.Predicate {
	return changed(func(before, after *storagev1.CSIDriver) bool {
		return !equality.Semantic.DeepEqual(before.Spec.AttachRequired, after.Spec.AttachRequired)
	})
}

// terminates lets pass an object whose deletion begins.
func terminates() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
		},
	}
}

func labelsChanged() predicate.Predicate {
	return predicate.LabelChangedPredicate{}
}

func classChanged() predicate.Predicate {
	return changed(func(before, after *storagev1.StorageClass) bool {
		return !maps.Equal(before.Annotations, after.Annotations) || !equality.Semantic.DeepEqual(before.AllowVolumeExpansion, after.AllowVolumeExpansion)
	})
}

// gone lets pass claims that are no more, name another origin now, or are bound
// by now: they stand in nobody's way any more, or in another way.
func gone(names mooringapi.Names) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				e.ObjectOld.GetAnnotations()[names.Origin()] != e.ObjectNew.GetAnnotations()[names.Origin()] ||
				asClaim(e.ObjectOld).Spec.VolumeName != asClaim(e.ObjectNew).Spec.VolumeName
		},
	}
}

// concernsOrigins lets pass claims that have a grant or the finalizer, or have
// just lost one.
func concernsOrigins(names mooringapi.Names) predicate.Predicate {
	concerns := func(object client.Object) bool {
		claim := asClaim(object)
		return slices.Contains(claim.Finalizers, names.Finalizer()) || len(grant.Parse(names, claim.Annotations).Problems()) > 0
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return concerns(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return concerns(e.ObjectOld) || concerns(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return concerns(e.Object) },
	}
}
