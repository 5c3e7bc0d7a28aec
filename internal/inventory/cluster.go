// Package inventory reads what people ask about: claims, the mirrors and
// origins among them, and what is around them. It reads with the identity that
// asks, in as few requests as there are kinds and pages, and says what that
// identity may not see instead of failing. It never writes.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// PageSize is how many objects are asked for at once: few requests, and no
// answer that an API server would refuse to hold.
const PageSize = 2500

// Cluster is what is read from.
type Cluster struct {
	API   kubernetes.Interface
	Names mooringapi.Names

	hidden []string
}

// Hidden returns what this identity may not read, such as "persistentvolumes",
// in the order of the questions, each once.
func (c *Cluster) Hidden() []string { return c.hidden }

// hide notes what may not be read and reports whether that is what err says.
func (c *Cluster) hide(what string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	if !slices.Contains(c.hidden, what) {
		c.hidden = append(c.hidden, what)
	}
	return true
}

// Seen is one object that was asked for. Both fields are empty where it does not
// exist.
type Seen[T any] struct {
	Object *T
	// Hidden says that this identity may not read it, whether or not it exists.
	Hidden bool
}

// one reads one object: absent or hidden is no error.
func one[T any](ctx context.Context, c *Cluster, what string, get func(context.Context, string, metav1.GetOptions) (*T, error), name string) (Seen[T], error) {
	if name == "" {
		return Seen[T]{}, nil
	}
	object, err := get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return Seen[T]{Object: object}, nil
	case apierrors.IsNotFound(err):
		return Seen[T]{}, nil
	case c.hide(what, err):
		return Seen[T]{Hidden: true}, nil
	}
	return Seen[T]{}, fmt.Errorf("read %s %s: %w", what, name, err)
}

// Claim reads a claim.
func (c *Cluster) Claim(ctx context.Context, key types.NamespacedName) (Seen[corev1.PersistentVolumeClaim], error) {
	return one(ctx, c, "persistentvolumeclaims of namespace "+key.Namespace, c.API.CoreV1().PersistentVolumeClaims(key.Namespace).Get, key.Name)
}

// Volume reads a volume.
func (c *Cluster) Volume(ctx context.Context, name string) (Seen[corev1.PersistentVolume], error) {
	return one(ctx, c, "persistentvolumes", c.API.CoreV1().PersistentVolumes().Get, name)
}

// Class reads a StorageClass.
func (c *Cluster) Class(ctx context.Context, name string) (Seen[storagev1.StorageClass], error) {
	return one(ctx, c, "storageclasses", c.API.StorageV1().StorageClasses().Get, name)
}

// Driver reads a CSIDriver object.
func (c *Cluster) Driver(ctx context.Context, name string) (Seen[storagev1.CSIDriver], error) {
	return one(ctx, c, "csidrivers", c.API.StorageV1().CSIDrivers().Get, name)
}

// Namespace reads a namespace.
func (c *Cluster) Namespace(ctx context.Context, name string) (Seen[corev1.Namespace], error) {
	return one(ctx, c, "namespaces", c.API.CoreV1().Namespaces().Get, name)
}

// attempts is how often a list is begun.
const attempts = 3

// each lists page by page, and hands every object on as it comes; nil says that
// the list begins, and that what came before does not count. A list that is
// hidden is empty, and noted.
func (c *Cluster) each(ctx context.Context, what string, options metav1.ListOptions, list pager.ListPageFunc, take func(runtime.Object) error) (seen bool, err error) {
	pages := pager.New(list)
	pages.PageSize, pages.PageBufferSize = PageSize, 0
	// The API server forgets where a list stood when it tidies up: once more then.
	for range attempts {
		if err = take(nil); err != nil {
			return false, err
		}
		if err = pages.EachListItem(ctx, options, take); !apierrors.IsResourceExpired(err) {
			break
		}
	}
	if err == nil {
		return true, nil
	}
	if c.hide(what, err) {
		return false, nil
	}
	return false, fmt.Errorf("list %s: %w", what, err)
}

