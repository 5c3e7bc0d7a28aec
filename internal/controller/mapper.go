package controller

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Mapper returns the kinds that the controller works with. They are the same
// in every Kubernetes release, so the API server need not be asked, nor be
// there when the controller starts. It has the form of a manager's
// MapperProvider.
func Mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	core, storage := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{core, storage})
	mapper.Add(core.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(storage.WithKind("StorageClass"), meta.RESTScopeRoot)
	mapper.Add(storage.WithKind("CSIDriver"), meta.RESTScopeRoot)
	return mapper, nil
}
