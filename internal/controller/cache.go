package controller

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// CacheOptions returns the options of a cache that keeps only what decisions
// read, so that memory follows the number of objects and not what others write
// on them. Whatever reads from this cache gets stripped objects: they are for
// deciding, never for writing back.
func CacheOptions(names mooringapi.Names) cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.PersistentVolumeClaim{}: {Transform: stripClaim(names)},
			&corev1.PersistentVolume{}:      {Transform: stripVolume(names)},
		},
	}
}

// storageProvisioner is the annotation by which kube-controller-manager says
// whom a claim waits for (component-helpers storage/volume, AnnStorageProvisioner).
const storageProvisioner = "volume.kubernetes.io/storage-provisioner"

func stripClaim(names mooringapi.Names) toolscache.TransformFunc {
	return func(object any) (any, error) {
		claim, ok := object.(*corev1.PersistentVolumeClaim)
		if !ok {
			return object, nil
		}
		stripMeta(names, &claim.ObjectMeta)
		claim.Labels = nil
		stripAnnotations(names, claim.Annotations)
		stripSpec(&claim.Spec)
		claim.Status.Conditions = keepCondition(claim.Status.Conditions, names.Condition())
		return claim, nil
	}
}

// longestKept is how much is kept of a text that can only be refused if it is
// longer: more than any name has, and than any message quotes (mirror, quote).
const longestKept = 2048

// stripAnnotations keeps of a claim's annotations those that decisions read, and of
// each no more than decides. Whoever may create claims may write 256 KiB into each
// of them, and each of these bytes would be in the controller's memory.
func stripAnnotations(names mooringapi.Names, annotations map[string]string) {
	longest := map[string]int{
		names.Origin(): longestKept, names.AllowDeletion(): longestKept, names.GrantExpires(): longestKept, storageProvisioner: longestKept,
		// One byte above the limit is refused as any greater length is.
		names.ReadWriteGrant(): mooringapi.MaxSelectorBytes + 1, names.ReadOnlyGrant(): mooringapi.MaxSelectorBytes + 1,
	}
	for key, value := range annotations {
		if most, read := longest[key]; !read {
			delete(annotations, key)
		} else if len(value) > most {
			annotations[key] = strings.Clone(value[:most])
		}
	}
}

// stripSpec does the same to what the API server asks no length of.
func stripSpec(spec *corev1.PersistentVolumeClaimSpec) {
	shorten := func(text *string) {
		if len(*text) > longestKept {
			*text = strings.Clone((*text)[:longestKept])
		}
	}
	shorten(&spec.VolumeName)
	if ref := spec.DataSourceRef; ref != nil {
		shorten(&ref.Kind)
		shorten(&ref.Name)
	}
	if spec.DataSource != nil { // that there is one refuses
		spec.DataSource = &corev1.TypedLocalObjectReference{}
	}
	if spec.Selector != nil { // the same
		spec.Selector = &metav1.LabelSelector{}
	}
}

func stripVolume(names mooringapi.Names) toolscache.TransformFunc {
	return func(object any) (any, error) {
		volume, ok := object.(*corev1.PersistentVolume)
		if !ok {
			return object, nil
		}
		stripMeta(names, &volume.ObjectMeta)
		maps.DeleteFunc(volume.Labels, func(key, _ string) bool { return key != names.OriginLabel() })
		return volume, nil
	}
}

// stripMeta keeps of the annotations what belongs to this provisioner name,
// who made or is to make a volume, and the mark of a mirror of whichever name.
func stripMeta(names mooringapi.Names, meta *metav1.ObjectMeta) {
	meta.ManagedFields = nil
	meta.OwnerReferences = nil
	own := names.Provisioner() + "/"
	maps.DeleteFunc(meta.Annotations, func(key, value string) bool {
		return !strings.HasPrefix(key, own) && key != mooringapi.ProvisionedBy && key != storageProvisioner &&
			!mooringapi.IsMirrorVolume(map[string]string{key: value})
	})
}

func keepCondition(conditions []corev1.PersistentVolumeClaimCondition, kind string) []corev1.PersistentVolumeClaimCondition {
	for _, condition := range conditions {
		if string(condition.Type) == kind {
			return []corev1.PersistentVolumeClaimCondition{condition}
		}
	}
	return nil
}
