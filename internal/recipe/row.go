package recipe

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Row is one driver's recipe.
type Row struct {
	// Name is the driver's name, or what stands for it in documentation.
	Name string
	// VendorPrefix says that distributions install the driver under names that
	// end in "." + Name.
	VendorPrefix bool
	// When are the attributes that a volume must have for this row to be its
	// recipe. A row with When stands before the one without.
	When map[string]string

	// Refused says why no volume of the driver is mirrored; the other fields
	// are empty then. Refusals are volumes of the driver that are not.
	Refused  string
	Refusals []Refusal

	Handle HandleRule
	// Derive returns attributes that the origin keeps in its handle, and why
	// not.
	Derive func(handle string) (map[string]string, string)
	// Need lists the attributes without which the driver cannot find the data.
	Need []string
	// Drop lists attributes that a mirror must not have: those that make the
	// node write to the origin, or that belong to the origin alone.
	Drop []string
	// Set lists attributes with the value that a mirror must have; whatever
	// case variant of the key the origin has is replaced.
	Set map[string]string

	// Unshare are the mount options of every mirror. A driver that stages, with
	// a unique handle, needs them: the mirror's mount must be a superblock of
	// its own, or neither volume is ever unstaged on a node that has both.
	Unshare []string
	// UnshareIn is the attribute that takes them instead of the mount options.
	UnshareIn string
	// Contrary are the options that would undo them.
	Contrary []string
	// ReadOnly is how a read-only mirror is enforced; nil if it cannot be.
	ReadOnly *ReadOnlyRule
	// OptionAttributes are attributes that hold mount options too.
	OptionAttributes []string
	// OneElement says that the driver takes one element of mount options only.
	OneElement bool

	// Stages says whether the node service stages volumes.
	Stages bool
	// Notes and Unverified are for people: what to know, and what nobody has
	// seen yet.
	Notes      []string
	Unverified []string
	// Basis is where this was read: driver, snapshot, file and function.
	Basis string
}

// ReadOnlyRule is how a read-only mirror is enforced: by options that make the
// node's mount a read-only superblock of its own. A bind mount that is
// remounted read-only does not hold: runc 1.2 and later make it writable in
// the container.
type ReadOnlyRule struct {
	// Modes are the mirror volume's, the one that the driver is to see first.
	Modes []corev1.PersistentVolumeAccessMode
	// Options are added, Contrary removed.
	Options  []string
	Contrary []string
	// Caveat is where this may not hold; whoever uses the mirror is told.
	Caveat string
}

// Refusal is a kind of volume that is not mirrored: one with this attribute,
// this mount option, or this text in its handle.
type Refusal struct {
	// Attribute is a key; Values are those that refuse, any if there are none.
	Attribute string
	Values    []string
	// Option is the start of a mount option.
	Option string
	// InHandle is a part of the handle.
	InHandle string
	Why      string
}

// trueValues are what Go's strconv.ParseBool takes for true.
var trueValues = []string{"true", "t", "1"}

func (t Table) find(csi *corev1.CSIPersistentVolumeSource) (Row, bool) {
	for _, row := range t {
		isDriver := row.Name != InTreeNFS && row.Name != UnknownDriver
		if isDriver && row.knows(csi.Driver) && row.applies(csi.VolumeAttributes) {
			return row, true
		}
	}
	return Row{}, false
}

// named returns the row of a name; the zero row makes nothing.
func (t Table) named(name string) Row {
	for _, row := range t {
		if row.Name == name {
			return row
		}
	}
	return Row{}
}

func (r Row) knows(driver string) bool {
	return driver == r.Name || r.VendorPrefix && strings.HasSuffix(driver, "."+r.Name)
}

func (r Row) applies(attributes map[string]string) bool {
	for key, want := range r.When {
		if value, _ := lookUp(attributes, key); !strings.EqualFold(value, want) {
			return false
		}
	}
	return true
}

