package chart

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	deploymentKind = "Deployment"
	// fieldManager is the one that Helm itself applies with.
	fieldManager = "helm"
)

// Apply creates the release's namespace and puts everything but the Deployment
// into the cluster, as an administrator with the given configuration. It can be
// called again, with the objects of other values.
func Apply(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("client for the chart's objects: %w", err)
	}
	if err := apply(ctx, c, namespaceObject(Namespace(objects))); err != nil {
		return err
	}
	return applyAllBut(ctx, c, deploymentKind, objects)
}

// Remove takes away again what Apply made, the release's namespace included.
func Remove(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	return Delete(ctx, config, append(slices.Clone(objects), namespaceObject(Namespace(objects))))
}

// Delete deletes those of the objects that exist.
func Delete(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("client for the chart's objects: %w", err)
	}
	for _, object := range objects {
		if err := c.Delete(ctx, object.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// applyAllBut leaves out the kind that would start Pods.
func applyAllBut(ctx context.Context, c client.Client, kind string, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() == kind {
			continue
		}
		if err := apply(ctx, c, object); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func namespaceObject(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("Namespace")
	object.SetName(name)
	return object
}

// Namespace returns the namespace that the release lives in.
func Namespace(objects []*unstructured.Unstructured) string {
	return deployment(objects).Namespace
}

// ServiceAccountName returns the account that the controller's Pods run as.
func ServiceAccountName(objects []*unstructured.Unstructured) string {
	return deployment(objects).Spec.Template.Spec.ServiceAccountName
}

// ControllerArgs returns the arguments that the controller is started with.
func ControllerArgs(objects []*unstructured.Unstructured) []string {
	return container(objects).Args
}

// ControllerEnv returns the environment that the controller would find in a Pod
// of the given name, in the form of os.Environ.
func ControllerEnv(objects []*unstructured.Unstructured, podName string) []string {
	return environment(container(objects), Namespace(objects), podName)
}

func environment(container corev1.Container, namespace, podName string) []string {
	fields := map[string]string{
		"metadata.name":      podName,
		"metadata.namespace": namespace,
	}
	var env []string
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			value = fields[from.FieldRef.FieldPath]
		}
		env = append(env, variable.Name+"="+value)
	}
	return env
}

func container(objects []*unstructured.Unstructured) corev1.Container {
	return deployment(objects).Spec.Template.Spec.Containers[0]
}

// deployment returns the controller's Deployment. It panics if there is none:
// Render returns no objects without one.
func deployment(objects []*unstructured.Unstructured) *appsv1.Deployment {
	for _, object := range objects {
		if object.GetKind() != deploymentKind {
			continue
		}
		typed := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			panic(fmt.Sprintf("the rendered Deployment: %v", err))
		}
		return typed
	}
	panic("these objects are not those of a rendered chart: there is no Deployment")
}
