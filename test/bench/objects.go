package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

const (
	mirrorClass  = "pvc-mirror" // the chart's
	staticClass  = "static"     // no provisioner serves it
	ownerName    = "owner"
	tenantsOnly  = "bench=tenant"
	tenantCount  = 50
	size         = "1Gi"
	markLabel    = "bench/mirror" // of the claims of the trial that runs
	bindComplete = "pv.kubernetes.io/bind-completed"
	waitsFor     = "volume.kubernetes.io/storage-provisioner"
)

// origin is a claim that is shared, and its volume.
type origin struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

var tenantLabels = map[string]string{"bench": "tenant"}

func (s *stage) namespaces(ctx context.Context, prefix string, count int) ([]string, error) {
	names := make([]string, count)
	err := each(ctx, count, func(ctx context.Context, i int) error {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
		return s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i], Labels: tenantLabels}})
	})
	return names, err
}

// populate makes the tenants' namespaces and so many origins.
func (s *stage) populate(ctx context.Context, origins int) error {
	err := s.bind(ctx, false) // else the binder looks at each one as it comes
	if err != nil {
		return err
	}
	if s.tenants, err = s.namespaces(ctx, "tenant", tenantCount); err != nil {
		return err
	}
	if err := s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownerName}}); err != nil {
		return err
	}
	return s.addOrigins(ctx, origins)
}

// addOrigins makes origins until there are so many; each is bound and grants the
// tenants.
func (s *stage) addOrigins(ctx context.Context, origins int) error {
	before := len(s.origins)
	added := make([]origin, max(origins-before, 0))
	err := each(ctx, len(added), func(ctx context.Context, i int) error {
		var err error
		added[i], err = s.origin(ctx, fmt.Sprintf("drive-%d", before+i), map[string]string{s.names.ReadWriteGrant(): tenantsOnly})
		return err
	})
	s.origins = append(s.origins, added...)
	return err
}

// origin makes a claim and its volume as they are once the binder has done its
// work.
func (s *stage) origin(ctx context.Context, name string, annotations map[string]string) (origin, error) {
	all := map[string]string{bindComplete: "yes"}
	for key, value := range annotations {
		all[key] = value
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ownerName, Name: name, Annotations: all},
		Spec:       claimSpec(staticClass),
	}
	claim.Spec.VolumeName = "volume-of-" + name
	if err := s.Create(ctx, claim); err != nil {
		return origin{}, err
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              staticClass,
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "nfs.csi.k8s.io", VolumeHandle: name,
				VolumeAttributes: map[string]string{"server": "nfs.example.com", "share": "/export/" + name},
			}},
		},
	}
	if err := s.Create(ctx, volume); err != nil {
		return origin{}, err
	}
	return origin{claim, volume}, s.markBound(ctx, claim, volume)
}

// markBound writes the states of a claim and its volume as the binder does,
// which may do it at the same time.
func (s *stage) markBound(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	claimBefore, volumeBefore := claim.DeepCopy(), volume.DeepCopy()
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: volume.Spec.AccessModes, Capacity: volume.Spec.Capacity}
	if err := s.Status().Patch(ctx, claim, client.MergeFrom(claimBefore)); err != nil {
		return err
	}
	volume.Status.Phase = corev1.VolumeBound
	return s.Status().Patch(ctx, volume, client.MergeFrom(volumeBefore))
}

func claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(class),
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

// mirrorClaim returns a claim for a mirror, not created yet. It names its
// provisioner, as kube-controller-manager would have done by the time a library
// looks: in one phase that does not run.
func (s *stage) mirrorClaim(namespace, name string, of origin) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{markLabel: "yes"},
			Annotations: map[string]string{waitsFor: s.names.Provisioner()},
		},
		Spec: claimSpec(mirrorClass),
	}
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Namespace: ptr.To(of.claim.Namespace), Name: of.claim.Name}
	return claim
}

// mirrorVolume returns exactly the volume that Mooring makes for a claim.
func (s *stage) mirrorVolume(claim *corev1.PersistentVolumeClaim, of origin) (*corev1.PersistentVolume, string, error) {
	decision := mirror.Decide(mirror.Facts{
		Names: s.names, Instance: s.namespace + "/mooring", Now: time.Now(), Claim: claim,
		Class:           &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: mirrorClass}, Provisioner: s.names.Provisioner()},
		NamespaceLabels: tenantLabels, Origin: of.claim, OriginVolume: of.volume,
	})
	if decision.Verdict != mirror.Allow {
		return nil, "", fmt.Errorf("claim %s/%s would not be mirrored: %s: %s", claim.Namespace, claim.Name, decision.Reason, decision.Message)
	}
	return decision.Volume, decision.Message, nil
}

// clear removes claims, their volumes and the origins' finalizers again, so that
// the next trial finds what this one found. Who protects claims would take long.
func (s *stage) clear(ctx context.Context, claims []*corev1.PersistentVolumeClaim, origins []origin) error {
	err := each(ctx, len(claims), func(ctx context.Context, i int) error {
		if claims[i] == nil || claims[i].UID == "" {
			return nil
		}
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: mirror.VolumeName(claims[i].UID)}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claims[i].Namespace, Name: claims[i].Name}}
		for _, object := range []client.Object{claim, volume} {
			if err := s.remove(ctx, object); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove the mirrors: %w", err)
	}
	return each(ctx, len(origins), func(ctx context.Context, i int) error {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: origins[i].claim.Namespace, Name: origins[i].claim.Name}}
		if err := s.Patch(ctx, claim, finalizers("kubernetes.io/pvc-protection")); err != nil {
			return fmt.Errorf("remove an origin's finalizer: %w", err)
		}
		origins[i].claim = claim
		return nil
	})
}

func (s *stage) remove(ctx context.Context, object client.Object) error {
	if err := s.Delete(ctx, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(s.Patch(ctx, object, finalizers()))
}

// finalizers is a patch after which an object has these and no others.
func finalizers(names ...string) client.Patch {
	list := "null"
	if len(names) > 0 {
		list = fmt.Sprintf("[%q]", names[0])
	}
	return client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`))
}
