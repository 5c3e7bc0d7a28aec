package model

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

func (m *Model) claimKey(j int) client.ObjectKey {
	return client.ObjectKey{Namespace: m.tenants[j%len(m.tenants)], Name: fmt.Sprintf("m%d", j)}
}

func (m *Model) claim(j int) *corev1.PersistentVolumeClaim {
	key := m.claimKey(j)
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// opClaim creates a claim that is not there.
func (m *Model) opClaim(d draw) (string, int, error) {
	j := d[0] % m.claims
	claim := m.newClaim(j, d)
	return describeClaim(claim), 3, m.Create(m.Context(), claim)
}

// newClaim returns a claim for an origin, in any form of reference, mode and
// class, and now and then with a volume name of its choice.
func (m *Model) newClaim(j int, d draw) *corev1.PersistentVolumeClaim {
	claim := m.claim(j)
	key := m.originKey(d[1] % m.origins)
	if d[1]%3 != 0 {
		key = m.originKey(j % m.origins) // mostly the same, so that claims meet
	}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(m.classes[d[2]%len(m.classes)]),
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:        requesting("1"),
		VolumeName:       m.presetName(j, d),
	}
	form := d[2] / 2 % 8
	if form != 0 {
		annotate(claim, names.Origin(), key.String())
	}
	if form <= 3 {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Namespace: ptr.To(key.Namespace), Name: key.Name}
	}
	switch d[3] % 24 {
	case 0:
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	case 1, 2, 3, 4, 5:
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	case 6:
		claim.Spec.AccessModes = append(claim.Spec.AccessModes, corev1.ReadOnlyMany)
	case 7, 8:
		claim.Spec.Resources = requesting("12Gi")
	}
	return claim
}

// presetName returns a volume name that a claim asks for: mostly none; or that
// of another claim's volume, a free one, one that is nobody's any more, or the
// one that the claim of this name had before.
func (m *Model) presetName(j int, d draw) string {
	switch d[3] / 24 % 20 {
	case 0:
		other := m.claim(d[0] / m.claims % m.claims)
		if m.Get(m.Context(), keyOf(other), other) == nil {
			return mirror.VolumeName(other.UID)
		}
	case 1:
		return fmt.Sprintf("free-%d", d[0])
	case 2:
		return fmt.Sprintf("pvc-%08x-0000-4000-8000-%012x", d[1], d[2]%4)
	case 3:
		return m.former[j]
	}
	return ""
}

func describeClaim(claim *corev1.PersistentVolumeClaim) string {
	ref := "-"
	if r := claim.Spec.DataSourceRef; r != nil {
		ref = *r.Namespace + "/" + r.Name
	}
	return fmt.Sprintf("%s/%s class %s %v of %s, %q, volume %q", claim.Namespace, claim.Name, *claim.Spec.StorageClassName, claim.Spec.AccessModes,
		ref, claim.Annotations[names.Origin()], claim.Spec.VolumeName)
}

func (m *Model) opDeleteClaim(d draw) (string, int, error) {
	j := d[0] % m.claims
	claim := m.claim(j)
	if err := m.Get(m.Context(), keyOf(claim), claim); err != nil {
		return fmt.Sprintf("m%d", j), 0, err
	}
	m.former[j] = claim.Spec.VolumeName
	m.mark(func() { m.deleted[claim.UID] = true })
	return fmt.Sprintf("m%d %s", j, claim.UID), 3, m.Delete(m.Context(), claim, client.Preconditions{UID: &claim.UID})
}

// opRecreateClaim deletes a claim and creates another of its name as soon as it
// is gone; as often as not in the way of a restore, with the volume's name.
func (m *Model) opRecreateClaim(d draw) (string, int, error) {
	j := d[0] % m.claims
	before := m.claim(j)
	if err := m.Get(m.Context(), keyOf(before), before); err != nil {
		return fmt.Sprintf("m%d", j), 0, err
	}
	what, _, err := m.opDeleteClaim(d)
	if err != nil {
		return what, 0, err
	}
	claim := m.newClaim(j, d)
	if d[2]/16%2 == 0 && before.Spec.VolumeName != "" {
		claim.Annotations, claim.Spec = before.Annotations, before.Spec // as from its manifest
		delete(claim.Annotations, "volume.kubernetes.io/storage-provisioner")
		delete(claim.Annotations, "volume.beta.kubernetes.io/storage-provisioner")
		if d[2]/32%2 == 0 {
			delete(claim.Annotations, "pv.kubernetes.io/bind-completed")
			delete(claim.Annotations, "pv.kubernetes.io/bound-by-controller")
		}
	}
	err = wait.PollUntilContextTimeout(m.Context(), 10*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		err := m.Create(ctx, claim)
		return !apierrors.IsAlreadyExists(err), client.IgnoreAlreadyExists(err)
	})
	if wait.Interrupted(err) {
		err = nil // it is kept; the deletion was the operation
	}
	return what + ", then " + describeClaim(claim), 6, err
}