// refuses returns why the row does not mirror a volume, or "".
func (r Row) refuses(request Request) string {
	origin := request.Origin.Spec.CSI
	if r.Refused != "" {
		return "volumes of " + r.Name + " cannot be mirrored: " + r.Refused
	}
	if d := request.Driver; d != nil && d.Name == origin.Driver && d.Spec.AttachRequired != nil && *d.Spec.AttachRequired {
		return "the cluster's CSIDriver object of " + origin.Driver + " says attachRequired: true, " +
			"and a mirror of a volume that is attached to nodes would keep the origin attached, or lose it"
	}
	for _, refusal := range r.Refusals {
		if refusal.holds(request.Origin) {
			return "this volume of " + r.Name + " cannot be mirrored: " + refusal.Why
		}
	}
	return ""
}

func (r Refusal) holds(volume *corev1.PersistentVolume) bool {
	if r.Attribute != "" {
		value, _ := lookUp(volume.Spec.CSI.VolumeAttributes, r.Attribute)
		if len(r.Values) == 0 {
			return value != ""
		}
		return slices.ContainsFunc(r.Values, func(v string) bool { return strings.EqualFold(v, value) })
	}
	if r.InHandle != "" {
		return strings.Contains(volume.Spec.CSI.VolumeHandle, r.InHandle)
	}
	for _, element := range volume.Spec.MountOptions {
		for _, option := range splitOptions(element) {
			if strings.HasPrefix(option, r.Option) {
				return true
			}
		}
	}
	return false
}

// dropped are attributes that belong to the origin's own provisioning or to
// one Pod (external-provisioner Provision; kubelet csi_mounter.go SetUpAt).
var dropped = []string{
	"storage.kubernetes.io/csiProvisionerIdentity",
	"csi.storage.k8s.io/ephemeral",
	"csi.storage.k8s.io/pod.",
	"csi.storage.k8s.io/serviceAccount.",
}

// attributes returns the mirror's volume attributes, or why there are none.
// Keys are compared without case, as most drivers do: a second variant of a
// key would win at random.
func (r Row) attributes(origin *corev1.CSIPersistentVolumeSource, readOnly bool) (map[string]string, string) {
	attributes := maps.Clone(origin.VolumeAttributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	if why := r.derive(origin.VolumeHandle, attributes); why != "" {
		return nil, why
	}
	maps.DeleteFunc(attributes, func(key, _ string) bool { return r.drops(key) })
	maps.Copy(attributes, r.Set)
	r.rewriteOptions(attributes, readOnly)
	for _, need := range r.Need {
		if value, _ := lookUp(attributes, need); value == "" {
			return nil, "the origin volume has no attribute " + need + ", without which " + r.Name + " cannot find the data"
		}
	}
	if len(attributes) == 0 {
		return nil, ""
	}
	return attributes, ""
}

// derive adds what the origin's handle says and no attribute does.
func (r Row) derive(handle string, attributes map[string]string) string {
	if r.Derive == nil {
		return ""
	}
	derived, why := r.Derive(handle)
	for key, value := range derived {
		if _, present := lookUp(attributes, key); !present {
			attributes[key] = value
		}
	}
	return why
}

func (r Row) drops(key string) bool {
	isPrefix := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	isKey := func(other string) bool { return strings.EqualFold(key, other) }
	for set := range r.Set {
		if isKey(set) {
			return true
		}
	}
	return slices.ContainsFunc(dropped, isPrefix) || slices.ContainsFunc(r.Drop, isKey)
}

// rewriteOptions takes out of the attributes that hold mount options what the
// mirror's own options must not be contradicted by: drivers append them last.
func (r Row) rewriteOptions(attributes map[string]string, readOnly bool) {
	for key, value := range attributes {
		isOptions := func(other string) bool { return strings.EqualFold(key, other) }
		if slices.ContainsFunc(r.OptionAttributes, isOptions) {
			attributes[key] = strings.Join(without([]string{value}, r.contrary(readOnly)), ",")
		}
	}
	if r.UnshareIn != "" {
		value, _ := lookUp(attributes, r.UnshareIn)
		maps.DeleteFunc(attributes, func(key, _ string) bool { return strings.EqualFold(key, r.UnshareIn) })
		attributes[r.UnshareIn] = strings.Join(with(nonEmpty(value), r.Unshare), ",")
	}
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// lookUp finds an attribute by its key without case.
func lookUp(attributes map[string]string, key string) (string, bool) {
	if value, present := attributes[key]; present {
		return value, true
	}
	for k, value := range attributes {
		if strings.EqualFold(k, key) {
			return value, true
		}
	}
	return "", false
}
