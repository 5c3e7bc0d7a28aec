package retain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

// Exported is the reviewable manifest of a live volume.
type Exported struct {
	// YAML is the manifest.
	YAML []byte
	// Notes say what was left out or changed against the live volume.
	Notes []string
	// Problems are what keeps the manifest from being accepted as it is.
	Problems strictyaml.Problems
}

// Export reads a live volume and returns its manifest: without what servers and
// controllers write, with the policy Retain. It writes nothing to the cluster.
func Export(ctx context.Context, c Reader, name string) (Exported, error) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return Exported{}, refusef(Usage, "pv/NAME: %q is no name of a volume: %s", name, strings.Join(problems, "; "))
	}
	live, err := c.Volume(ctx, name)
	if err != nil {
		return Exported{}, readError(err, Right{Verb: "get", Resource: volumes, Name: name})
	}
	if live == nil {
		return Exported{}, refusef(VolumeMissing, "volume %s is not there", name)
	}
	return exportLive(live)
}

func exportLive(live map[string]any) (Exported, error) {
	var e Exported
	object := normaliseLive(live, evolved)
	e.stripMetadata(child(object, "metadata"))
	spec := child(object, "spec")
	if _, written := spec["storageClassName"]; !written {
		spec["storageClassName"] = ""
	}
	if policy := spec["persistentVolumeReclaimPolicy"]; policy != string(corev1.PersistentVolumeReclaimRetain) {
		e.Notes = append(e.Notes, fmt.Sprintf("spec.persistentVolumeReclaimPolicy: the live volume has %v; the manifest says Retain, and the volume's owner must change the live one before it can be unchanged", policy))
		spec["persistentVolumeReclaimPolicy"] = string(corev1.PersistentVolumeReclaimRetain)
	}
	if uid := claimRefUID(live); uid != "" {
		e.Notes = append(e.Notes, fmt.Sprintf("spec.claimRef.uid: %s left out; the claim %s itself proves it", uid, liveClaim(live)))
	}
	data, err := encodeYAML(object)
	if err != nil {
		return Exported{}, err
	}
	e.YAML = data
	_, e.Problems = ParseManifest(data)
	return e, nil
}

// stripMetadata removes what no manifest may say, and says so.
func (e *Exported) stripMetadata(metadata map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if !slices.Contains(ownerWritten, name) {
			e.Notes = append(e.Notes, "metadata."+name+": left out; the live volume has it")
			delete(metadata, name)
		}
	}
	annotations := child(metadata, "annotations")
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if len(checkAnnotations(nil, map[string]string{name: ""})) > 0 {
			e.Notes = append(e.Notes, "metadata.annotations."+name+": left out; the live volume has it")
			delete(annotations, name)
		}
	}
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// encodeYAML writes an object with sorted fields, as kubectl does.
func encodeYAML(object map[string]any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	data, err = yaml.JSONToYAML(data)
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return data, nil
}
