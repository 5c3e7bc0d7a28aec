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
	claimsByUID    = "mooring.uid"          // claims by the name of their mirror volume
	volumesByPair  = "mooring.pair"         // mirror volumes by origin and mirror's namespace
	volumesOf      = "mooring.mirrorsOf"    // mirror volumes by origin
	volumesByClaim = "mooring.mirrorClaims" // mirror volumes by recorded claim
	wish           = "yes"
)

// indexes registers the indexes with the cache.
func indexes(ctx context.Context, indexer client.FieldIndexer, names mooringapi.Names) error {
	claims := map[string]client.IndexerFunc{
		claimsByOrigin: func(object client.Object) []string { return keys(mirror.Origins(names, asClaim(object))) },
		claimsByClass:  func(object client.Object) []string { return one(className(asClaim(object))) },
		claimsByUID:    func(object client.Object) []string { return one(mirror.VolumeName(object.GetUID())) },
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
	volumes := map[string]func(mirror.Record) string{
		volumesOf:      func(r mirror.Record) string { return r.Origin.String() },
		volumesByPair:  func(r mirror.Record) string { return pair(r.Origin, r.Claim.Namespace) },
		volumesByClaim: func(r mirror.Record) string { return r.Claim.String() },
	}
	for field, key := range volumes {
		index := func(object client.Object) []string {
			volume, _ := object.(*corev1.PersistentVolume)
			if record := mirror.RecordOf(names, volume); record.IsMirror() {
				return one(key(record))
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
