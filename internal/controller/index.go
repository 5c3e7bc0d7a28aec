package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// The indexes by which a change finds exactly the claims and volumes that
// depend on it, without a scan.
const (
	claimsByOrigin = "mooring.origin"       // claims by any origin they could mean
	claimsByClass  = "mooring.class"        // claims by StorageClass name
	claimsByWish   = "mooring.wish"         // claims that name any origin: wish
	claimsByVolume = "mooring.volume"       // claims by the names that their mirror volume could have
	volumesByPair  = "mooring.pair"         // mirror volumes by origin and mirror's namespace
	volumesOf      = "mooring.mirrorsOf"    // mirror volumes by origin
	volumesByClaim = "mooring.mirrorClaims" // mirror volumes by recorded claim
	volumesIn      = "mooring.mirrorsIn"    // mirror volumes by the mirror's namespace
	volumesThatAre = "mooring.state"        // mirror volumes by state: mirrors, revoked
	wish           = "yes"

	mirrors = "mirrors" // all of them
	revoked = "revoked" // those that have lost their grant
)

// indexes registers the indexes with the cache.
func indexes(ctx context.Context, indexer client.FieldIndexer, names mooringapi.Names) error {
	claims := map[string]client.IndexerFunc{
		claimsByOrigin: func(object client.Object) []string { return keys(mirror.Origins(names, asClaim(object))) },
		claimsByClass:  func(object client.Object) []string { return one(className(asClaim(object))) },
		claimsByVolume: func(object client.Object) []string { return volumeNames(asClaim(object)) },
		claimsByWish: func(object client.Object) []string {
			if wishes(names, asClaim(object)) {
				return one(wish)
			}
			return nil
		},
	}
	for field, index := range claims {
		if err := indexer.IndexField(ctx, &corev1.PersistentVolumeClaim{}, field, index); err != nil {
			return err
		}
	}
	volumes := map[string]func(mirror.Record) []string{
		volumesOf:      func(r mirror.Record) []string { return one(r.Origin.String()) },
		volumesByPair:  func(r mirror.Record) []string { return one(pair(r.Origin, r.Claim.Namespace)) },
		volumesByClaim: func(r mirror.Record) []string { return one(r.Claim.String()) },
		volumesIn:      func(r mirror.Record) []string { return one(r.Claim.Namespace) },
		volumesThatAre: statesOf,
	}
	for field, key := range volumes {
		index := func(object client.Object) []string {
			volume, _ := object.(*corev1.PersistentVolume)
			if record := mirror.RecordOf(names, volume); record.IsMirror() {
				return key(record)
			}
			return nil
		}
		if err := indexer.IndexField(ctx, &corev1.PersistentVolume{}, field, index); err != nil {
			return err
		}
	}
	return nil
}

// wishes reports whether a claim names an origin in either form, well or badly.
func wishes(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) bool {
	ref := claim.Spec.DataSourceRef
	return mirror.AsksForMirror(names, claim) || ref != nil && ref.Namespace != nil
}

// volumeNames returns the name of a claim's mirror volume, and of the one that a
// restored claim names.
func volumeNames(claim *corev1.PersistentVolumeClaim) []string {
	own := mirror.VolumeName(claim.UID)
	if name := mirror.NameOf(claim); name != own {
		return []string{own, name}
	}
	return []string{own}
}

func statesOf(record mirror.Record) []string {
	if record.RevokedAt.IsZero() {
		return []string{mirrors}
	}
	return []string{mirrors, revoked}
}

func asClaim(object client.Object) *corev1.PersistentVolumeClaim {
	claim, _ := object.(*corev1.PersistentVolumeClaim)
	return claim
}

func className(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

// pair is a key of volumesByPair; a namespace has no slash, so it is unique.
func pair(origin types.NamespacedName, namespace string) string {
	return namespace + "/" + origin.String()
}

func keys(origins []types.NamespacedName) []string {
	var keys []string
	for _, origin := range origins {
		keys = append(keys, origin.String())
	}
	return keys
}

func one(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}
