package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// facts gathers from the cache what a decision about a claim rests on.
func (r *claimReconciler) facts(ctx context.Context, claim *corev1.PersistentVolumeClaim) (mirror.Facts, error) {
	facts := mirror.Facts{
		Names:                r.options.Names,
		Instance:             r.options.Instance,
		RefuseUnknownDrivers: r.options.RefuseUnknownDrivers,
		Now:                  time.Now(),
		Claim:                claim,
	}
	var err error
	if facts.Class, err = r.cache.class(ctx, className(claim)); err != nil {
		return facts, err
	}
	if facts.NamespaceLabels, err = r.cache.namespaceLabels(ctx, claim.Namespace); err != nil {
		return facts, err
	}
	origin := mirror.Origin(r.options.Names, claim)
	if origin.Name == "" {
		return facts, nil
	}
	if facts.Origin, err = r.cache.claim(ctx, origin); err != nil {
		return facts, err
	}
	if err = r.addVolume(ctx, &facts); err != nil {
		return facts, err
	}
	facts.Rivals, err = r.rivals(ctx, origin, claim.Namespace)
	return facts, err
}

// confirm replaces what a yes rests on by live reads: the namespace's labels
// and the origin claim. The origin volume's source is immutable, and that the
// volume is still the origin's is checked by UID.
func (r *claimReconciler) confirm(ctx context.Context, facts *mirror.Facts) error {
	var err error
	if facts.NamespaceLabels, err = r.live.namespaceLabels(ctx, facts.Claim.Namespace); err != nil {
		return err
	}
	if facts.Origin, err = r.live.claim(ctx, mirror.Origin(r.options.Names, facts.Claim)); err != nil {
		return err
	}
	facts.Now = time.Now()
	return r.addVolume(ctx, facts)
}

func (r *claimReconciler) addVolume(ctx context.Context, facts *mirror.Facts) error {
	facts.OriginVolume, facts.Driver = nil, nil
	if facts.Origin == nil {
		return nil
	}
	var err error
	facts.OriginVolume, err = r.cache.volume(ctx, facts.Origin.Spec.VolumeName)
	if err != nil || facts.OriginVolume == nil || facts.OriginVolume.Spec.CSI == nil {
		return err
	}
	facts.Driver, err = r.cache.driver(ctx, facts.OriginVolume.Spec.CSI.Driver)
	return err
}

// rivals returns the claims of a namespace that mirror an origin, by the record
// of their volume, or ask to.
func (r *claimReconciler) rivals(ctx context.Context, origin types.NamespacedName, namespace string) ([]mirror.Rival, error) {
	served, err := r.servedRivals(ctx, origin, namespace)
	if err != nil {
		return nil, err
	}
	asking, err := claimsWhere(ctx, r.cache, claimsByOrigin, origin.String(), client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	rivals := slices.Collect(maps.Values(served))
	for i := range asking {
		claim := &asking[i]
		if _, known := served[claim.UID]; known || mirror.Origin(r.options.Names, claim) != origin {
			continue
		}
		class, err := r.cache.class(ctx, className(claim))
		if err != nil {
			return nil, err
		}
		if rival, ok := mirror.RivalOf(r.options.Names, claim, false); ok && r.isOurs(class) {
			rivals = append(rivals, rival)
		}
	}
	return rivals, nil
}

// servedRivals returns those that have a mirror volume: one that the cache
// knows, or one made so recently that it does not yet.
func (r *claimReconciler) servedRivals(ctx context.Context, origin types.NamespacedName, namespace string) (map[types.UID]mirror.Rival, error) {
	served := map[types.UID]mirror.Rival{}
	if rival, ok := r.sharing.last(pair(origin, namespace), time.Now()); ok {
		claim, err := r.cache.claim(ctx, types.NamespacedName{Namespace: namespace, Name: rival.Name})
		if err != nil {
			return nil, err
		}
		if claim != nil && claim.UID == rival.UID {
			served[rival.UID] = rival
		}
	}
	volumes, err := volumesWhere(ctx, r.cache, volumesByPair, pair(origin, namespace))
	if err != nil {
		return nil, err
	}
	for i := range volumes {
		record := mirror.RecordOf(r.options.Names, &volumes[i])
		claim, err := r.cache.claim(ctx, record.Claim)
		if err != nil {
			return nil, err
		}
		if claim != nil && claim.UID == record.ClaimUID {
			served[claim.UID], _ = mirror.RivalOf(r.options.Names, claim, true)
		}
	}
	return served, nil
}

// isOurs reports whether a class is one of Mooring's.
func (r *claimReconciler) isOurs(class *storagev1.StorageClass) bool {
	return class != nil && class.Provisioner == r.options.Names.Provisioner()
}

// isMirrorClaim reports whether a claim is one to decide about: its class is
// Mooring's; or it asks for a mirror in so many words although its class is
// not, which it is told; or it was told something before.
func (r *claimReconciler) isMirrorClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if mirror.AsksForMirror(r.options.Names, claim) || conditionOf(r.options.Names, claim) != nil {
		return true, nil
	}
	class, err := r.cache.class(ctx, className(claim))
	return r.isOurs(class), err
}

// isServed reports whether this instance serves a namespace with these labels.
func (r *claimReconciler) isServed(namespaceLabels map[string]string) bool {
	selector := r.options.NamespaceSelector
	return selector == nil || namespaceLabels != nil && selector.Matches(labels.Set(namespaceLabels))
}
