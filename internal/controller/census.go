package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// otherReason stands for a condition's reason that is none of the closed list:
// whoever can write a claim's status must not make series without end.
const otherReason = "other"

// The states of mirror claims that are counted.
const (
	stateBound   = "bound"
	stateRevoked = "revoked"
	stateLost    = "lost"
	statePending = "pending"
	stateRefused = "refused"
)

// servedBy is who looks after a mirror, and whether its namespace is this
// instance's to serve. Mirrors of an instance that runs no more, in namespaces
// that nobody else selects, are looked after by nobody.
type servedBy struct {
	instance string
	selected bool
}

// census is what is counted of all claims and volumes, whoever serves them.
type census struct {
	names   mooringapi.Names
	states  map[string]int
	refused map[string]int
	served  map[servedBy]int
	// oldest is when that mirror lost its grant which is without for longest.
	oldest        time.Time
	held, drifted int

	// What the counting needs: the records by volume, how many volumes there are
	// of which instance in which namespace, and the claims that are mirrored.
	records    map[string]mirror.Record
	namespaces map[string]map[string]int
	origins    map[types.NamespacedName]bool
}

func newCensus(options Options) *census {
	return &census{
		names:   options.Names,
		states:  map[string]int{stateBound: 0, stateRevoked: 0, stateLost: 0, statePending: 0, stateRefused: 0},
		refused: refusals(), served: map[servedBy]int{},
		records: map[string]mirror.Record{}, namespaces: map[string]map[string]int{}, origins: map[types.NamespacedName]bool{},
	}
}

func (c *census) addVolume(volume *corev1.PersistentVolume) {
	record := mirror.RecordOf(c.names, volume)
	c.records[volume.Name] = record
	c.origins[record.Origin] = true
	if c.namespaces[record.Claim.Namespace] == nil {
		c.namespaces[record.Claim.Namespace] = map[string]int{}
	}
	c.namespaces[record.Claim.Namespace][record.ServedBy]++
	if at := record.RevokedAt; !at.IsZero() && (c.oldest.IsZero() || at.Before(c.oldest)) {
		c.oldest = at
	}
}

// addClaim counts a claim; all volumes were added before.
func (c *census) addClaim(claim *corev1.PersistentVolumeClaim) {
	state := stateOf(c.names, claim)
	c.states[state]++
	if state == stateRefused {
		reason := conditionOf(c.names, claim).Reason
		if _, known := c.refused[reason]; !known {
			reason = otherReason
		}
		c.refused[reason]++
	}
	record, isMirror := c.records[claim.Spec.VolumeName]
	if isMirror && record.ClaimUID == claim.UID && driftOf(c.names, claim, record.Origin) != "" {
		c.drifted++
	}
}

func stateOf(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) string {
	condition := conditionOf(names, claim)
	isFalse := condition != nil && condition.Status == corev1.ConditionFalse
	switch {
	case claim.Status.Phase == corev1.ClaimBound && isFalse && mirror.EndsGrant(mirror.Reason(condition.Reason)):
		return stateRevoked
	case claim.Status.Phase == corev1.ClaimBound:
		return stateBound
	case claim.Status.Phase == corev1.ClaimLost:
		return stateLost
	case isFalse && condition.Reason != string(mirror.OriginPending):
		return stateRefused
	default:
		return statePending
	}
}

// driftOf returns the origin that a claim names and does not mirror, or "".
func driftOf(names mooringapi.Names, claim *corev1.PersistentVolumeClaim, recorded types.NamespacedName) string {
	drift := ""
	for _, origin := range mirror.Origins(names, claim) {
		if origin != recorded {
			drift = origin.String()
		}
	}
	return drift
}
