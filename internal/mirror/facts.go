// Package mirror decides whether a claim may be a mirror of the origin that it
// names, and says exactly which volume would be made. It is pure: Facts in,
// Decision out; no client, no clock, no log.
package mirror

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Facts are everything that a decision rests on. What is missing refuses.
type Facts struct {
	Names mooringapi.Names
	// Instance is recorded as the one that serves the mirror.
	Instance string
	// RefuseUnknownDrivers refuses drivers that the table does not know.
	RefuseUnknownDrivers bool
	Now                  time.Time

	// Claim is the mirror claim.
	Claim *corev1.PersistentVolumeClaim
	// Class is the claim's StorageClass; nil where there is none of that name.
	Class *storagev1.StorageClass
	// NamespaceLabels are the labels of the claim's namespace; nil where it is
	// not known.
	NamespaceLabels map[string]string
	// Origin is the claim that Claim names, and OriginVolume the volume that
	// Origin names; nil where they do not exist.
	Origin       *corev1.PersistentVolumeClaim
	OriginVolume *corev1.PersistentVolume
	// Driver is the CSIDriver object of the origin volume's driver, if any.
	Driver *storagev1.CSIDriver
	// FormerName says that the claim names a volume as one made for a claim that
	// is no more: it was restored from a backup.
	FormerName bool
	// Rivals are the claims of Claim's namespace that mirror, or ask to mirror,
	// the same origin; Claim itself may be among them.
	Rivals []Rival
}

// Rival is a claim that mirrors the same origin in the same namespace, or asks
// to.
type Rival struct {
	Name    string
	UID     types.UID
	Created time.Time
	// Served says that it has its mirror volume.
	Served bool
}

// RivalOf returns a claim as a rival. Not every claim that names the origin is
// one: what its own spec keeps from ever being a mirror stands in nobody's way.
func RivalOf(names mooringapi.Names, claim *corev1.PersistentVolumeClaim, served bool) (rival Rival, ok bool) {
	c := &climber{Facts: Facts{Names: names, Claim: claim}}
	ok = served || claimIsFit(c) == nil && modesAreShareable(c) == nil &&
		deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeFilesystem
	return Rival{Name: claim.Name, UID: claim.UID, Created: claim.CreationTimestamp.Time, Served: served}, ok
}

// comesBefore orders rivals: who is served, then by creation, then by UID, so
// that every instance finds the same one first.
func (r Rival) comesBefore(other Rival) bool {
	switch {
	case r.Served != other.Served:
		return r.Served
	case !r.Created.Equal(other.Created):
		return r.Created.Before(other.Created)
	default:
		return r.UID < other.UID
	}
}

// Verdict is what is to be done about a claim. The zero value refuses.
type Verdict int

// The verdicts.
const (
	Refuse Verdict = iota
	Wait
	Allow
)

// String returns the verdict as it stands in metrics and documentation.
func (v Verdict) String() string {
	switch v {
	case Wait:
		return "wait"
	case Allow:
		return "allow"
	default:
		return "refuse"
	}
}

// Decision is the answer to Facts. The zero value refuses.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// Message is a sentence for the asking side; it tells nothing about an
	// origin that is not shared with it.
	Message string
	// Grant is what lets the claim in; empty before that rung was passed.
	Grant grant.Grant
	// Volume is the mirror volume to be made, where the verdict is Allow.
	Volume *corev1.PersistentVolume
	// SharesHandle says that Volume has the origin's handle, so that it must be
	// the namespace's only one.
	SharesHandle bool
}
