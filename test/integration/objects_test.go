package integration_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

const (
	class = "pvc-mirror" // the chart's
	// ownerClass is a class that no provisioner serves, of static volumes.
	ownerClass = "static"
	gibibytes  = "10Gi"
)

// edit changes an object before it is created.
type edit[T any] func(T)

type (
	claimEdit  = edit[*corev1.PersistentVolumeClaim]
	volumeEdit = edit[*corev1.PersistentVolume]
)

// namespace creates a namespace of the test's own with these labels.
func (w *world) namespace(name string, labels map[string]string) string {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.prefix + "-" + name, Labels: labels}}
	w.must(w.Create(w.Context(), namespace), "create a namespace")
	return namespace.Name
}

// label sets or, with value "-", removes a namespace's label.
func (w *world) label(namespace, key, value string) {
	w.Helper()
	text := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	if value == "-" {
		text = fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, key)
	}
	w.merge(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, text)
}

// merge applies a JSON merge patch as the administrator.
func (w *world) merge(object client.Object, patch string) {
	w.Helper()
	w.must(w.Patch(w.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))), "patch %T %s", object, object.GetName())
}

// grantTo writes the grant of an origin.
func (w *world) grantTo(origin *corev1.PersistentVolumeClaim, selector string) {
	w.Helper()
	w.merge(origin, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.ReadWriteGrant(), selector))
}

// origin is an owner's claim and its volume.
type origin struct {
	*corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

// granting lets namespaces in by a selector.
func granting(selector string) claimEdit { return annotating(names.ReadWriteGrant(), selector) }

func annotating(key, value string) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) {
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[key] = value
	}
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
			Resources:        requesting(gibibytes),
		},
	}
	for _, change := range edits {
		change(claim)
	}
	w.must(w.Create(w.Context(), claim), "create an origin claim")
	return origin{PersistentVolumeClaim: claim}
}

// volumeFor creates the volume of an owner's claim. Its claimRef is complete:
// else the binder would leave it for its next look at everything, 15 s later.
func (w *world) volumeFor(claim *corev1.PersistentVolumeClaim, storage volumeEdit) *corev1.PersistentVolume {
	w.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "origin-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              ownerClass,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(gibibytes)},
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

func inTreeNFS(volume *corev1.PersistentVolume) {
	volume.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/export/" + volume.Name}
}

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

// driver creates a CSIDriver object that says whether its volumes are attached.
func (w *world) driver(name string, attachRequired bool) {
	w.Helper()
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attachRequired}}
	w.must(w.Create(w.Context(), driver), "create a CSIDriver")
	w.Cleanup(func() { _ = w.Delete(context.Background(), driver) })
}

// class creates a class of Mooring's.
func (w *world) class(name string, edits ...edit[*storagev1.StorageClass]) *storagev1.StorageClass {
	w.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: w.prefix + "-" + name},
		Provisioner: names.Provisioner(),
	}
	for _, change := range edits {
		change(class)
	}
	w.must(w.Create(w.Context(), class), "create a class")
	w.Cleanup(func() { _ = w.Delete(context.Background(), class) })
	return class
}

// mirrorClaim returns a claim as CrownLabs' operators make them, in the form of
// reference that the cluster keeps: not created yet.
func (w *world) mirrorClaim(namespace, name string, of origin, edits ...claimEdit) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        requesting("1"),
		},
	}
	if w.gateOn {
		byReference(of)(claim)
	} else {
		byAnnotation(of)(claim)
	}
	for _, change := range edits {
		change(claim)
	}
	return claim
}

// mirror creates a mirror claim.
func (w *world) mirror(namespace, name string, of origin, edits ...claimEdit) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := w.mirrorClaim(namespace, name, of, edits...)
	w.must(w.Create(w.Context(), claim), "create a mirror claim")
	return claim
}

func byReference(of origin) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Namespace: ptr.To(of.Namespace), Name: of.Name}
	}
}

func byAnnotation(of origin) claimEdit {
	return annotating(names.Origin(), of.Namespace+"/"+of.Name)
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

// mirrorVolume returns the object that a claim's mirror volume is or would be.
func mirrorVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: mirror.VolumeName(claim.UID)}}
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

func jsonMerge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// stranger creates somebody else's volume under the name of a claim's mirror
// volume, bound to nobody and to be had by nobody.
func (w *world) stranger(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	w.Helper()
	volume := mirrorVolume(claim)
	volume.Spec = corev1.PersistentVolumeSpec{
		StorageClassName: "strangers",
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(gibibytes)},
	}
	inTreeNFS(volume)
	w.must(w.Create(w.Context(), volume), "create a stranger's volume")
	w.Cleanup(func() { _ = w.Delete(context.Background(), volume) })
	return volume
}

// isGoneOrStranger checks that a refused claim has no mirror volume: none at
// all, or one that is not Mooring's.
func (w *world) isGoneOrStranger(claim *corev1.PersistentVolumeClaim, reason mirror.Reason) {
	w.Helper()
	volume := mirrorVolume(claim)
	err := w.Get(w.Context(), keyOf(volume), volume)
	isStranger := err == nil && !mirror.RecordOf(names, volume).IsMirror()
	if !apierrors.IsNotFound(err) && !(reason == mirror.VolumeNameTaken && isStranger) {
		w.Errorf("claim %s is refused (%s), and its mirror volume: %v\n%s", claim.Name, reason, err, w.show(volume))
	}
}

func metaNamed(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// chartClass returns the class that the chart creates.
func (w *world) chartClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metaNamed(class), Provisioner: names.Provisioner()}
}
