package retain

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// nfsManifest is the base case that every row changes in one place.
func nfsManifest() object {
	return object{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": object{"name": "v", "labels": object{"owner": "me"}, "annotations": object{"note": "mine"}},
		"spec": object{
			"capacity": object{"storage": "10Gi"}, "accessModes": []any{"ReadWriteMany", "ReadOnlyMany"},
			"persistentVolumeReclaimPolicy": "Retain", "storageClassName": "retained",
			"claimRef": object{"kind": "PersistentVolumeClaim", "namespace": "ns", "name": "c"},
			"nfs":      object{"server": "nas.example.com", "path": "/export/v"},
		},
	}
}

// csiManifest is the base case for CSI.
func csiManifest(driver string, attributes object) object {
	o := nfsManifest()
	spec := o["spec"].(object)
	delete(spec, "nfs")
	csi := object{"driver": driver, "volumeHandle": "h"}
	if attributes != nil {
		csi["volumeAttributes"] = attributes
	}
	spec["csi"] = csi
	return o
}

// set changes one field, by its path with slashes; nil removes it.
func set(o object, path string, value any) object {
	names := strings.Split(path, "/")
	at := o
	for _, name := range names[:len(names)-1] {
		inner, ok := at[name].(object)
		if !ok {
			inner = object{}
			at[name] = inner
		}
		at = inner
	}
	if last := names[len(names)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	return o
}

func yamlOf(tb testing.TB, o object) []byte {
	tb.Helper()
	data, err := yaml.Marshal(o)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func parsed(tb testing.TB, o object) Manifest {
	tb.Helper()
	m, problems := ParseManifest(yamlOf(tb, o))
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	return m
}

// stored is what an API server stores of a manifest: with its defaults and its
// own metadata.
func stored(tb testing.TB, o object) object {
	tb.Helper()
	live := copyObject(parsed(tb, o).Object)
	spec := child(live, "spec")
	if spec["storageClassName"] == "" {
		delete(spec, "storageClassName")
	}
	metadata := child(live, "metadata")
	for name, value := range map[string]any{
		"uid": "uid-v", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
		"managedFields": []any{object{"manager": "x"}}, "finalizers": []any{protection},
	} {
		metadata[name] = value
	}
	live["status"] = object{"phase": "Available"}
	return live
}

// fittingClaim is a claim that could bind the base case.
func fittingClaim() *corev1.PersistentVolumeClaim {
	class := "retained"
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.UID = "ns", "c", "uid-c"
	claim.Spec.StorageClassName = &class
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	claim.Status.Phase = corev1.ClaimPending
	return claim
}

// boundTo makes volume and claim bound to each other, as the binder does.
func boundTo(live object, claim *corev1.PersistentVolumeClaim) {
	set(live, "spec/claimRef/uid", string(claim.UID))
	set(live, "spec/claimRef/resourceVersion", "8")
	set(live, "spec/claimRef/apiVersion", "v1")
	set(live, "status/phase", "Bound")
	claim.Spec.VolumeName, claim.Status.Phase = "v", corev1.ClaimBound
}

func jsonOf(tb testing.TB, v any) string {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}
