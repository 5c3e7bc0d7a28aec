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

// facts gathers what a decision about a claim rests on, from the cache or live;
// but for its rivals, which decide adds where they count.
func (r *claimReconciler) facts(ctx context.Context, from reader, claim *corev1.PersistentVolumeClaim) (mirror.Facts, error) {
	facts := mirror.Facts{
		Names:                r.options.Names,
		Instance:             r.options.Instance,
		RefuseUnknownDrivers: r.options.RefuseUnknownDrivers,
		Claim:                claim,
	}
	var err error
	if facts.Class, err = from.class(ctx, className(claim)); err != nil {
		return facts, err
	}
	if facts.FormerName, err = r.isFormerName(ctx, claim); err != nil {
		return facts, err
	}
	return facts, r.addOrigin(ctx, &facts, from, from)
}

// confirm replaces what a yes rests on by live reads: the namespace's labels
// and the origin claim. The origin volume's source is immutable, and that the
// volume is still the origin's is checked by UID.
func (r *claimReconciler) confirm(ctx context.Context, facts *mirror.Facts) error {
	return r.addOrigin(ctx, facts, r.live, r.cache)
}

// addOrigin fills in the namespace's labels and the origin claim from one
// reader, and the origin's volume and driver from another.
func (r *claimReconciler) addOrigin(ctx context.Context, facts *mirror.Facts, claims, volumes reader) error {
	facts.Now = time.Now()
	facts.Origin, facts.OriginVolume, facts.Driver, facts.Rivals = nil, nil, nil, nil
	var err error
	if facts.NamespaceLabels, err = claims.namespaceLabels(ctx, facts.Claim.Namespace); err != nil {
		return err
	}
	origin := mirror.Origin(r.options.Names, facts.Claim)
	if origin.Name == "" {
		return nil
	}
	if facts.Origin, err = claims.claim(ctx, origin); err != nil || facts.Origin == nil {
		return err
	}
	facts.OriginVolume, err = volumes.volume(ctx, facts.Origin.Spec.VolumeName)
	if err != nil || facts.OriginVolume == nil || facts.OriginVolume.Spec.CSI == nil {
		return err
	}
	facts.Driver, err = volumes.driver(ctx, facts.OriginVolume.Spec.CSI.Driver)
	return err
}

// isFormerName reports whether a claim was restored from a backup and names the
// volume of a claim that is no more. The name of one that is would be a way to
// take another claim's place.
func (r *claimReconciler) isFormerName(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if !mirror.IsRestored(claim) {
		return false, nil
	}
	claims, err := claimsWhere(ctx, r.cache, claimsByVolume, claim.Spec.VolumeName)
	if err != nil {
		return false, err
	}
	for i := range claims {
		if mirror.VolumeName(claims[i].UID) != claim.Spec.VolumeName {
			continue
		}
		// The cache may show a claim that was just deleted, to be restored.
		living, err := r.live.claim(ctx, client.ObjectKeyFromObject(&claims[i]))
		if err != nil || living != nil && living.UID == claims[i].UID {
			return false, err
		}
	}
	return true, nil
}

// decide decides on facts. Rivals are looked for only where the mirror would
// have its origin's handle: elsewhere they do not matter.
func (r *claimReconciler) decide(ctx context.Context, facts *mirror.Facts) (mirror.Decision, error) {
	decision := mirror.Decide(*facts)
	if decision.Verdict != mirror.Allow || !decision.SharesHandle {
		return decision, nil
	}
	var err error
	facts.Rivals, err = r.rivals(ctx, mirror.Origin(r.options.Names, facts.Claim), facts.Claim.Namespace)
	if err != nil {
		return mirror.Decision{}, err
	}
	return mirror.Decide(*facts), nil
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
	if rival, rest := r.sharing.last(pair(origin, namespace), time.Now()); rest > 0 {
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
// not, which it is told; or it was told something before; or it has a mirror
// volume already, whatever became of its class.
func (r *claimReconciler) isMirrorClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (bool, error) {
	if mirror.AsksForMirror(r.options.Names, claim) || conditionOf(r.options.Names, claim) != nil ||
		volume != nil && mirror.RecordOf(r.options.Names, volume).IsMirror() {
		return true, nil
	}
	class, err := r.cache.class(ctx, className(claim))
	return r.isOurs(class), err
}

// isServed reports whether this instance serves a namespace with these labels.
func (r *claimReconciler) isServed(namespaceLabels map[string]string) bool {
	return serves(r.options, namespaceLabels)
}

func serves(options Options, namespaceLabels map[string]string) bool {
	selector := options.NamespaceSelector
	return selector == nil || namespaceLabels != nil && selector.Matches(labels.Set(namespaceLabels))
}
