package docs_test

import (
	"strings"

	"helm.sh/helm/v4/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/demo/installation"
)

// helm does what a command of the page's does, through Helm's own code for
// values and templates. `helm template` is for files, which other tests render.
func (w *walk) helm(block block, args []string) {
	w.Helper()
	switch args[0] {
	case "install":
		w.install(block, args[1:])
	case "upgrade":
		w.upgrade(block, args[1:])
	case "rollback":
		w.rollback(block)
	case "uninstall":
		w.uninstall(block)
	case "template":
	default:
		w.Fatalf("%v: helm %s is not known here", block, args[0])
	}
}

// release reads a command's arguments, and sets its values over those given.
func (w *walk) release(block block, args []string, values map[string]any) chart.Options {
	w.Helper()
	options := chart.Options{ReleaseName: args[0], Values: values}
	if args[1] != "charts/mooring" {
		w.Fatalf("%v: installs %s", block, args[1])
	}
	for i := 2; i < len(args); i++ {
		switch args[i] {
		case "--namespace":
			i++
			options.Namespace = args[i]
		case "--set":
			i++
			if err := strvals.ParseInto(args[i], options.Values); err != nil {
				w.Fatalf("%v: %v", block, err)
			}
		case "--create-namespace", "--reuse-values", "--reset-then-reuse-values":
		default:
			w.Fatalf("%v: flag %s of helm is not known here", block, args[i])
		}
	}
	if _, err := chart.Render(options); err != nil {
		w.Fatalf("%v: %v", block, err)
	}
	return options
}

// install installs the first release of a page. A second one is only rendered.
func (w *walk) install(block block, args []string) {
	w.Helper()
	options := w.release(block, args, map[string]any{})
	if w.installed++; w.installed > 1 {
		return
	}
	var err error
	if w.mooringOf, err = installation.Start(w.Context(), w.plane, w.root, options); err != nil {
		w.Fatalf("%v: %v", block, err)
	}
	if w.adopted != "" {
		w.isAdopted()
	}
}

func (w *walk) upgrade(block block, args []string) {
	w.Helper()
	values := w.mooringOf.Values()
	w.former = append(w.former, w.mooringOf.Values())
	options := w.release(block, args, values)
	if err := w.mooringOf.Upgrade(w.Context(), options.Values); err != nil {
		w.Fatalf("%v: %v", block, err)
	}
}

// setValues upgrades with a block that is a values file.
func (w *walk) setValues(block block) {
	w.Helper()
	values := w.mooringOf.Values()
	w.former = append(w.former, w.mooringOf.Values())
	if err := yaml.UnmarshalStrict([]byte(block.text), &values); err != nil {
		w.Fatalf("%v: %v", block, err)
	}
	if err := w.mooringOf.Upgrade(w.Context(), values); err != nil {
		w.Fatalf("%v: %v", block, err)
	}
}

// rollback takes the latest upgrade back.
func (w *walk) rollback(block block) {
	w.Helper()
	if len(w.former) == 0 {
		w.Fatalf("%v: there is no upgrade to take back", block)
	}
	values := w.former[len(w.former)-1]
	w.former = w.former[:len(w.former)-1]
	if err := w.mooringOf.Upgrade(w.Context(), values); err != nil {
		w.Fatalf("%v: %v", block, err)
	}
}

// uninstall removes the release, after which nothing of Mooring holds a claim.
// Pages show it more than once, for several cases.
func (w *walk) uninstall(block block) {
	w.Helper()
	if w.mooringOf == nil {
		return
	}
	said, err := w.mooringOf.Uninstall(w.Context())
	if err != nil {
		w.Fatalf("%v: %v\n%s", block, err, said)
	}
	w.mooringOf = nil
	claims, err := w.api.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, claim := range claims.Items {
		for _, finalizer := range claim.Finalizers {
			if strings.HasSuffix(finalizer, "/mirrored") {
				w.Errorf("%v: after the uninstallation claim %s/%s has %s", block, claim.Namespace, claim.Name, finalizer)
			}
		}
	}
	w.mirrorsAreRetain(block)
}

// mirrorsAreRetain: what stays cannot cost anybody's data.
func (w *walk) mirrorsAreRetain(block block) {
	w.Helper()
	volumes, err := w.api.CoreV1().PersistentVolumes().List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, volume := range volumes.Items {
		if strings.HasPrefix(volume.Name, "pvc-") && volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			w.Errorf("%v: mirror volume %s is %s", block, volume.Name, volume.Spec.PersistentVolumeReclaimPolicy)
		}
	}
}
