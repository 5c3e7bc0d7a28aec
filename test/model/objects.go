package model

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// driver is a driver that the table does not know, whose mirrors have
	// their origin's handle.
	driver  = "model.example.com"
	foreign = "example.com/mine"
)

func (m *Model) originKey(i int) client.ObjectKey {
	return client.ObjectKey{Namespace: m.owners[i%len(m.owners)], Name: fmt.Sprintf("data%d", i)}
}

func (m *Model) originClaim(i int) *corev1.PersistentVolumeClaim {
	key := m.originKey(i)
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// claimsOf returns about how many claims name an origin.
func (m *Model) claimsOf(int) int { return 2 * m.claims / m.origins }

// createOrigin creates an origin and its volume, whose data are one of two.
func (m *Model) createOrigin(i, source int) error {
	claim := m.originClaim(i)
	claim.Annotations = map[string]string{names.ReadWriteGrant(): tenantsOnly}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(ownerClass),
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:        requesting(gibibytes),
	}
	if err := m.Create(m.Context(), claim); err != nil {
		return err
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "origin-" + string(claim.UID), Labels: map[string]string{"model": claim.Name}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              ownerClass,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(gibibytes)},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
	}
	data := fmt.Sprintf("/export/%d-%d", i, source)
	switch i % 5 {
	case 3:
		volume.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: data}
	case 4:
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: data}
	default:
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "nfs.csi.k8s.io", VolumeHandle: "handle-of-" + data,
			VolumeAttributes: map[string]string{"server": "nfs.example.com", "share": data}}
	}
	return m.Create(m.Context(), volume)
}

// opOrigin creates an origin that is gone, with the same data or others.
func (m *Model) opOrigin(d draw) (string, int, error) {
	i := d[0] % m.origins
	what := fmt.Sprintf("%d source %d", i, d[1]%2)
	err := m.Get(m.Context(), m.originKey(i), &corev1.PersistentVolumeClaim{})
	if !apierrors.IsNotFound(err) {
		return what, 0, err
	}
	// What the former one left.
	if err := m.DeleteAllOf(m.Context(), &corev1.PersistentVolume{}, client.MatchingLabels{"model": m.originKey(i).Name}); err != nil {
		return what, 0, err
	}
	return what, 1 + m.claimsOf(i), m.createOrigin(i, d[1]%2)
}

func (m *Model) opDeleteOrigin(d draw) (string, int, error) {
	i := d[0] % m.origins
	origin := m.originClaim(i)
	what := fmt.Sprintf("%d", i)
	if err := m.Get(m.Context(), keyOf(origin), origin); err != nil || origin.DeletionTimestamp != nil {
		return what, 0, err
	}
	m.mark(func() { m.deleted[origin.UID] = true })
	return what + " " + string(origin.UID), 2 + 2*m.claimsOf(i), m.Delete(m.Context(), origin, client.Preconditions{UID: &origin.UID})
}

func (m *Model) opAllowDeletion(d draw) (string, int, error) {
	i := d[0] % m.origins
	value := `"true"`
	if d[1]%4 == 0 {
		value = `"yes"`
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, names.AllowDeletion(), value)
	return fmt.Sprintf("%d %s", i, value), 1 + m.claimsOf(i), m.Patch(m.Context(), m.originClaim(i), jsonMerge(patch))
}

func (m *Model) opGrow(d draw) (string, int, error) {
	i := d[0] % m.origins
	origin := m.originClaim(i)
	if err := m.Get(m.Context(), keyOf(origin), origin); err != nil || origin.Spec.VolumeName == "" {
		return "", 0, err
	}
	size := fmt.Sprintf("%dGi", 10+d[1]%20)
	volume := &corev1.PersistentVolume{ObjectMeta: metaNamed(origin.Spec.VolumeName)}
	return fmt.Sprintf("%d to %s", i, size), m.claimsOf(i), m.Patch(m.Context(), volume, jsonMerge(`{"spec":{"capacity":{"storage":"`+size+`"}}}`))
}

// opFinalizer takes Mooring's finalizer off by force.
func (m *Model) opFinalizer(d draw) (string, int, error) {
	i := d[0] % m.origins
	origin := m.originClaim(i)
	what := fmt.Sprintf("%d", i)
	err := m.Get(m.Context(), keyOf(origin), origin)
	if err != nil || origin.DeletionTimestamp != nil || !slices.Contains(origin.Finalizers, names.Finalizer()) {
		return what, 0, err
	}
	origin.Finalizers = slices.DeleteFunc(origin.Finalizers, func(f string) bool { return f == names.Finalizer() })
	m.mark(func() { m.forced[origin.UID] = true })
	return what, 1, m.Update(m.Context(), origin)
}

// opForeign adds or removes somebody else's finalizer of an origin.
func (m *Model) opForeign(d draw) (string, int, error) {
	i := d[0] % m.origins
	origin := m.originClaim(i)
	if err := m.Get(m.Context(), keyOf(origin), origin); err != nil {
		return "", 0, err
	}
	if slices.Contains(origin.Finalizers, foreign) {
		return fmt.Sprintf("off %d", i), 1, m.freeForeign(origin)
	}
	if origin.DeletionTimestamp != nil {
		return "", 0, nil
	}
	origin.Finalizers = append(origin.Finalizers, foreign)
	m.mark(func() { delete(m.let, origin.UID) })
	return fmt.Sprintf("on %d", i), 1, m.Update(m.Context(), origin)
}

func (m *Model) freeForeign(origin *corev1.PersistentVolumeClaim) error {
	m.mark(func() { m.let[origin.UID] = true })
	origin.Finalizers = slices.DeleteFunc(origin.Finalizers, func(f string) bool { return f == foreign })
	return m.Update(m.Context(), origin)
}

func (m *Model) mark(note func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	note()
}
