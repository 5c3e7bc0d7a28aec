package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// What is told must come true within this time; it takes milliseconds, unless
// the machine has much else to do.
const (
	patience = 60 * time.Second
	interval = 20 * time.Millisecond
)

// surprise is something that is not as told, with the object that shows it.
type surprise struct {
	told   string
	object string
}

func (s *surprise) Error() string { return s.told }

func surprised(object any, format string, args ...any) error {
	text, err := yaml.Marshal(withoutManagedFields(object))
	if err != nil {
		text = fmt.Appendf(nil, "%+v", object)
	}
	return &surprise{told: fmt.Sprintf(format, args...), object: string(text)}
}

func withoutManagedFields(object any) any {
	if typed, ok := object.(runtime.Object); ok {
		object = typed.DeepCopyObject()
	}
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object
}

// until asks again and again until an answer is as wanted; then it returns
// that answer. What is not found is asked for again.
func until[T any](ctx context.Context, told string, get func(context.Context) (T, error), wanted func(T) bool) (T, error) {
	var last T
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		found, err := get(ctx)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		last = found
		return wanted(last), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return last, surprised(last, "%s: not within %v; what is there:", told, patience)
	}
	return last, err
}

func (s *stage) claim(namespace, name string) func(context.Context) (*corev1.PersistentVolumeClaim, error) {
	return func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		return s.api.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

func (s *stage) volume(name string) func(context.Context) (*corev1.PersistentVolume, error) {
	return func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return s.api.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	}
}

func isBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound
}

// bound waits until a claim is bound, both ways, and returns it and its volume.
func (s *stage) bound(ctx context.Context, namespace, name string) (pair, error) {
	claim, err := until(ctx, namespace+"/"+name+" is Bound", s.claim(namespace, name), isBound)
	if err != nil {
		return pair{}, err
	}
	told := "volume " + claim.Spec.VolumeName + " is bound to " + namespace + "/" + name
	volume, err := until(ctx, told, s.volume(claim.Spec.VolumeName), func(v *corev1.PersistentVolume) bool {
		return v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == claim.UID && v.Status.Phase == corev1.VolumeBound
	})
	return pair{claim, volume}, err
}

// mirrors waits until a claim is bound to a mirror of an origin, looks whether
// both reach the same data, and says so.
func (s *stage) mirrors(ctx context.Context, namespace, name, origin string) error {
	mirror, err := s.bound(ctx, namespace, name)
	if err != nil {
		return err
	}
	source, known := s.before[origin]
	volume := mirror.volume
	switch {
	case !known:
		return fmt.Errorf("no scene has brought the origin %s", origin)
	case volume.Name != mooringapi.VolumeNamePrefix+string(mirror.claim.UID):
		return surprised(volume, "the mirror volume is named after the claim's UID")
	case volume.Annotations[s.names.OriginClaim()] != origin:
		return surprised(volume, "the mirror volume's record names the origin %s", origin)
	case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return surprised(volume, "the mirror volume's reclaim policy is Retain")
	case dataOf(volume) != dataOf(source.volume):
		return surprised(volume, "the mirror reaches the same data as its origin, %s", dataOf(source.volume))
	case !volume.Spec.Capacity.Storage().Equal(*source.volume.Spec.Capacity.Storage()):
		return surprised(volume, "the mirror has the origin's size, %s", source.volume.Spec.Capacity.Storage())
	}
	s.tell.seen("Bound; it reaches the data of %s: %s", origin, dataOf(volume))
	return nil
}

// dataOf says where a volume's data is, for the drivers of the examples.
func dataOf(volume *corev1.PersistentVolume) string {
	if nfs := volume.Spec.NFS; nfs != nil {
		return nfs.Server + ":" + nfs.Path
	}
	csi := volume.Spec.CSI
	if csi == nil {
		return ""
	}
	if at := csi.VolumeAttributes; at["server"] != "" {
		return strings.TrimSuffix(at["server"]+":"+at["share"]+"/"+at["subdir"], "/")
	}
	return csi.Driver + ":" + csi.VolumeHandle
}
