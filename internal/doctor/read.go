// Package doctor looks a cluster over for everything that keeps claims from
// being mirrored, or mirrors from being what they should be, and says what to do
// about it. read.go reads, with the rights of who asks; checks.go decides, and
// is pure.
package doctor

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Patient is all that was read. What could not be is nil, and named in Hidden.
type Patient struct {
	Names mooringapi.Names
	// Command is the version of the program that asks.
	Command string
	// Reference is what the cluster does with a dataSourceRef to another
	// namespace: kept, dropped, or unknown.
	Reference   Reference
	Classes     []storagev1.StorageClass
	Drivers     []storagev1.CSIDriver
	Claims      []corev1.PersistentVolumeClaim
	Volumes     []corev1.PersistentVolume
	Deployments []appsv1.Deployment
	Leases      []coordinationv1.Lease
	Brakes      []corev1.ConfigMap
	Policies    []admissionv1.ValidatingAdmissionPolicy
	Bindings    []admissionv1.ValidatingAdmissionPolicyBinding
	// NoPolicies is whether the API server does not know such policies.
	NoPolicies bool
	// Rights are what the controllers' accounts lack, by account.
	Rights map[string][]string
	Hidden []string
}

// Reference is what a cluster does with a reference to another namespace.
type Reference string

// The answers to the question.
const (
	Kept    Reference = "kept"
	Dropped Reference = "dropped"
	Unknown Reference = "unknown"
)

// instances marks what Mooring's chart installs.
const instances = "app.kubernetes.io/name=mooring"

// Read reads all that the checks look at. The namespace is one where the asking
// identity may create claims; a dry run there tells which form of reference the
// cluster keeps.
func Read(ctx context.Context, c *inventory.Cluster, namespace string) (*Patient, error) {
	p := &Patient{Names: c.Names, Reference: reference(ctx, c, namespace), Rights: map[string][]string{}}
	for _, read := range []func(context.Context, *inventory.Cluster) error{p.objects, p.installations, p.rights, p.policies} {
		if err := read(ctx, c); err != nil {
			return nil, err
		}
	}
	p.Hidden = append(p.Hidden, c.Hidden()...)
	return p, nil
}

func (p *Patient) objects(ctx context.Context, c *inventory.Cluster) (err error) {
	if p.Claims, _, err = c.Claims(ctx, "", metav1.ListOptions{}); err != nil {
		return err
	}
	if p.Volumes, _, err = c.Volumes(ctx); err != nil {
		return err
	}
	classes, _, err := c.Classes(ctx)
	if err != nil {
		return err
	}
	for _, class := range classes {
		p.Classes = append(p.Classes, class)
	}
	drivers, err := c.API.StorageV1().CSIDrivers().List(ctx, metav1.ListOptions{})
	if err := p.visible("csidrivers", err); err != nil {
		return err
	}
	if drivers != nil {
		p.Drivers = drivers.Items
	}
	return nil
}

// installations reads what is to be seen of the controllers.
func (p *Patient) installations(ctx context.Context, c *inventory.Cluster) error {
	marked := metav1.ListOptions{LabelSelector: instances}
	deployments, err := c.API.AppsV1().Deployments("").List(ctx, marked)
	if err := p.visible("deployments of all namespaces", err); err != nil {
		return err
	}
	if deployments != nil {
		p.Deployments = deployments.Items
	}
	for _, deployment := range p.Deployments {
		lease, err := c.API.CoordinationV1().Leases(deployment.Namespace).Get(ctx, p.leaseOf(deployment), metav1.GetOptions{})
		if err := p.visible("leases of namespace "+deployment.Namespace, err); err != nil {
			return err
		}
		if lease != nil && lease.Name != "" {
			p.Leases = append(p.Leases, *lease)
		}
		brake, err := c.API.CoreV1().ConfigMaps(deployment.Namespace).Get(ctx, deployment.Name+"-brake", metav1.GetOptions{})
		if err := p.visible("configmaps of namespace "+deployment.Namespace, err); err != nil {
			return err
		}
		if brake != nil && brake.Name != "" {
			p.Brakes = append(p.Brakes, *brake)
		}
	}
	return nil
}

// instanceOf returns the installation's name, as it stands in records.
func instanceOf(deployment appsv1.Deployment) string {
	return deployment.Namespace + "/" + deployment.Labels["app.kubernetes.io/instance"]
}

// leaseOf returns the name of an installation's lease, as the chart has it.
func (p *Patient) leaseOf(deployment appsv1.Deployment) string {
	return deployment.Labels["app.kubernetes.io/instance"] + "." + p.Names.Provisioner()
}

// visible turns what may not be read into a note, and what is not there into
// nothing.
func (p *Patient) visible(what string, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		p.Hidden = append(p.Hidden, what)
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// reference asks, by a dry run, which form of reference the cluster keeps.
func reference(ctx context.Context, c *inventory.Cluster, namespace string) Reference {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "mooring-doctor-", Namespace: namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(""),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")}},
			DataSourceRef:    &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "any", Namespace: ptr.To("elsewhere")},
		},
	}
	answer, err := c.API.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err != nil:
		return Unknown
	case answer.Spec.DataSourceRef != nil && ptr.Deref(answer.Spec.DataSourceRef.Namespace, "") != "":
		return Kept
	default:
		return Dropped
	}
}
