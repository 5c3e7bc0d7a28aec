package mooringapi

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultClass is the StorageClass that the chart makes unless told otherwise.
const DefaultClass = "pvc-mirror"

// MirrorOptions are what a mirror claim may ask for besides its origin. The
// zero value asks to read and write, by DefaultClass, in the form of reference
// that every cluster keeps.
type MirrorOptions struct {
	// Class is the StorageClass; "" is DefaultClass.
	Class string
	// ReadOnly asks to read only.
	ReadOnly bool
	// ByReference names the origin in spec.dataSourceRef and not in the
	// annotation. It needs the API server's feature gate
	// CrossNamespaceVolumeDataSource: where that is off, the API server drops the
	// field of a new claim without a word, and it cannot be added later.
	ByReference bool
}

// NewMirrorClaim returns a claim that asks for a mirror of the origin, to be
// created by the caller, who may add labels and owners before.
func (n Names) NewMirrorClaim(origin types.NamespacedName, namespace, name string, options MirrorOptions) (*corev1.PersistentVolumeClaim, error) {
	class := options.Class
	if class == "" {
		class = DefaultClass
	}
	if err := checkMirror(origin, namespace, name, class); err != nil {
		return nil, err
	}
	mode := corev1.ReadWriteMany
	if options.ReadOnly {
		mode = corev1.ReadOnlyMany
	}
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{mode},
			// A mirror has its origin's size, whatever it asks for.
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")}},
		},
	}
	if options.ByReference {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: origin.Name, Namespace: &origin.Namespace}
	} else {
		claim.Annotations = map[string]string{n.Origin(): origin.String()}
	}
	return claim, nil
}

// checkMirror says which name is not one: as the API server names claims and
// classes (pkg/apis/core/validation, pkg/apis/storage/validation).
func checkMirror(origin types.NamespacedName, namespace, name, class string) error {
	for _, field := range []struct {
		what, value, expected string
		check                 func(string) []string
	}{
		{"origin namespace", origin.Namespace, "the name of a namespace", validation.IsDNS1123Label},
		{"origin name", origin.Name, "the name of a claim", validation.IsDNS1123Subdomain},
		{"namespace", namespace, "the name of a namespace", validation.IsDNS1123Label},
		{"name", name, "the name of a claim", validation.IsDNS1123Subdomain},
		{"class", class, "the name of a StorageClass", validation.IsDNS1123Subdomain},
	} {
		if problems := field.check(field.value); len(problems) > 0 {
			return fmt.Errorf("mirror claim: %s %s: expected %s: %s", field.what, quote(field.value), field.expected, strings.Join(problems, "; "))
		}
	}
	if origin.Namespace == namespace {
		return fmt.Errorf("mirror claim: namespace %q is the origin's own: expected another one; use the claim %q there directly", namespace, origin.Name)
	}
	return nil
}