// Claims lists claims; namespace "" means all of them. It reports whether they
// may be listed.
func (c *Cluster) Claims(ctx context.Context, namespace string, options metav1.ListOptions) ([]corev1.PersistentVolumeClaim, bool, error) {
	var claims []corev1.PersistentVolumeClaim
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.API.CoreV1().PersistentVolumeClaims(namespace).List(ctx, options)
	}
	seen, err := c.each(ctx, "persistentvolumeclaims"+in(namespace), options, list, appendTo(&claims))
	return claims, seen, err
}

// Volumes lists all volumes.
func (c *Cluster) Volumes(ctx context.Context) ([]corev1.PersistentVolume, bool, error) {
	return c.volumes(ctx, "")
}

func (c *Cluster) volumes(ctx context.Context, selector string) ([]corev1.PersistentVolume, bool, error) {
	var volumes []corev1.PersistentVolume
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.API.CoreV1().PersistentVolumes().List(ctx, options)
	}
	seen, err := c.each(ctx, "persistentvolumes", metav1.ListOptions{LabelSelector: selector}, list, appendTo(&volumes))
	return volumes, seen, err
}

// Mirrors lists the mirror volumes, of one origin or of all (the zero name).
func (c *Cluster) Mirrors(ctx context.Context, origin types.NamespacedName) ([]corev1.PersistentVolume, bool, error) {
	selector := c.Names.OriginLabel()
	if origin.Name != "" {
		selector += "=" + mirror.OriginHash(origin)
	}
	volumes, seen, err := c.volumes(ctx, selector)
	volumes = slices.DeleteFunc(volumes, func(volume corev1.PersistentVolume) bool {
		record := mirror.RecordOf(c.Names, &volume)
		return !record.IsMirror() || origin.Name != "" && record.Origin != origin
	})
	return volumes, seen, err
}

// Namespaces lists the namespaces.
func (c *Cluster) Namespaces(ctx context.Context) ([]corev1.Namespace, bool, error) {
	var namespaces []corev1.Namespace
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.API.CoreV1().Namespaces().List(ctx, options)
	}
	seen, err := c.each(ctx, "namespaces", metav1.ListOptions{}, list, appendTo(&namespaces))
	return namespaces, seen, err
}

// Pods lists the Pods of a namespace, or of all.
func (c *Cluster) Pods(ctx context.Context, namespace string) ([]corev1.Pod, bool, error) {
	var pods []corev1.Pod
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.API.CoreV1().Pods(namespace).List(ctx, options)
	}
	seen, err := c.each(ctx, "pods"+in(namespace), metav1.ListOptions{}, list, appendTo(&pods))
	return pods, seen, err
}

// Classes lists the classes of this provisioner name, by their name.
func (c *Cluster) Classes(ctx context.Context) (map[string]storagev1.StorageClass, bool, error) {
	var all []storagev1.StorageClass
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.API.StorageV1().StorageClasses().List(ctx, options)
	}
	seen, err := c.each(ctx, "storageclasses", metav1.ListOptions{}, list, appendTo(&all))
	classes := map[string]storagev1.StorageClass{}
	for _, class := range all {
		if class.Provisioner == c.Names.Provisioner() {
			classes[class.Name] = class
		}
	}
	return classes, seen, err
}

func in(namespace string) string {
	if namespace == "" {
		return " of all namespaces"
	}
	return " of namespace " + namespace
}

var errForeign = errors.New("the API server answered with objects of another kind")

// appendTo returns what takes objects of one kind into a list.
func appendTo[T any, P interface {
	*T
	runtime.Object
}](into *[]T) func(runtime.Object) error {
	return func(object runtime.Object) error {
		if object == nil {
			*into = nil
			return nil
		}
		typed, ok := object.(P)
		if !ok {
			return errForeign
		}
		*into = append(*into, *typed)
		return nil
	}
}
