package chart

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	jobKind        = "Job"
	hookAnnotation = "helm.sh/hook"
)

// Hook is what an uninstallation runs before it removes anything.
type Hook struct {
	// Objects are in Helm's order; the last one is the Job.
	Objects []*unstructured.Unstructured
	Job     batchv1.Job
}

// Cleanup returns the hook of an uninstallation; nil if the values say that
// there is none.
func Cleanup(o Options) (*Hook, error) {
	objects, err := renderAll(o)
	if err != nil {
		return nil, err
	}
	hooks := slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !isHook(o) })
	if len(hooks) == 0 {
		return nil, nil
	}
	for _, object := range hooks {
		if event := object.GetAnnotations()[hookAnnotation]; event != "pre-delete" {
			return nil, fmt.Errorf("%s %s is a hook of %q, which nothing here knows", object.GetKind(), object.GetName(), event)
		}
	}
	slices.SortStableFunc(hooks, func(a, b *unstructured.Unstructured) int { return weight(a) - weight(b) })
	hook := &Hook{Objects: hooks}
	last := hooks[len(hooks)-1]
	if last.GetKind() != jobKind {
		return nil, fmt.Errorf("the last object of the hook is %s %s, not its Job", last.GetKind(), last.GetName())
	}
	return hook, runtime.DefaultUnstructuredConverter.FromUnstructured(last.Object, &hook.Job)
}

func isHook(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[hookAnnotation] != ""
}

// weight is a hook's place among the others. One that is no number is Helm's to
// refuse, and 0 there too.
func weight(hook *unstructured.Unstructured) int {
	number, _ := strconv.Atoi(hook.GetAnnotations()["helm.sh/hook-weight"])
	return number
}

// Apply puts everything but the Job into the cluster, in Helm's order.
func (h *Hook) Apply(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("client for the hook's objects: %w", err)
	}
	return applyAllBut(ctx, c, jobKind, h.Objects)
}

// Remove takes everything away again, as Helm does after the Job has succeeded.
func (h *Hook) Remove(ctx context.Context, config *rest.Config) error {
	return Delete(ctx, config, h.Objects)
}

// Args returns the arguments that the cleanup is started with.
func (h *Hook) Args() []string { return h.Job.Spec.Template.Spec.Containers[0].Args }

// Env returns the environment that the cleanup would find in its Pod, in the
// form of os.Environ.
func (h *Hook) Env() []string {
	return environment(h.Job.Spec.Template.Spec.Containers[0], h.Job.Namespace, h.Job.Name+"-0")
}
