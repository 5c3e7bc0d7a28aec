// Package mooringapi is what other programs need to know to speak with
// Mooring: the names of its annotations, label, finalizer and condition, how a
// grant and a mirror claim are written, and how a mirror claim's state is read.
// All names start with one, the provisioner name, so that several installations
// can live in one cluster; everything is reached through [Names].
//
// Nothing here talks to a cluster: the functions write into objects and read
// from them. The package needs k8s.io/api and k8s.io/apimachinery only.
//
// From version 1.0 on it follows semantic versioning: what is exported stays,
// with its meaning, until a new major version. States and reasons may be added;
// treat one that you do not know as "not bound".
package mooringapi

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultProvisioner is the provisioner name of CrownLabs' PVC mirror
// provisioner, whose manifests Mooring serves unchanged.
const DefaultProvisioner = "pmp.crownlabs.polito.it"

// ProvisionedBy is the annotation by which Kubernetes' volume controllers know
// whose volume a PersistentVolume is (component-helpers, storage/volume,
// AnnDynamicallyProvisioned).
const ProvisionedBy = "pv.kubernetes.io/provisioned-by"

// VolumeNamePrefix and a mirror claim's UID make the name of its mirror volume.
const VolumeNamePrefix = "pvc-"

// Parameters and values that a StorageClass of Mooring may carry.
const (
	ParameterAccess = "access"
	AccessReadWrite = "ReadWrite"
	AccessReadOnly  = "ReadOnly"
)

// Values of the annotation on-revoke.
const (
	OnRevokeReport = "Report"
	OnRevokeDelete = "Delete"
)

// longestProvisioner is what Kubernetes accepts as a StorageClass's provisioner
// without a slash (pkg/apis/storage/validation, validateProvisioner).
const longestProvisioner = 63

// mirrorClaimUID is the part of the record that every mirror volume has, under
// whichever provisioner name it was made.
const mirrorClaimUID = "mirror-claim-uid"

// Names gives the names that belong to one provisioner name. The zero value
// has the default provisioner name.
type Names struct{ provisioner string }

// NewNames returns the names of the given provisioner name, or an error if it
// is not a DNS subdomain (the form that Kubernetes asks of a prefix of
// annotations and labels) or belongs to Kubernetes itself.
func NewNames(provisioner string) (Names, error) {
	if problems := validation.IsDNS1123Subdomain(provisioner); len(problems) > 0 {
		return Names{}, fmt.Errorf("provisioner name %q: expected a DNS subdomain such as mirror.example.com: %s",
			provisioner, strings.Join(problems, "; "))
	}
	if len(provisioner) > longestProvisioner {
		return Names{}, fmt.Errorf("provisioner name %q has %d characters: a StorageClass takes at most %d",
			provisioner, len(provisioner), longestProvisioner)
	}
	if isKubernetesOwn(provisioner) {
		return Names{}, fmt.Errorf("provisioner name %q: kubernetes.io and k8s.io belong to Kubernetes, "+
			"whose own volume controllers would take the volumes for theirs: choose a name of your own domain", provisioner)
	}
	return Names{provisioner: provisioner}, nil
}

func isKubernetesOwn(name string) bool {
	for _, domain := range []string{"kubernetes.io", "k8s.io"} {
		if name == domain || strings.HasSuffix(name, "."+domain) {
			return true
		}
	}
	return false
}

// Provisioner returns the provisioner name itself, as it stands in a
// StorageClass.
func (n Names) Provisioner() string {
	if n.provisioner == "" {
		return DefaultProvisioner
	}
	return n.provisioner
}

func (n Names) key(name string) string { return n.Provisioner() + "/" + name }

// ReadWriteGrant is the annotation of an origin claim that holds the selector
// of the namespaces that may mirror it read-write (or read-only).
func (n Names) ReadWriteGrant() string { return n.key("required-target-ns-labels") }

// ReadOnlyGrant is the annotation of an origin claim that holds the selector
// of the namespaces that may mirror it read-only.
func (n Names) ReadOnlyGrant() string { return n.key("read-only-target-ns-labels") }

// GrantExpires is the annotation of an origin claim with the RFC 3339 time at
// which both grants end.
func (n Names) GrantExpires() string { return n.key("grant-expires") }

// AllowDeletion is the annotation of an origin claim by which its owner lets it
// be deleted although mirrors exist: "true".
func (n Names) AllowDeletion() string { return n.key("allow-deletion") }

// OnRevoke is the annotation of a StorageClass that says what happens to a
// mirror whose grant has ended: Report or Delete.
func (n Names) OnRevoke() string { return n.key("on-revoke") }

// RevokeAfter is the annotation of a StorageClass with the time from the end of
// a grant to the deletion of the mirror claim, as a Go duration such as 5m.
func (n Names) RevokeAfter() string { return n.key("revoke-after") }

// Origin is the annotation of a mirror claim that names its origin as
// namespace/name.
func (n Names) Origin() string { return n.key("origin") }

// Finalizer stands on an origin claim from before its first mirror volume is
// made until none is left.
func (n Names) Finalizer() string { return n.key("mirrored") }

// Condition is the type of the condition that tells a mirror claim's owner why
// it is not Bound.
func (n Names) Condition() string { return n.key("Mirrored") }

// OriginLabel is the label of a mirror volume that holds a short hash of its
// origin, for lists.
func (n Names) OriginLabel() string { return n.key("origin") }

// The record: annotations of a mirror volume that say what it mirrors, for
// whom, and by which grant.

// MirrorClaim holds the mirror claim as namespace/name.
func (n Names) MirrorClaim() string { return n.key("mirror-claim") }

// MirrorClaimUID holds the mirror claim's UID. A volume with this annotation
// is a mirror volume; one without is not.
func (n Names) MirrorClaimUID() string { return n.key(mirrorClaimUID) }

// OriginClaim holds the origin claim as namespace/name.
func (n Names) OriginClaim() string { return n.key("origin-claim") }

// OriginClaimUID holds the origin claim's UID.
func (n Names) OriginClaimUID() string { return n.key("origin-claim-uid") }

// OriginVolume holds the origin volume's name.
func (n Names) OriginVolume() string { return n.key("origin-volume") }

// OriginVolumeUID holds the origin volume's UID.
func (n Names) OriginVolumeUID() string { return n.key("origin-volume-uid") }

// GrantedBy holds the grant as JSON: which annotation, its selector, the access.
func (n Names) GrantedBy() string { return n.key("granted-by") }

// ServedBy holds the instance that made the mirror volume, or has taken it over.
func (n Names) ServedBy() string { return n.key("served-by") }

// VolumeName holds a mirror volume's own name where its claim was restored from
// a backup, so that its UID is another than the one in the name.
func (n Names) VolumeName() string { return n.key("volume-name") }

// RevokedAt holds the RFC 3339 time at which a mirror was found to have lost its
// grant.
func (n Names) RevokedAt() string { return n.key("revoked-at") }

// AdoptedAt holds the RFC 3339 time at which the record was written on a volume
// of a provisioner that had the name before.
func (n Names) AdoptedAt() string { return n.key("adopted-at") }

// OriginReleasedAt holds the RFC 3339 time at which the origin was let go while
// the mirror existed, since its owner allowed it.
func (n Names) OriginReleasedAt() string { return n.key("origin-released-at") }

// IsMirrorVolume reports whether annotations are those of a mirror volume, made
// under whichever provisioner name: a mirror may not be mirrored again, by no
// instance.
func IsMirrorVolume(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasSuffix(key, "/"+mirrorClaimUID) {
			return true
		}
	}
	return false
}