// opReference edits a claim's reference.
func (m *Model) opReference(d draw) (string, int, error) {
	j := d[0] % m.claims
	value := fmt.Sprintf("%q", m.originKey(d[2]%m.origins).String())
	switch d[1] % 6 {
	case 0:
		value = "null"
	case 1:
		value = `"nonsense"`
	case 2, 3:
		value = fmt.Sprintf("%q", m.originKey(j%m.origins).String())
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, names.Origin(), value)
	return fmt.Sprintf("m%d %s", j, value), 3, m.Patch(m.Context(), m.claim(j), jsonMerge(patch))
}

// opWipe removes all conditions of a claim, as a careless client does.
func (m *Model) opWipe(d draw) (string, int, error) {
	j := d[0] % m.claims
	return fmt.Sprintf("m%d", j), 1, m.Status().Patch(m.Context(), m.claim(j), jsonMerge(`{"status":{"conditions":null}}`))
}

// opVolume edits the mirror volume of a claim.
func (m *Model) opVolume(d draw) (string, int, error) {
	j := d[0] % m.claims
	claim := m.claim(j)
	if err := m.Get(m.Context(), keyOf(claim), claim); err != nil || claim.Spec.VolumeName == "" {
		return "", 0, err
	}
	other := m.originKey(d[2] % m.origins)
	annotation := func(key, value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
	}
	edits := []string{
		`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`,
		annotation("pv.kubernetes.io/provisioned-by", "null"),
		annotation("pv.kubernetes.io/provisioned-by", `"nfs.csi.k8s.io"`),
		annotation(names.MirrorClaim(), `"else/where"`),
		annotation(names.OriginClaim(), fmt.Sprintf("%q", other)),
		annotation(names.OriginClaimUID(), `"0"`),
		annotation(names.OriginVolumeUID(), `"0"`),
		annotation(names.OriginVolume(), `"nothing"`),
		annotation(names.GrantedBy(), `"{}"`),
		annotation(names.RevokedAt(), `"2020-01-01T00:00:00Z"`),
		annotation(names.RevokedAt(), "null"),
		`{"spec":{"mountOptions":["vers=3"]}}`,
		`{"spec":{"accessModes":["ReadWriteOnce"]}}`,
		`{"spec":{"storageClassName":"static"}}`,
		fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, names.OriginLabel()),
		fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, names.OriginLabel(), mirror.OriginHash(other)),
		`{"spec":{"capacity":{"storage":"90Gi"}}}`,
		`{"spec":{"capacity":{"storage":"1"}}}`,
		`{"spec":{"claimRef":null}}`,
		`{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`,
		`{"spec":{"claimRef":{"uid":null,"name":"thief","resourceVersion":null}}}`,
		m.withoutRecord(),
	}
	patch := edits[d[1]%len(edits)]
	volume := &corev1.PersistentVolume{ObjectMeta: metaNamed(claim.Spec.VolumeName)}
	return fmt.Sprintf("m%d %s %s", j, volume.Name, patch), 4, m.Patch(m.Context(), volume, jsonMerge(patch))
}

// withoutRecord returns a patch that removes the record but for the label.
func (m *Model) withoutRecord() string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null,%q:null,%q:null,%q:null,%q:null}}}`, names.MirrorClaim(), names.MirrorClaimUID(),
		names.OriginClaim(), names.OriginClaimUID(), names.OriginVolume(), names.OriginVolumeUID())
}

// opDeleteVolume deletes the object of a claim's mirror volume by hand.
func (m *Model) opDeleteVolume(d draw) (string, int, error) {
	j := d[0] % m.claims
	claim := m.claim(j)
	if err := m.Get(m.Context(), keyOf(claim), claim); err != nil || claim.Spec.VolumeName == "" {
		return "", 0, err
	}
	m.mark(func() { m.volumes[claim.Spec.VolumeName] = true })
	return fmt.Sprintf("m%d %s", j, claim.Spec.VolumeName), 3, m.Delete(m.Context(), &corev1.PersistentVolume{ObjectMeta: metaNamed(claim.Spec.VolumeName)})
}
