package observe_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

const (
	mirrorClass = "pvc-mirror" // the chart's
	staticClass = "static"     // which no provisioner serves
	owners      = "owners"
	tenantsOnly = "type=tenant"
	// tenants and mirrorsEach are the load.
	tenants     = 20
	mirrorsEach = 5
)

// load gives the controller each kind of work that it counts: mirrors, refusals,
// grants that end, an origin that is held, edits of volumes and references, a
// volume that cannot be proven to be a mirror, a mirror that goes.
func (w *world) load() {
	w.Helper()
	w.namespace(owners, nil)
	var origins []*corev1.PersistentVolumeClaim
	for i := range mirrorsEach {
		origins = append(origins, w.origin(fmt.Sprintf("drive-%d", i)))
	}
	lost, held, kept := w.origin("lost"), w.origin("held"), w.origin("kept")
	for i := range tenants {
		tenant := fmt.Sprintf("tenant-%d", i)
		w.namespace(tenant, map[string]string{"type": "tenant"})
		for j, origin := range origins {
			w.mirror(tenant, fmt.Sprintf("m%d", j), origin)
		}
	}
	w.namespace("stranger", nil)
	w.mirror("stranger", "m", origins[0])
	revoked, holding, edited, gone := w.mirror("tenant-0", "revoked", lost), w.mirror("tenant-0", "holding", held), w.mirror("tenant-0", "edited", kept), w.mirror("tenant-1", "gone", kept)
	for _, claim := range []*corev1.PersistentVolumeClaim{revoked, holding, edited, gone} {
		w.isBound(claim)
	}
	w.patch(lost, `{"metadata":{"annotations":{"`+names.ReadWriteGrant()+`":"type=nobody"}}}`)
	w.must(w.Delete(w.Context(), held), "delete an origin")
	w.must(w.Delete(w.Context(), gone), "delete a mirror claim")
	w.patch(edited, `{"metadata":{"annotations":{"`+names.Origin()+`":"`+owners+`/another"}}}`)
	w.patch(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: mirror.VolumeName(edited.UID)}}, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	w.former()
}

func (w *world) namespace(name string, labels map[string]string) {
	w.Helper()
	w.must(w.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}), "create namespace "+name)
}

func (w *world) patch(object client.Object, patch string) {
	w.Helper()
	w.must(w.Patch(w.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))), "patch "+object.GetName())
}

// origin makes a claim that is shared with tenants, and its volume.
func (w *world) origin(name string) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := claimOf(owners, name, staticClass)
	claim.Annotations = map[string]string{names.ReadWriteGrant(): tenantsOnly}
	w.must(w.Create(w.Context(), claim), "create origin "+name)
	w.volume("volume-of-"+name, claim, nil)
	w.isBound(claim)
	return claim
}

func (w *world) volume(name string, of *corev1.PersistentVolumeClaim, annotations map[string]string) {
	w.Helper()
	w.must(w.Create(w.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: *of.Spec.StorageClassName, AccessModes: of.Spec.AccessModes,
			Capacity:                      of.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: of.Namespace, Name: of.Name, UID: of.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "nfs.csi.k8s.io", VolumeHandle: name, VolumeAttributes: map[string]string{"server": "nfs.example.com", "share": "/" + name},
			}},
		},
	}), "create volume "+name)
}

func (w *world) mirror(namespace, name string, of *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := claimOf(namespace, name, mirrorClass)
	claim.Annotations = map[string]string{names.Origin(): of.Namespace + "/" + of.Name}
	w.must(w.Create(w.Context(), claim), "create a mirror claim")
	return claim
}

// former is a bound claim whose volume says that a provisioner of this name made
// it, and nothing that proves what it mirrors.
func (w *world) former() {
	w.Helper()
	claim := claimOf("tenant-0", "former", mirrorClass)
	w.must(w.Create(w.Context(), claim), "create a claim that names no origin")
	w.volume(mirror.VolumeName(claim.UID), claim, map[string]string{"pv.kubernetes.io/provisioned-by": names.Provisioner()})
}

func claimOf(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func (w *world) isBound(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	w.until(claim.Namespace+"/"+claim.Name+" is Bound", func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Sprintf("%+v", claim.Status)
		}
		return ""
	})
}
