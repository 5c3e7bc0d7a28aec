package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// VolumeName returns the name of the mirror volume of the claim with this UID.
// It is the only lock: whoever makes a volume for the claim, of whatever
// instance or provisioner, makes it under this name.
func VolumeName(claim types.UID) string { return mooringapi.VolumeNamePrefix + string(claim) }

var volumeNameForm = regexp.MustCompile(`^` + mooringapi.VolumeNamePrefix + `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsRestored reports whether a claim names a volume in the form of a mirror
// volume's name, but not as its own: what a claim is that was restored from the
// manifest of a bound one. Its volume's name cannot be changed any more.
func IsRestored(claim *corev1.PersistentVolumeClaim) bool {
	name := claim.Spec.VolumeName
	return name != VolumeName(claim.UID) && volumeNameForm.MatchString(name)
}

// NameOf returns the name of a claim's mirror volume: VolumeName of its UID, but
// for a restored claim, which can only be bound to the one that it names.
func NameOf(claim *corev1.PersistentVolumeClaim) string {
	if IsRestored(claim) {
		return claim.Spec.VolumeName
	}
	return VolumeName(claim.UID)
}

// MadeFor returns the UID in a mirror volume's name: that of the claim that it
// was first made for, from which its handle was made.
func MadeFor(name string) types.UID {
	return types.UID(strings.TrimPrefix(name, mooringapi.VolumeNamePrefix))
}

// OriginHash returns the value of the origin label: short enough for a label,
// which namespace and name are not.
func OriginHash(origin types.NamespacedName) string {
	sum := sha256.Sum256([]byte(origin.String()))
	return hex.EncodeToString(sum[:10])
}

// volume returns the mirror volume. It is complete from its first write: no
// moment exists at which another provisioner could take it for its own, or
// another claim be bound to it.
func (c *climber) volume() *corev1.PersistentVolume {
	filesystem := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        NameOf(c.Claim),
			Labels:      map[string]string{c.Names.OriginLabel(): OriginHash(c.origin)},
			Annotations: c.record(),
		},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: c.mirror.Source,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: c.OriginVolume.Spec.Capacity[corev1.ResourceStorage],
			},
			AccessModes:                   c.modes(),
			MountOptions:                  c.mirror.MountOptions,
			VolumeMode:                    &filesystem,
			NodeAffinity:                  c.OriginVolume.Spec.NodeAffinity.DeepCopy(),
			StorageClassName:              classOfNobody(c.OriginVolume.UID, c.Claim.UID),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       claimKind,
				Namespace:  c.Claim.Namespace,
				Name:       c.Claim.Name,
				UID:        c.Claim.UID,
			},
		},
	}
}

// classOfNobody returns the storage class name of a mirror volume: one that no
// claim asks for. The binder does not look at it for the claim that claimRef
// names by UID; but if somebody clears the claimRef, as tools that recycle
// Retain volumes do, the volume becomes Available, and with the name of a real
// class the binder would give it to the next claim of that class, granted or
// not, faster than anybody can delete it (component-helpers
// storage/volume/pv_helpers.go, FindMatchingVolume). The name cannot be guessed
// by who cannot read volumes.
func classOfNobody(originVolume, claim types.UID) string {
	sum := sha256.Sum256([]byte(originVolume + "/" + claim))
	return "mirror-" + hex.EncodeToString(sum[:10])
}

// modes are the recipe's, in its order, and after them whatever else the claim
// lists: the binder wants all of the claim's modes among the volume's.
func (c *climber) modes() []corev1.PersistentVolumeAccessMode {
	modes := slices.Clone(c.mirror.AccessModes)
	for _, asked := range c.Claim.Spec.AccessModes {
		if !slices.Contains(modes, asked) {
			modes = append(modes, asked)
		}
	}
	return modes
}

// record is what the volume says about itself, for as long as it lives.
func (c *climber) record() map[string]string {
	n := c.Names
	record := map[string]string{
		mooringapi.ProvisionedBy: n.Provisioner(),
		n.MirrorClaim():          types.NamespacedName{Namespace: c.Claim.Namespace, Name: c.Claim.Name}.String(),
		n.MirrorClaimUID():       string(c.Claim.UID),
		n.OriginClaim():          c.origin.String(),
		n.OriginClaimUID():       string(c.Origin.UID),
		n.OriginVolume():         c.OriginVolume.Name,
		n.OriginVolumeUID():      string(c.OriginVolume.UID),
		n.GrantedBy():            c.grantedBy(),
		n.ServedBy():             c.Instance,
	}
	if name := NameOf(c.Claim); name != VolumeName(c.Claim.UID) {
		record[n.VolumeName()] = name
	}
	return record
}

// GrantedBy is the grant as it stands in the record.
type GrantedBy struct {
	Annotation string `json:"annotation"`
	Selector   string `json:"selector"`
	Access     string `json:"access"`
}

// longestSelector is how much of a selector's text is recorded, in bytes: every
// mirror volume holds it, and a grant may be longer.
const longestSelector = 4096

func (c *climber) grantedBy() string { return grantedBy(c.grant, c.access()) }

func grantedBy(by grant.Grant, access grant.Access) string {
	selector := by.Selector
	if len(selector) > longestSelector {
		sum := sha256.Sum256([]byte(selector))
		selector = fmt.Sprintf("sha256:%x (%d bytes)", sum, len(selector))
	}
	// Three strings always marshal.
	text, _ := json.Marshal(GrantedBy{Annotation: by.Annotation, Selector: selector, Access: access.String()})
	return string(text)
}
