package retain

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Difference is one field in which a volume is not what its manifest says.
type Difference struct {
	// Field is its path, such as spec.nfs.path.
	Field string
	// Want and Got are the manifest's and the volume's value; nil means that
	// the field is not there.
	Want, Got any
}

// IsExtra says that the volume has a field which the manifest has not.
func (d Difference) IsExtra() bool { return d.Want == nil }

func (d Difference) String() string {
	switch {
	case d.Want == nil:
		return fmt.Sprintf("%s: is %s, and not in the manifest", d.Field, d.shown(d.Got))
	case d.Got == nil:
		return fmt.Sprintf("%s: is missing; the manifest says %s", d.Field, d.shown(d.Want))
	}
	return fmt.Sprintf("%s: is %s; the manifest says %s", d.Field, d.shown(d.Got), d.shown(d.Want))
}

// shown prints a value, unless it is of a field in which careless people keep
// secrets. Of an object, such as a whole source, only the names of its fields
// are shown: any of them could be such a field.
func (d Difference) shown(value any) string {
	if object, isObject := value.(map[string]any); isObject {
		return "an object with the fields " + strings.Join(slices.Sorted(maps.Keys(object)), ", ")
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "(cannot be shown)"
	}
	text := string(data)
	for _, private := range []string{"spec.csi.volumeAttributes", "metadata.annotations"} {
		if strings.HasPrefix(d.Field, private) {
			return "a value that is not shown"
		}
	}
	if looksSecret(text) {
		return "a value that is not shown"
	}
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}

func describe(differences []Difference) string {
	lines := make([]string, len(differences))
	for i, d := range differences {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// strictness says who may have touched a volume since its manifest.
type strictness int

const (
	// exactly: nobody but the API server and its defaults. For what a create,
	// or its dry run, returns.
	exactly strictness = iota
	// evolved: the binder, and other tools in labels and annotations of their
	// own. For a volume that has lived.
	evolved
)

// serverMetadata are the metadata fields that the API server writes. Deletion is
// judged before anything is compared.
var serverMetadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds",
}

// normaliseLive returns the part of a live volume that a manifest can say. Of a
// volume that has lived, what the binder and the attacher write is removed as
// well: claimRef.uid and resourceVersion are judged with the claim at hand,
// never by comparison. In what a create returns nobody but admission can have
// written them, and they bind the volume to a claim that was not reviewed.
func normaliseLive(live map[string]any, s strictness) map[string]any {
	object := copyObject(live)
	delete(object, "status")
	metadata := child(object, "metadata")
	for _, name := range serverMetadata {
		delete(metadata, name)
	}
	spec, expected := child(object, "spec"), []string{protection}
	if driver, isCSI := child(spec, "csi")["driver"].(string); isCSI && s == evolved {
		expected = append(expected, "external-attacher/"+strings.ReplaceAll(driver, ".", "-"))
	}
	if s == evolved {
		ref := child(spec, "claimRef")
		delete(ref, "uid")
		delete(ref, "resourceVersion")
	}
	normaliseFinalizers(metadata, expected)
	normaliseSpec(object)
	return object
}

// protection is the finalizer that admission gives every volume
// (plugin/pkg/admission/storage/storageobjectinuseprotection).
const protection = "kubernetes.io/pv-protection"

// normaliseFinalizers removes the finalizers that are expected: Kubernetes'
// protection, and, once a volume has lived, the attacher's of its own driver
// (external-attacher, pkg/controller/util.go GetFinalizerName).
func normaliseFinalizers(metadata map[string]any, expected []string) {
	finalizers, isList := metadata["finalizers"].([]any)
	if !isList {
		return
	}
	others := slices.DeleteFunc(finalizers, func(f any) bool {
		name, isText := f.(string)
		return isText && slices.Contains(expected, name)
	})
	if len(others) == 0 {
		delete(metadata, "finalizers")
		return
	}
	metadata["finalizers"] = others
}

// normaliseSpec removes the explicit "" of a class, which the server does not
// store, and the apiVersion of the claim, which says nothing: when the binder
// binds a pre-bound volume it replaces the whole reference by one that has it
// (component-helpers, storage/volume, GetBindVolumeToClaim).
func normaliseSpec(object map[string]any) {
	spec := child(object, "spec")
	if spec["storageClassName"] == "" {
		delete(spec, "storageClassName")
	}
	if ref := child(spec, "claimRef"); ref["apiVersion"] == "v1" {
		delete(ref, "apiVersion")
	}
}

// compare returns every difference between a manifest and a volume, and, for a
// volume that has lived, the labels and annotations of other tools.
func compare(m Manifest, live map[string]any, s strictness) (differences []Difference, others []string) {
	want, got := copyObject(m.Object), normaliseLive(live, s)
	normaliseSpec(want)
	for _, d := range diff("", want, got) {
		if s == evolved && d.IsExtra() && isOthers(d.Field) {
			others = append(others, othersOf(d)...)
			continue
		}
		differences = append(differences, d)
	}
	return differences, others
}

// isOthers says whether a field is a label or annotation which no volume
// controller acts on.
func isOthers(field string) bool {
	if annotation, isAnnotation := strings.CutPrefix(field, "metadata.annotations."); isAnnotation {
		return !isControllers(annotation)
	}
	return strings.HasPrefix(field, "metadata.labels.")
}

func othersOf(d Difference) []string {
	return []string{strings.Replace(strings.TrimPrefix(d.Field, "metadata."), "s.", " ", 1)}
}

// diff compares two JSON values field by field. A list is one value: the order
// of access modes and mount options has a meaning.
func diff(path string, want, got any) []Difference {
	wantObject, wantIs := want.(map[string]any)
	gotObject, gotIs := got.(map[string]any)
	if path == "metadata.labels" || path == "metadata.annotations" {
		wantIs, gotIs = wantIs || want == nil, gotIs || got == nil // absent is empty
	}
	if !wantIs || !gotIs {
		if reflect.DeepEqual(want, got) {
			return nil
		}
		return []Difference{{path, want, got}}
	}
	names := slices.Sorted(maps.Keys(wantObject))
	for name := range gotObject {
		if _, known := wantObject[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var differences []Difference
	for _, name := range names {
		below := name
		if path != "" {
			below = path + "." + name
		}
		differences = append(differences, diff(below, wantObject[name], gotObject[name])...)
	}
	return differences
}

func copyObject(object map[string]any) map[string]any {
	data, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("an object that was read as JSON cannot be written as JSON: %v", err))
	}
	var copied map[string]any
	if err := json.Unmarshal(data, &copied); err != nil {
		panic(fmt.Sprintf("JSON that was just written cannot be read: %v", err))
	}
	return copied
}
