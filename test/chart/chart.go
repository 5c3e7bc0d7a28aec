// Package chart renders the Mooring chart with Helm's own code and puts the
// result, all but the Pods, into a cluster: tests and the demo run the controller
// with exactly the arguments, identity and permissions that an installation has.
package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What an option that is left empty means.
const (
	DefaultReleaseName = "mooring"
	DefaultNamespace   = "mooring-system"
	DefaultKubeVersion = "v1.37.2"
)

const notesFile = "NOTES.txt"

// Options say what `helm install` would be told.
type Options struct {
	// ReleaseName is the release's name, which is the instance's too.
	ReleaseName string
	// Namespace is where the release lives.
	Namespace string
	// Values are set over those of values.yaml.
	Values map[string]any
	// KubeVersion is the version that the cluster is taken to have.
	KubeVersion string
	// Dir is the chart's directory. Empty means charts/mooring of the checkout
	// around the working directory.
	Dir string
}

func (o Options) withDefaults() (Options, error) {
	if o.ReleaseName == "" {
		o.ReleaseName = DefaultReleaseName
	}
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.KubeVersion == "" {
		o.KubeVersion = DefaultKubeVersion
	}
	if o.Dir != "" {
		return o, nil
	}
	var err error
	o.Dir, err = findDir()
	return o, err
}

// Render returns the objects that an installation would create: validated
// against the chart's schema, read strictly, in the order of the templates'
// names. There is exactly one Deployment among them, the controller's. Helm's
// hooks are not among them.
func Render(o Options) ([]*unstructured.Unstructured, error) {
	objects, err := renderAll(o)
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, isHook)
	deployments := 0
	for _, object := range objects {
		if object.GetKind() == deploymentKind {
			deployments++
		}
	}
	if deployments != 1 {
		return nil, fmt.Errorf("expected one Deployment in the rendered chart, found %d", deployments)
	}
	return objects, nil
}

func renderAll(o Options) ([]*unstructured.Unstructured, error) {
	files, err := renderFiles(context.Background(), o)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Base(name) == notesFile {
			continue
		}
		inFile, err := parse(files[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, inFile...)
	}
	return objects, nil
}

// Notes returns what Helm prints after an installation.
func Notes(o Options) (string, error) {
	files, err := renderFiles(context.Background(), o)
	if err != nil {
		return "", err
	}
	for name, text := range files {
		if filepath.Base(name) == notesFile {
			return text, nil
		}
	}
	return "", errors.New("the chart has no " + notesFile)
}

func renderFiles(ctx context.Context, o Options) (map[string]string, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	chart, err := loader.LoadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("load the chart %s: %w", o.Dir, err)
	}
	capabilities, err := capabilitiesOf(chart, o.KubeVersion)
	if err != nil {
		return nil, err
	}
	values, err := util.ToRenderValues(chart, o.Values, common.ReleaseOptions{
		Name: o.ReleaseName, Namespace: o.Namespace, Revision: 1, IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{}.RenderWithContext(ctx, chart, values)
}

func capabilitiesOf(chart *chartv2.Chart, kubeVersion string) (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, fmt.Errorf("version of Kubernetes %q: %w", kubeVersion, err)
	}
	if want := chart.Metadata.KubeVersion; !chartutil.IsCompatibleRange(want, version.String()) {
		return nil, fmt.Errorf("the chart needs Kubernetes %s, this is %s", want, version)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	return capabilities, nil
}

// parse reads the YAML documents of one template. A key that stands twice is an
// error here, while an API server would take the last one.
func parse(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		content, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return nil, err
		}
		if string(content) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func findDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "charts", "mooring")
		if _, err := os.Stat(filepath.Join(candidate, "Chart.yaml")); err == nil {
			return candidate, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("found no charts/mooring in %s or above it", start)
		}
	}
}
