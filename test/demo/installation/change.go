package installation

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-k8s/mooring/test/chart"
)

// Values returns a copy of the values that the release has.
func (i *Installation) Values() map[string]any { return copied(i.options.Values) }

func copied(values map[string]any) map[string]any {
	c := maps.Clone(values)
	for key, value := range c {
		if nested, ok := value.(map[string]any); ok {
			c[key] = copied(nested)
		}
	}
	return c
}

// Upgrade does what `helm upgrade` with these values does: objects that the chart
// does not have any more go, the others become what it says now, and the
// controller starts anew.
func (i *Installation) Upgrade(ctx context.Context, values map[string]any) error {
	options := i.options
	options.Values = values
	objects, err := chart.Render(options)
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	if err := chart.Apply(ctx, i.plane.Admin(), objects); err != nil {
		return fmt.Errorf("upgrade the chart: %w", err)
	}
	gone := slices.DeleteFunc(slices.Clone(i.objects), func(former *unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return isSame(o, former) })
	})
	if err := chart.Delete(ctx, i.plane.Admin(), gone); err != nil {
		return err
	}
	if err := i.Controller.Stop(ctx); err != nil {
		return err
	}
	i.objects, i.options = objects, options
	i.upgrades++
	return i.run(ctx)
}

func isSame(a, b *unstructured.Unstructured) bool {
	return a.GroupVersionKind() == b.GroupVersionKind() && a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName()
}

// Uninstall does what `helm uninstall` does, and returns what the cleanup said:
// the hook's Job has to succeed, as a process with the Job's account, before
// anything is removed.
func (i *Installation) Uninstall(ctx context.Context) (string, error) {
	hook, err := chart.Cleanup(i.options)
	if err != nil {
		return "", fmt.Errorf("render the hook: %w", err)
	}
	said := ""
	if hook != nil {
		if said, err = i.cleanUp(ctx, hook); err != nil {
			return said, err
		}
	}
	if err := i.Controller.Stop(ctx); err != nil {
		return said, err
	}
	return said, chart.Delete(ctx, i.plane.Admin(), i.objects) // the namespace stays, and in it the lease
}

func (i *Installation) cleanUp(ctx context.Context, hook *chart.Hook) (string, error) {
	if err := hook.Apply(ctx, i.plane.Admin()); err != nil {
		return "", err
	}
	account, err := i.plane.ServiceAccount(ctx, hook.Job.Namespace, hook.Job.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return "", err
	}
	kubeconfig := filepath.Join(i.plane.Dir(), "cleanup.kubeconfig")
	if err := account.WriteKubeconfig(kubeconfig); err != nil {
		return "", err
	}
	var out bytes.Buffer
	command := exec.CommandContext(ctx, i.binary(), append(hook.Args(), "--kubeconfig="+kubeconfig)...)
	command.Env = append(os.Environ(), hook.Env()...)
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("the cleanup: %w", err)
	}
	return out.String(), hook.Remove(ctx, i.plane.Admin())
}
