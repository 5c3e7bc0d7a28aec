package cleanup

import (
	"context"
	"encoding/json"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// page is how many objects one answer holds.
const page = 500

// fieldManager is who the claims are written as: the same as the controller.
const fieldManager = "mooring-controller"

// API is what a cleanup reads and writes: everything of it, and all live.
type API interface {
	// LeaseName is namespace/name of the lease.
	LeaseName() string
	GetLease(ctx context.Context) (*coordinationv1.Lease, error)
	CreateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// ClaimsWith lists all claims that have the finalizer.
	ClaimsWith(ctx context.Context, finalizer string) ([]*metav1.ObjectMeta, error)
	// SetFinalizers fails with a conflict if the claim is not as it was read.
	SetFinalizers(ctx context.Context, claim *metav1.ObjectMeta, finalizers []string) error
	// EachVolume visits all volumes.
	EachVolume(ctx context.Context, visit func(*corev1.PersistentVolume)) error
}

type cluster struct {
	lease   types.NamespacedName
	leases  coordinationclient.LeaseInterface
	claims  metadata.Getter
	volumes coreclient.PersistentVolumeInterface
}

// Connect returns the API of a cluster, with this lease.
func Connect(config *rest.Config, lease types.NamespacedName) (API, error) {
	coordination, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{
		lease:   lease,
		leases:  coordination.Leases(lease.Namespace),
		claims:  partial.Resource(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")),
		volumes: core.PersistentVolumes(),
	}, nil
}

func (c *cluster) LeaseName() string { return c.lease.String() }

func (c *cluster) GetLease(ctx context.Context) (*coordinationv1.Lease, error) {
	return c.leases.Get(ctx, c.lease.Name, metav1.GetOptions{})
}

func (c *cluster) CreateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease.Namespace, lease.Name = c.lease.Namespace, c.lease.Name
	return c.leases.Create(ctx, lease, metav1.CreateOptions{FieldManager: fieldManager})
}

func (c *cluster) UpdateLease(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: fieldManager})
}

func (c *cluster) ClaimsWith(ctx context.Context, finalizer string) ([]*metav1.ObjectMeta, error) {
	var found []*metav1.ObjectMeta
	begin := func() { found = nil }
	err := pages(begin, func(options metav1.ListOptions) (string, error) {
		list, err := c.claims.List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if slices.Contains(list.Items[i].Finalizers, finalizer) {
				found = append(found, list.Items[i].ObjectMeta.DeepCopy()) // not the page around it
			}
		}
		return list.Continue, nil
	})
	return found, err
}

// SetFinalizers is the only write to a claim: of nothing else, and with UID and
// resourceVersion as preconditions.
func (c *cluster) SetFinalizers(ctx context.Context, claim *metav1.ObjectMeta, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             claim.UID,
		"resourceVersion": claim.ResourceVersion,
		"finalizers":      finalizers,
	}})
	if err != nil {
		return err
	}
	_, err = c.claims.Namespace(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

func (c *cluster) EachVolume(ctx context.Context, visit func(*corev1.PersistentVolume)) error {
	var all []corev1.PersistentVolume
	begin := func() { all = nil }
	err := pages(begin, func(options metav1.ListOptions) (string, error) {
		list, err := c.volumes.List(ctx, options)
		if err != nil {
			return "", err
		}
		all = append(all, list.Items...)
		return list.Continue, nil
	})
	for i := range all {
		visit(&all[i])
	}
	return err
}

// pages lists page by page. A list that took too long for the API server to
// remember where it was begins anew: half of one proves nothing.
func pages(begin func(), next func(metav1.ListOptions) (string, error)) error {
	begin()
	for token := ""; ; {
		more, err := next(metav1.ListOptions{Limit: page, Continue: token})
		switch {
		case apierrors.IsResourceExpired(err) && token != "":
			begin()
			token = ""
		case err != nil || more == "":
			return err
		default:
			token = more
		}
	}
}
