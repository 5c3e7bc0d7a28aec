package recipe

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Description is a row as people and programs read it: `mooring drivers` and
// docs/drivers.md.
type Description struct {
	Driver string `json:"driver"`
	// VendorPrefix says that names ending in "." + Driver are this driver too.
	VendorPrefix bool `json:"vendorPrefix,omitempty"`
	// When are attributes that tell this recipe from the driver's others.
	When     map[string]string `json:"when,omitempty"`
	Mirrored bool              `json:"mirrored"`
	// Refused says why no volume is mirrored; Refuses which volumes are not.
	Refused string   `json:"refused,omitempty"`
	Refuses []string `json:"refuses,omitempty"`
	// Handle is none, unique or shared; HandleForm what it looks like.
	Handle     Handle `json:"handle,omitempty"`
	HandleForm string `json:"handleForm,omitempty"`
	// ReadOnly are the mount options that keep a read-only mirror from writing;
	// empty where there is no read-only mirror.
	ReadOnly      []string                            `json:"readOnly,omitempty"`
	ReadOnlyModes []corev1.PersistentVolumeAccessMode `json:"readOnlyModes,omitempty"`
	// Unshare are the options that every mirror has.
	Unshare    []string          `json:"unshare,omitempty"`
	Needs      []string          `json:"needs,omitempty"`
	Drops      []string          `json:"drops,omitempty"`
	Sets       map[string]string `json:"sets,omitempty"`
	Notes      []string          `json:"notes,omitempty"`
	Unverified []string          `json:"unverified,omitempty"`
	Basis      string            `json:"basis"`
}

// Describe returns the table's rows in its order.
func (t Table) Describe() []Description {
	var all []Description
	for _, row := range t {
		all = append(all, row.describe())
	}
	return all
}

// DescribeDriver returns the rows that a driver's name means, under whichever
// vendor's prefix; none for a driver that the table does not know.
func (t Table) DescribeDriver(name string) []Description {
	var known []Description
	for _, row := range t {
		if row.knows(name) {
			known = append(known, row.describe())
		}
	}
	return known
}

func (r Row) describe() Description {
	d := Description{
		Driver: r.Name, VendorPrefix: r.VendorPrefix, When: maps.Clone(r.When),
		Mirrored: r.Refused == "", Refused: r.Refused,
		Handle: r.Handle.Kind, HandleForm: r.Handle.Form,
		Unshare: slices.Clone(r.Unshare), Needs: slices.Clone(r.Need), Drops: slices.Clone(r.Drop), Sets: maps.Clone(r.Set),
		Notes: slices.Clone(r.Notes), Unverified: slices.Clone(r.Unverified), Basis: r.Basis,
	}
	for _, refusal := range r.Refusals {
		d.Refuses = append(d.Refuses, refusal.String())
	}
	if r.ReadOnly != nil {
		d.ReadOnlyModes = slices.Clone(r.ReadOnly.Modes)
		d.ReadOnly = with(slices.Clone(r.ReadOnly.Options), r.Unshare)
		if r.ReadOnly.Caveat != "" {
			d.Notes = append(d.Notes, "Read-only: "+r.ReadOnly.Caveat+".")
		}
	}
	if r.Handle.Kind == SharedHandle {
		d.Notes = append(d.Notes, "The mirror has limits: "+sharedLimits+".")
	}
	return d
}

// String says which volumes are refused and why.
func (r Refusal) String() string {
	which := "a handle with " + r.InHandle
	switch {
	case r.Attribute != "" && len(r.Values) == 0:
		which = "attribute " + r.Attribute
	case r.Attribute != "":
		which = "attribute " + r.Attribute + ": " + strings.Join(r.Values, ", ")
	case r.Option != "":
		which = "mount option " + r.Option + "…"
	}
	return which + ": " + r.Why
}
