package nfs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const (
	mirrorClass = "pvc-mirror" // the chart's
	// ownerClass is a class that nobody serves, of volumes made by hand.
	ownerClass = "static"
	csiDriver  = "nfs.csi.k8s.io"
)

var names mooringapi.Names // the default provisioner name

// patience is how long a test waits for what should take a moment.
const patience = 60 * time.Second

// world is a cluster, seen as its administrator, and an NFS server.
type world struct {
	*testing.T
	client.Client
	server server
	user   user
}

func noError(t *testing.T, err error, what string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

func (w *world) must(err error, what string, args ...any) {
	w.Helper()
	noError(w.T, err, what, args...)
}

// until waits until a condition says "", and fails with what it said last and
// with the object as it is.
func (w *world) until(what string, object client.Object, condition func(err error) string) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(w.Get(ctx, client.ObjectKeyFromObject(object), object))
		return last == "", nil
	})
	if err != nil {
		object.SetManagedFields(nil)
		manifest, _ := yaml.Marshal(object)
		w.Fatalf("%s: not within %v: %s\n%s", what, patience, last, manifest)
	}
}

func (w *world) namespace(prefix string) string {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	w.must(w.Create(w.Context(), namespace), "create a namespace")
	return namespace.Name
}

func (w *world) claim(namespace, name, class string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{mode},
			Resources:        corev1.VolumeResourceRequirements{Requests: size("1Gi")},
		},
	}
}

// origin creates a claim that is bound to a volume of the given source, and
// lets one namespace mirror it to write and another to read.
func (w *world) origin(namespace string, source corev1.PersistentVolumeSource, writers, readers string) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := w.claim(namespace, "origin", ownerClass, corev1.ReadWriteMany)
	claim.Annotations = map[string]string{
		names.ReadWriteGrant(): corev1.LabelMetadataName + "=" + writers,
		names.ReadOnlyGrant():  corev1.LabelMetadataName + "=" + readers,
	}
	w.must(w.Create(w.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "origin-"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:       ownerClass,
			Capacity:               size("1Gi"),
			AccessModes:            claim.Spec.AccessModes,
			ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name},
			MountOptions:           []string{"nfsvers=4"},
			PersistentVolumeSource: source,
		},
	}), "create the origin's volume")
	w.must(w.Create(w.Context(), claim), "create the origin")
	return claim
}

// mirror creates a claim that asks for an origin.
func (w *world) mirror(namespace string, origin *corev1.PersistentVolumeClaim, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim := w.claim(namespace, "mirror", mirrorClass, mode)
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Namespace: &origin.Namespace, Name: origin.Name}
	w.must(w.Create(w.Context(), claim), "create a mirror claim")
	return claim
}

// volume waits until a claim is bound, and returns its volume and where that
// points.
func (w *world) volume(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, place) {
	w.Helper()
	w.until("a bound claim", claim, func(err error) string {
		if err != nil || claim.Status.Phase != corev1.ClaimBound {
			return fmt.Sprintf("phase %q (%v)", claim.Status.Phase, err)
		}
		return ""
	})
	volume := &corev1.PersistentVolume{}
	w.must(w.Get(w.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume), "get the volume of %s", claim.Name)
	where, err := placeOf(volume)
	w.must(err, "find the data of %s in %s", claim.Name, claim.Namespace)
	return volume, where
}

// ends deletes a mirror claim and waits until its volume is gone too.
func (w *world) ends(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	w.Helper()
	w.must(w.Delete(w.Context(), claim), "delete a mirror claim")
	w.until("no mirror volume", volume, func(err error) string {
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("it is there (%v)", err)
	})
}

// content is what a file holds, in this test and in no other.
func (w *world) content(name string) string { return name + " of " + w.Name() }

// hasWritten makes a file where a volume points.
func (w *world) hasWritten(p place, name string) {
	w.Helper()
	w.must(w.user.write(w.Context(), p, name, w.content(name)), "write %s at %v", name, p)
}

// reads expects a file where each of some volumes points.
func (w *world) reads(name string, places map[string]place) {
	w.Helper()
	for who, p := range places {
		if got, err := w.user.read(w.Context(), p, name); err != nil || got != w.content(name) {
			w.Errorf("%s through the %s, at %v: got %q (%v), want %q", name, who, p, got, err, w.content(name))
		}
	}
}

func size(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
}
