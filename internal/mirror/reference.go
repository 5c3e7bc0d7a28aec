package mirror

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const claimKind = "PersistentVolumeClaim"

// AsksForMirror reports whether a claim names an origin in the annotation,
// well or badly: nobody else reads it, so the wish is plain whatever the class.
func AsksForMirror(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) bool {
	_, annotated := claim.Annotations[names.Origin()]
	return annotated
}

// Origins returns every origin that a claim could mean, whether or not it may:
// the keys by which changes of an origin find the claims that depend on it.
func Origins(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) []types.NamespacedName {
	var origins []types.NamespacedName
	if origin, said := referenced(claim); said == nil && origin.Name != "" {
		origins = append(origins, origin)
	}
	if origin, said := annotated(names, claim); said == nil && origin.Name != "" {
		origins = append(origins, origin)
	}
	if len(origins) == 2 && origins[0] == origins[1] {
		return origins[:1]
	}
	return origins
}

// Origin returns the one origin that a claim names; the name is empty where it
// names none, two, or one that cannot be meant.
func Origin(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) types.NamespacedName {
	origin, said := origin(names, claim)
	if said != nil {
		return types.NamespacedName{}
	}
	return origin
}

// origin returns the one origin that a claim names, or what is wrong.
func origin(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) (types.NamespacedName, *refusal) {
	none := types.NamespacedName{}
	byReference, said := referenced(claim)
	if said != nil {
		return none, said
	}
	byAnnotation, said := annotated(names, claim)
	if said != nil {
		return none, said
	}
	switch {
	case byReference == none && byAnnotation == none:
		return none, refused(NoOrigin, "the claim names no origin: write the annotation %s: <namespace>/<claim> "+
			"(a dataSourceRef to another namespace is dropped by the API server unless the cluster's feature gate "+
			"CrossNamespaceVolumeDataSource is on)", names.Origin())
	case byReference == none:
		byReference = byAnnotation
	case byAnnotation != none && byAnnotation != byReference:
		return none, refused(OriginAmbiguous, "spec.dataSourceRef names %s and the annotation %s names %s: remove the annotation or make it equal",
			byReference, names.Origin(), byAnnotation)
	}
	if byReference.Namespace == claim.Namespace {
		return none, refused(SameNamespace, "the origin %s is in the claim's own namespace: use it directly", byReference)
	}
	return byReference, nil
}

// referenced returns the origin in spec.dataSourceRef; empty where there is no
// reference.
func referenced(claim *corev1.PersistentVolumeClaim) (types.NamespacedName, *refusal) {
	none := types.NamespacedName{}
	ref := claim.Spec.DataSourceRef
	if ref == nil {
		return none, nil
	}
	if ref.Kind != claimKind || ref.APIGroup != nil && *ref.APIGroup != "" {
		return none, refused(OriginKindUnsupported, "spec.dataSourceRef is of kind %s: expected kind %s without apiGroup", quote(ref.Kind), claimKind)
	}
	if claim.Spec.DataSource != nil {
		return none, nil // a copy within the namespace; said with dataSource's own reason
	}
	if ref.Namespace == nil || *ref.Namespace == "" {
		return none, refused(OriginMalformed, "spec.dataSourceRef names no namespace: expected the origin's")
	}
	if !isClaimName(*ref.Namespace, ref.Name) {
		return none, refused(OriginMalformed, "spec.dataSourceRef names claim %s of namespace %s: no claim has such a name",
			quote(ref.Name), quote(*ref.Namespace))
	}
	return types.NamespacedName{Namespace: *ref.Namespace, Name: ref.Name}, nil
}

// annotated returns the origin in the annotation; empty where there is none.
func annotated(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) (types.NamespacedName, *refusal) {
	text, present := claim.Annotations[names.Origin()]
	if !present {
		return types.NamespacedName{}, nil
	}
	namespace, name, _ := strings.Cut(text, "/")
	if !isClaimName(namespace, name) {
		return types.NamespacedName{}, refused(OriginMalformed, "annotation %s is %s: expected <namespace>/<claim>", names.Origin(), quote(text))
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// isClaimName reports whether a claim of that name can exist. The API server
// checks the namespace of a reference and not its name, which could hold
// anything, of any length.
func isClaimName(namespace, name string) bool {
	return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}

// quote makes user-controlled text fit for a condition or an event: quoted, so
// that it cannot forge lines or move the cursor, and short.
func quote(text string) string {
	const most = 300
	if runes := []rune(text); len(runes) > most {
		return fmt.Sprintf("%+q (cut)", string(runes[:most]))
	}
	return fmt.Sprintf("%+q", text)
}
