package retain

import (
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// ownerWritten are the metadata fields that an owner may write.
var ownerWritten = []string{"name", "labels", "annotations"}

// controllerPrefixes are annotations by which Kubernetes' volume controllers
// decide what to do with a volume (component-helpers, storage/volume).
var controllerPrefixes = []string{"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/"}

func isControllers(annotation string) bool {
	return slices.ContainsFunc(controllerPrefixes, func(prefix string) bool { return strings.HasPrefix(annotation, prefix) })
}

func checkMetadata(raw map[string]any, meta *metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata")
	for _, name := range slices.Sorted(maps.Keys(child(raw, "metadata"))) {
		if !slices.Contains(ownerWritten, name) {
			errs = append(errs, field.Forbidden(path.Child(name), "is written by the server and its controllers; leave it out"))
		}
	}
	if _, given := raw["status"]; given {
		errs = append(errs, field.Forbidden(field.NewPath("status"), "is written by the server; leave it out"))
	}
	if meta.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "expected the volume's name, such as projects-home"))
	} else {
		errs = append(errs, checkName(path.Child("name"), meta.Name)...)
	}
	errs = append(errs, metav1validation.ValidateLabels(meta.Labels, path.Child("labels"))...)
	return append(errs, checkAnnotations(path.Child("annotations"), meta.Annotations)...)
}

func checkName(path *field.Path, name string) field.ErrorList {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(problems, "; "))}
	}
	return nil
}

func checkAnnotations(path *field.Path, annotations map[string]string) field.ErrorList {
	errs := apivalidation.ValidateAnnotations(annotations, path)
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		switch {
		case isControllers(name):
			errs = append(errs, field.Forbidden(path.Key(name), "belongs to Kubernetes' volume controllers, which would act on it; leave it out"))
		case name == "kubectl.kubernetes.io/last-applied-configuration":
			errs = append(errs, field.Forbidden(path.Key(name), "belongs to kubectl apply, which patches; leave it out"))
		case mooringapi.IsMirrorVolume(map[string]string{name: ""}):
			errs = append(errs, field.Forbidden(path.Key(name), "is the record of a mirror volume, and a retained volume is none; leave it out"))
		}
	}
	return errs
}
