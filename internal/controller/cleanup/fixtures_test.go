package cleanup

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const (
	leaseName = "mooring-system/mooring.pmp.crownlabs.polito.it"
	foreign   = "kubernetes.io/pvc-protection"
)

var (
	names      mooringapi.Names
	ours       = names.Finalizer()
	anyClaim   = schema.GroupResource{Resource: "persistentvolumeclaims"}
	anyLease   = schema.GroupResource{Resource: "leases"}
	inConflict = func(resource schema.GroupResource) error { return apierrors.NewConflict(resource, "it", nil) }
)

// world is a cluster in memory. Its hooks are called before the act of their
// name, and may change the world or return an error in its place.
type world struct {
	mutex   sync.Mutex
	version int
	lease   *coordinationv1.Lease
	claims  map[string]*metav1.ObjectMeta
	volumes []corev1.PersistentVolume
	writes  int

	onUpdateLease, onSetFinalizers, onList func() error
}

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

func call(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

func (w *world) LeaseName() string { return leaseName }

func (w *world) GetLease(context.Context) (*coordinationv1.Lease, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.lease == nil {
		return nil, apierrors.NewNotFound(anyLease, leaseName)
	}
	return w.lease.DeepCopy(), nil
}

func (w *world) CreateLease(_ context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.lease != nil {
		return nil, apierrors.NewAlreadyExists(anyLease, leaseName)
	}
	return w.setLease(lease), nil
}

func (w *world) UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := call(w.onUpdateLease); err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case w.lease == nil:
		return nil, apierrors.NewNotFound(anyLease, leaseName)
	case lease.ResourceVersion != w.lease.ResourceVersion:
		return nil, inConflict(anyLease)
	}
	return w.setLease(lease), nil
}

func (w *world) setLease(lease *coordinationv1.Lease) *coordinationv1.Lease {
	w.writes++
	w.lease = lease.DeepCopy()
	w.lease.ResourceVersion = w.next()
	return w.lease.DeepCopy()
}

// heldBy lets somebody hold the lease, as if written now.
func (w *world) heldBy(who string, seconds int32) {
	w.lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: w.next()},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &who, LeaseDurationSeconds: &seconds, RenewTime: ptr.To(metav1.NowMicro()), LeaseTransitions: ptr.To[int32](4),
		},
	}
}

func (w *world) ClaimsWith(_ context.Context, finalizer string) ([]*metav1.ObjectMeta, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := call(w.onList); err != nil {
		return nil, err
	}
	var found []*metav1.ObjectMeta
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if slices.Contains(w.claims[name].Finalizers, finalizer) {
			found = append(found, w.claims[name].DeepCopy())
		}
	}
	return found, nil
}

func (w *world) SetFinalizers(_ context.Context, claim *metav1.ObjectMeta, finalizers []string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err := call(w.onSetFinalizers); err != nil {
		return err
	}
	live := w.claims[claim.Name]
	switch {
	case live == nil:
		return apierrors.NewNotFound(anyClaim, claim.Name)
	case live.UID != claim.UID || live.ResourceVersion != claim.ResourceVersion:
		return inConflict(anyClaim)
	}
	w.writes++
	w.setClaim(claim.Name, claim.UID, finalizers...)
	return nil
}

func (w *world) setClaim(name string, uid types.UID, finalizers ...string) {
	if w.claims == nil {
		w.claims = map[string]*metav1.ObjectMeta{}
	}
	w.claims[name] = &metav1.ObjectMeta{Namespace: "owner", Name: name, UID: uid, ResourceVersion: w.next(), Finalizers: finalizers}
}

func (w *world) EachVolume(_ context.Context, visit func(*corev1.PersistentVolume)) error {
	for i := range w.volumes {
		visit(&w.volumes[i])
	}
	return nil
}

// mirrorVolume adds a mirror volume of an origin, served by an instance.
func (w *world) mirrorVolume(uid, origin, servedBy string, policy corev1.PersistentVolumeReclaimPolicy) {
	volume := corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: mirror.VolumeName(types.UID(uid)), Annotations: map[string]string{
			names.MirrorClaim(): "tenant/" + uid, names.MirrorClaimUID(): uid, names.OriginClaim(): "owner/" + origin, names.ServedBy(): servedBy,
		}},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy},
	}
	w.volumes = append(w.volumes, volume)
}
