package retain

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

// MaxManifestBytes is the largest manifest that is read: etcd takes no object
// above 1.5 MiB, and a volume needs a few hundred bytes.
const MaxManifestBytes = 256 << 10

// Manifest is a volume that passed every check, in its normalised form.
type Manifest struct {
	// Volume and Object are the same object, typed and as JSON: what the owner
	// wrote, with the reviewed defaults written out.
	Volume *corev1.PersistentVolume
	Object map[string]any
	// Digest is that of Object, FileDigest that of the file's bytes.
	Digest, FileDigest string
	// Locations are the places that the volume reaches.
	Locations []Location
}

// Name returns the volume's name.
func (m Manifest) Name() string { return m.Volume.Name }

// ParseManifest returns the volume in the only document of data, or every
// problem that it finds, each with the path of its field. It needs no cluster.
func ParseManifest(data []byte) (Manifest, strictyaml.Problems) {
	// 1. The document, as what it says and as a volume.
	var raw map[string]any
	if problems := strictyaml.Decode(data, MaxManifestBytes, &raw); len(problems) > 0 {
		return Manifest{}, problems
	}
	if problems := checkKind(raw); len(problems) > 0 {
		return Manifest{}, problems // every other field would be a problem as well
	}
	var volume corev1.PersistentVolume
	if problems := strictyaml.Decode(data, MaxManifestBytes, &volume); len(problems) > 0 {
		return Manifest{}, problems
	}
	// 2. What a retained volume must and must not say.
	var errs field.ErrorList
	errs = append(errs, checkMetadata(raw, &volume.ObjectMeta)...)
	errs = append(errs, checkSpec(raw, &volume.Spec)...)
	if len(errs) > 0 {
		return Manifest{}, problemsOf(errs)
	}
	// 3. The normalised form.
	return normalise(&volume, data), nil
}

func checkKind(raw map[string]any) strictyaml.Problems {
	if raw["apiVersion"] == "v1" && raw["kind"] == "PersistentVolume" {
		return nil
	}
	return strictyaml.Problems{{Field: "kind", Detail: fmt.Sprintf("is %s %s; expected apiVersion v1 and kind PersistentVolume, one volume per file", shownText(raw["apiVersion"]), shownText(raw["kind"]))}}
}

func shownText(value any) string {
	if text, isText := value.(string); isText && len(text) < 100 {
		return fmt.Sprintf("%q", text)
	}
	return "missing"
}

// normalise writes out the defaults that the API server gives to the sources
// that Mooring accepts (pkg/apis/core/v1/defaults.go, SetDefaults_PersistentVolume;
// nfs and csi have none of their own) and drops what says nothing.
func normalise(volume *corev1.PersistentVolume, data []byte) Manifest {
	if volume.Spec.VolumeMode == nil {
		mode := corev1.PersistentVolumeFilesystem
		volume.Spec.VolumeMode = &mode
	}
	object := asObject(volume)
	delete(object, "status")
	child(object, "spec")["storageClassName"] = volume.Spec.StorageClassName // also the explicit ""
	return Manifest{
		Volume:     volume,
		Object:     object,
		Digest:     digestOf(object),
		FileDigest: digestOfBytes(data),
		Locations:  locations(&volume.Spec),
	}
}

// asObject returns a typed object as JSON. The API's types always encode.
func asObject(volume *corev1.PersistentVolume) map[string]any {
	data, err := json.Marshal(volume)
	if err != nil {
		panic(fmt.Sprintf("a volume cannot be written as JSON: %v", err))
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		panic(fmt.Sprintf("a volume's JSON cannot be read: %v", err))
	}
	metadata := child(object, "metadata")
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp") // older API types write null
	}
	return object
}

// child returns the object in a field, or an empty one.
func child(object map[string]any, name string) map[string]any {
	if inner, isObject := object[name].(map[string]any); isObject {
		return inner
	}
	return map[string]any{}
}

// problemsOf tells every problem, with the value that has it unless that looks
// like a secret.
func problemsOf(errs field.ErrorList) strictyaml.Problems {
	problems := make(strictyaml.Problems, len(errs))
	for i, err := range errs {
		if looksSecret(fmt.Sprint(err.BadValue)) {
			err.BadValue = field.OmitValueType{}
		}
		problems[i] = strictyaml.Problem{Field: err.Field, Detail: err.ErrorBody()}
	}
	return problems
}

// CheckSet returns what is wrong between manifests of one run: two of one name,
// one backend or one claim. The zero length means nothing.
func CheckSet(manifests []Manifest, allowOverlap []string) error {
	for i, m := range manifests {
		for _, earlier := range manifests[:i] {
			if earlier.Name() == m.Name() {
				return refusef(ManifestInvalid, "metadata.name: two manifests of this run have the name %q; expected one volume of each name", m.Name())
			}
			if sameClaim(m.Volume.Spec.ClaimRef, earlier.Volume.Spec.ClaimRef) {
				return refusef(ClaimContested, "spec.claimRef: %s and %s of this run want the same claim %s", earlier.Name(), m.Name(), claimName(m))
			}
			// Each is the other's neighbour, as they are once both are made.
			if err := checkNeighbour(m, NeighbourOf(earlier.Volume), allowOverlap, &Plan{}); err != nil {
				return err
			}
			if err := checkNeighbour(earlier, NeighbourOf(m.Volume), allowOverlap, &Plan{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameClaim(a, b *corev1.ObjectReference) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name
}

func claimName(m Manifest) string {
	return m.Volume.Spec.ClaimRef.Namespace + "/" + m.Volume.Spec.ClaimRef.Name
}
