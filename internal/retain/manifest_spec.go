package retain

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkSpec(raw map[string]any, spec *corev1.PersistentVolumeSpec) field.ErrorList {
	path := field.NewPath("spec")
	rawSpec := child(raw, "spec")
	var errs field.ErrorList
	errs = append(errs, checkReclaimPolicy(path.Child("persistentVolumeReclaimPolicy"), spec.PersistentVolumeReclaimPolicy)...)
	errs = append(errs, checkClaimRef(path.Child("claimRef"), spec.ClaimRef)...)
	errs = append(errs, checkClass(path.Child("storageClassName"), rawSpec)...)
	errs = append(errs, checkCapacity(path.Child("capacity"), spec.Capacity)...)
	errs = append(errs, checkAccessModes(path.Child("accessModes"), spec.AccessModes)...)
	errs = append(errs, checkVolumeMode(path.Child("volumeMode"), spec)...)
	errs = append(errs, checkMountOptions(path.Child("mountOptions"), spec.MountOptions)...)
	return append(errs, checkSource(path, rawSpec, spec)...)
}

func checkReclaimPolicy(path *field.Path, policy corev1.PersistentVolumeReclaimPolicy) field.ErrorList {
	if policy == corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	if policy == "" {
		return field.ErrorList{field.Required(path, "expected Retain, written out: what must never be lost is not left to a default")}
	}
	return field.ErrorList{field.NotSupported(path, policy, []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRetain})}
}

func checkClaimRef(path *field.Path, ref *corev1.ObjectReference) field.ErrorList {
	if ref == nil {
		return field.ErrorList{field.Required(path, "expected kind, namespace and name of the only claim that may bind the volume")}
	}
	var errs field.ErrorList
	if ref.Kind != "PersistentVolumeClaim" {
		errs = append(errs, field.NotSupported(path.Child("kind"), ref.Kind, []string{"PersistentVolumeClaim"}))
	}
	if ref.APIVersion != "" && ref.APIVersion != "v1" {
		errs = append(errs, field.NotSupported(path.Child("apiVersion"), ref.APIVersion, []string{"v1"}))
	}
	if ref.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "the API accepts a volume without it, which can never bind"))
	} else if problems := validation.IsDNS1123Label(ref.Namespace); len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("namespace"), ref.Namespace, strings.Join(problems, "; ")))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "expected the claim's name"))
	} else {
		errs = append(errs, checkName(path.Child("name"), ref.Name)...)
	}
	for name, value := range map[string]string{"uid": string(ref.UID), "resourceVersion": ref.ResourceVersion, "fieldPath": ref.FieldPath} {
		if value != "" {
			errs = append(errs, field.Forbidden(path.Child(name), "is written by the binder; leave it out"))
		}
	}
	return errs
}

// checkClass asks for an explicit class, since "none" and "forgotten" look the
// same otherwise.
func checkClass(path *field.Path, rawSpec map[string]any) field.ErrorList {
	value, given := rawSpec["storageClassName"]
	if !given {
		return field.ErrorList{field.Required(path, `expected the claim's class, or "" for a claim without one`)}
	}
	if class, isText := value.(string); isText && class != "" {
		return checkName(path, class)
	}
	return nil
}

func checkCapacity(path *field.Path, capacity corev1.ResourceList) field.ErrorList {
	storage, given := capacity[corev1.ResourceStorage]
	switch {
	case !given || len(capacity) != 1:
		return field.ErrorList{field.Required(path.Child("storage"), "expected this entry and no other, such as storage: 10Gi")}
	case storage.Sign() <= 0 || !isWhole(storage):
		return field.ErrorList{field.Invalid(path.Child("storage"), storage.String(), "expected a whole number of bytes above 0, such as 10Gi")}
	}
	return nil
}

// isWhole says whether a quantity is a whole number. MilliValue would overflow
// above 8 PiB.
func isWhole(q resource.Quantity) bool {
	rounded := q.DeepCopy()
	return rounded.RoundUp(0)
}

var knownModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
}

func checkAccessModes(path *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(path, "expected at least one, such as ReadWriteMany")}
	}
	var errs field.ErrorList
	for i, mode := range modes {
		if !slices.Contains(knownModes, mode) {
			errs = append(errs, field.NotSupported(path.Index(i), mode, knownModes))
		}
		if slices.Contains(modes[:i], mode) {
			errs = append(errs, field.Duplicate(path.Index(i), mode))
		}
	}
	if len(modes) > 1 && slices.Contains(modes, corev1.ReadWriteOncePod) {
		errs = append(errs, field.Invalid(path, corev1.ReadWriteOncePod, "expected no other mode beside it"))
	}
	return errs
}

func checkVolumeMode(path *field.Path, spec *corev1.PersistentVolumeSpec) field.ErrorList {
	if spec.VolumeMode == nil || *spec.VolumeMode == corev1.PersistentVolumeFilesystem {
		return nil
	}
	if *spec.VolumeMode != corev1.PersistentVolumeBlock {
		return field.ErrorList{field.NotSupported(path, *spec.VolumeMode, []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock})}
	}
	if spec.NFS != nil || spec.CSI != nil && isFileDriver(spec.CSI.Driver) {
		return field.ErrorList{field.Invalid(path, *spec.VolumeMode, "a network file system has no blocks; expected Filesystem")}
	}
	return nil
}

func checkMountOptions(path *field.Path, options []string) field.ErrorList {
	var errs field.ErrorList
	for i, option := range options {
		switch {
		case looksSecret(option):
			errs = append(errs, field.Forbidden(path.Index(i), "looks like a password; receipts and everybody who reads volumes would show it: use a Secret"))
		case option == "" || strings.ContainsFunc(option, notPrintable):
			errs = append(errs, field.Invalid(path.Index(i), option, "expected one mount option without white space, such as nfsvers=4.1"))
		}
	}
	return errs
}

// specFields are the fields of a volume's spec beside its source. What is
// neither one of them nor an accepted source is a source that is not accepted.
var specFields = []string{
	"capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName",
	"mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName",
}

func checkSource(path *field.Path, rawSpec map[string]any, spec *corev1.PersistentVolumeSpec) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(rawSpec)) {
		if !slices.Contains(specFields, name) && name != "nfs" && name != "csi" {
			errs = append(errs, field.Forbidden(path.Child(name), "is not a source that Mooring can compare; expected nfs or csi"))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if (spec.NFS == nil) == (spec.CSI == nil) {
		return field.ErrorList{field.Required(path, "expected exactly one source: nfs or csi")}
	}
	if attributesClass := spec.VolumeAttributesClassName; attributesClass != nil {
		errs = append(errs, checkAttributesClass(path.Child("volumeAttributesClassName"), *attributesClass, spec.CSI != nil)...)
	}
	if spec.NFS != nil {
		return append(errs, checkNFS(path.Child("nfs"), spec.NFS)...)
	}
	return append(errs, checkCSI(path.Child("csi"), spec.CSI)...)
}

func checkAttributesClass(path *field.Path, class string, isCSI bool) field.ErrorList {
	if !isCSI {
		return field.ErrorList{field.Forbidden(path, "only CSI drivers know volume attributes classes; leave it out")}
	}
	return checkName(path, class)
}
