package inventory

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// State is how a mirror claim stands, in one word.
type State = mooringapi.State

// The states; mooringapi says what each means.
const (
	Bound   = mooringapi.StateBound
	Revoked = mooringapi.StateRevoked
	Unclear = mooringapi.StateUnclear
	Waiting = mooringapi.StateWaiting
	Refused = mooringapi.StateRefused
	Lost    = mooringapi.StateLost
	Pending = mooringapi.StatePending
	Ending  = mooringapi.StateEnding

	Gone State = "Gone" // told by a watch: there was one
)

// Row is one mirror claim as people and programs see it.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Origin is namespace/name: of the record where the mirror has one, else as
	// the claim names it; "" where it names none.
	Origin string `json:"origin,omitempty"`
	// Access is what the claim asks for: ReadWrite or ReadOnly.
	Access string `json:"access"`
	State  State  `json:"state"`
	// Reason and Message are the condition's; empty where there is none.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Class   string `json:"class,omitempty"`
	Volume  string `json:"volume,omitempty"`
	// ServedBy, GrantedBy and RevokedAt are of the volume's record; empty where
	// this identity cannot read volumes.
	ServedBy  string     `json:"servedBy,omitempty"`
	GrantedBy string     `json:"grantedBy,omitempty"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	Created   time.Time  `json:"created"`
}

// Key returns the claim's name.
func (r Row) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// IsMirrorClaim reports whether a claim is, or asks to be, a mirror: as the
// controller sees it.
func IsMirrorClaim(names mooringapi.Names, claim *corev1.PersistentVolumeClaim, classes map[string]storagev1.StorageClass, volume *corev1.PersistentVolume) bool {
	if mirror.AsksForMirror(names, claim) || ConditionOf(names, claim) != nil || volume != nil {
		return true
	}
	if claim.Spec.StorageClassName == nil {
		return false
	}
	_, ours := classes[*claim.Spec.StorageClassName]
	return ours
}

// RowOf returns a mirror claim as a row. The volume is its mirror volume, nil
// where there is none or it cannot be read.
func RowOf(names mooringapi.Names, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) Row {
	row := Row{
		Namespace: claim.Namespace,
		Name:      claim.Name,
		Access:    mirror.Access(claim).String(),
		Volume:    claim.Spec.VolumeName,
		Created:   claim.CreationTimestamp.UTC(),
	}
	if claim.Spec.StorageClassName != nil {
		row.Class = *claim.Spec.StorageClassName
	}
	if named := mirror.Origin(names, claim); named.Name != "" {
		row.Origin = named.String()
	}
	if volume != nil {
		row.record(names, volume)
	}
	state := names.StateOf(claim)
	row.State, row.Reason, row.Message = state.State, state.Reason, state.Message
	return row
}

func (r *Row) record(names mooringapi.Names, volume *corev1.PersistentVolume) {
	record := mirror.RecordOf(names, volume)
	r.Origin, r.ServedBy, r.GrantedBy = record.Origin.String(), record.ServedBy, volume.Annotations[names.GrantedBy()]
	if !record.RevokedAt.IsZero() {
		r.RevokedAt = &record.RevokedAt
	}
}

// ConditionOf returns Mooring's condition of a claim, nil if there is none.
func ConditionOf(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	return names.ConditionOf(claim)
}
