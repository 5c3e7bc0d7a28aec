package docs_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/controlplane"
)

// otherDoor says whether an example belongs to retained volumes, some of which
// are refused on purpose: their own suite runs them.
func otherDoor(path string) bool { return strings.HasPrefix(filepath.Base(path), "retain") }

// exampleFiles are the manifests of examples/, by their paths in the checkout.
func exampleFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || otherDoor(path) {
			if err == nil && entry.Name() == "ci" {
				return filepath.SkipDir // workflows: test/workflows lints them, test/retain runs the script
			}
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml":
			path, err = filepath.Rel(root, path)
			found = append(found, path)
			return err
		case ".md":
			return nil
		}
		t.Errorf("%s: an example ends in .yaml, or nobody tests it", path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEveryExampleApplies(t *testing.T) {
	skipOnExistingCluster(t)
	cp := plane.ForTest(t)
	index := read(t, "examples/README.md")
	for _, path := range exampleFiles(t) {
		t.Run(path, func(t *testing.T) {
			if name, _ := filepath.Rel("examples", path); !strings.Contains(index, "("+name+")") {
				t.Errorf("examples/README.md does not name %s", name)
			}
			applies(t, cp, read(t, path))
		})
	}
}

func TestEveryManifestOfThePagesApplies(t *testing.T) {
	skipOnExistingCluster(t)
	cp := plane.ForTest(t)
	for _, page := range tested {
		for _, block := range blocks(t, page) {
			for _, manifest := range manifests(t, block) {
				t.Run(block.String(), func(t *testing.T) { applies(t, cp, manifest) })
			}
		}
	}
}

// manifests are what a block shows: itself, or the here-documents of a shell's
// commands.
func manifests(t *testing.T, block block) []string {
	t.Helper()
	if block.lang == "yaml" {
		return []string{block.text}
	}
	parsed, err := commands(block.text)
	if err != nil {
		t.Fatalf("%v: %v", block, err)
	}
	var found []string
	for _, command := range parsed {
		if command.input != "" {
			found = append(found, command.input)
		}
	}
	return found
}

// applies creates every object of a manifest by a server-side dry run, in which
// no field may be unknown, and sees to it that no reference to another namespace
// is dropped. Namespaces are made, since others need them.
func applies(t *testing.T, cp *controlplane.ControlPlane, manifest string) {
	t.Helper()
	plain, err := client.New(cp.Admin(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := client.WithFieldValidation(plain, metav1.FieldValidationStrict)
	parsed, err := objects(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed) == 0 {
		t.Fatal("there is no object in it")
	}
	for _, object := range parsed {
		if name := object.GetNamespace(); name != "" {
			ensureNamespace(t, c, name)
		}
		reference, _, _ := unstructured.NestedMap(object.Object, "spec", "dataSourceRef")
		what := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		kept, _, _ := unstructured.NestedMap(object.Object, "spec", "dataSourceRef")
		for key, value := range reference {
			if kept[key] != value {
				t.Errorf("%s: of its dataSourceRef %v the API server keeps %v", what, reference, kept)
				break
			}
		}
	}
}

func ensureNamespace(t *testing.T, c client.Client, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
}
