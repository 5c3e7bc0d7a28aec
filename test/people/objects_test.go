package people_test

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
	class = "pvc-mirror" // the chart's
	// ownerClass is a class that no provisioner serves, of static volumes.
	ownerClass  = "static"
	tenantsOnly = "type=tenant" // a grant that lets tenants' namespaces in
)

// A claimEdit changes a claim before it is created, a volumeEdit a volume.
type (
	claimEdit  func(*corev1.PersistentVolumeClaim)
	volumeEdit func(*corev1.PersistentVolume)
)

// origin is an owner's claim and its volume, which is nil while pending.
type origin struct {
	*corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

// origin creates a bound origin: an NFS CSI volume, pre-bound, and its claim.
func (w *world) origin(namespace, name string, edits ...claimEdit) origin {
	w.Helper()
	return w.originOf(namespace, name, nfsCSI, edits...)
}

// originOf creates a bound origin of the given storage.
func (w *world) originOf(namespace, name string, storage volumeEdit, edits ...claimEdit) origin {
	w.Helper()
	o := w.pendingOrigin(namespace, name, edits...)
	o.volume = w.volumeFor(o.PersistentVolumeClaim, storage)
	w.until("origin bound", func(ctx context.Context) string {
		w.must(w.Get(ctx, client.ObjectKeyFromObject(o), o.PersistentVolumeClaim), "get the origin")
		w.must(w.Get(ctx, client.ObjectKeyFromObject(o.volume), o.volume), "get the origin's volume")
		if o.Status.Phase != corev1.ClaimBound || o.volume.Status.Phase != corev1.VolumeBound {
			return fmt.Sprintf("claim %s, volume %s", o.Status.Phase, o.volume.Status.Phase)
		}
		return ""
	}, o.PersistentVolumeClaim, o.volume)
	return o
}

// pendingOrigin creates an owner's claim without a volume.
func (w *world) pendingOrigin(namespace, name string, edits ...claimEdit) origin {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(ownerClass),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        requesting("10Gi"),
		},
	}
	for _, change := range edits {
		change(claim)
	}
	w.must(w.Create(w.Context(), claim), "create an origin claim")
	return origin{PersistentVolumeClaim: claim}
}

// volumeFor creates the volume of an owner's claim. Its claimRef is complete:
// else the binder would leave it for its next look at everything.
func (w *world) volumeFor(claim *corev1.PersistentVolumeClaim, storage volumeEdit) *corev1.PersistentVolume {
	w.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "origin-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              ownerClass,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
	}
	storage(volume)
	w.must(w.Create(w.Context(), volume), "create an origin volume")
	w.Cleanup(func() { _ = w.Delete(context.Background(), volume) })
	return volume
}

func nfsCSI(volume *corev1.PersistentVolume) { csiOf("nfs.csi.k8s.io")(volume) }

// csiOf is a CSI volume with what NFS drivers need; others ignore it.
func csiOf(driver string) volumeEdit {
	return func(volume *corev1.PersistentVolume) {
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
			Driver:           driver,
			VolumeHandle:     "handle-of-" + volume.Name,
			VolumeAttributes: map[string]string{"server": "nfs.example.com", "share": "/export/" + volume.Name},
		}
	}
}

// mirror creates a mirror claim of one origin, in the form of reference that
// the cluster keeps.
func (w *world) mirror(namespace, name string, of origin, edits ...claimEdit) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        requesting("1"),
		},
	}
	if w.gateOn {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Namespace: ptr.To(of.Namespace), Name: of.Name}
	} else {
		annotating(names.Origin(), of.Namespace+"/"+of.Name)(claim)
	}
	for _, change := range edits {
		change(claim)
	}
	w.must(w.Create(w.Context(), claim), "create a mirror claim")
	return claim
}

// granting lets namespaces in by a selector.
func granting(selector string) claimEdit { return annotating(names.ReadWriteGrant(), selector) }

func annotating(key, value string) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, key, value)
	}
}

func ofClass(name string) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = ptr.To(name) }
}

func withModes(modes ...corev1.PersistentVolumeAccessMode) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.AccessModes = modes }
}

func ofSize(size string) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.Resources = requesting(size) }
}

func requesting(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}

// grantTo writes the grant of an origin; "-" takes it away.
func (w *world) grantTo(origin *corev1.PersistentVolumeClaim, selector string) {
	w.Helper()
	text := fmt.Sprintf("%q", selector)
	if selector == "-" {
		text = "null"
	}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, names.ReadWriteGrant(), text))
	w.must(w.Patch(w.Context(), origin, patch), "grant")
}

// isBound waits until a claim is bound to its own mirror volume.
func (w *world) isBound(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	w.until("claim "+claim.Name+" bound", func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return "its phase is " + string(claim.Status.Phase)
		}
		return ""
	}, claim)
}

// isSaid waits until the condition of a claim is False for this reason.
func (w *world) isSaid(claim *corev1.PersistentVolumeClaim, reason mirror.Reason) {
	w.Helper()
	w.until(fmt.Sprintf("claim %s is told %s", claim.Name, reason), func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		said := conditionOf(claim)
		if said.Status != corev1.ConditionFalse || said.Reason != string(reason) {
			return fmt.Sprintf("its condition is %q %q: %s", said.Status, said.Reason, said.Message)
		}
		return ""
	}, claim)
}

func conditionOf(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimCondition {
	for _, condition := range claim.Status.Conditions {
		if string(condition.Type) == names.Condition() {
			return condition
		}
	}
	return corev1.PersistentVolumeClaimCondition{}
}
