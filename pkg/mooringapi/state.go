package mooringapi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// State is how a mirror claim stands.
type State string

// The states.
const (
	// StateBound: the data is reached.
	StateBound State = "Bound"
	// StateRevoked: it is bound, and its grant has ended.
	StateRevoked State = "Revoked"
	// StateUnclear: it is bound, and whether it may be is not certain.
	StateUnclear State = "Unclear"
	// StateWaiting: it is not bound, and will be once the origin is.
	StateWaiting State = "Waiting"
	// StateRefused: it is not bound, for a reason that somebody can mend.
	StateRefused State = "Refused"
	// StatePending: it is not bound, and nothing has been said about it yet.
	StatePending State = "Pending"
	// StateLost: its volume is gone.
	StateLost State = "Lost"
	// StateEnding: it is being deleted.
	StateEnding State = "Ending"
)

// The reasons that programs have a use for. The condition of a mirror claim has
// others too (docs/reasons.md), which tell a person what to mend; a program
// shows them with their message.
const (
	ReasonMirrored          = "Mirrored"
	ReasonNotShared         = "NotShared"
	ReasonGrantReadOnly     = "GrantReadOnly"
	ReasonOriginPending     = "OriginPending"
	ReasonOriginTerminating = "OriginTerminating"
	ReasonOriginReplaced    = "OriginReplaced"
)

// MirrorState is what a mirror claim tells about itself.
type MirrorState struct {
	State State
	// Reason and Message are those of the condition; empty where there was never
	// anything to say.
	Reason  string
	Message string
	// Since is when the condition became true or false, which for a revoked mirror
	// is when its grant was found to have ended; zero without a condition.
	Since time.Time
	// Volume is the mirror volume's name; "" until there is one.
	Volume string
}

// StateOf reads how a mirror claim stands. The zero value of a claim is
// pending: only what the claim says makes it bound.
func (n Names) StateOf(claim *corev1.PersistentVolumeClaim) MirrorState {
	state := MirrorState{Volume: claim.Spec.VolumeName}
	failing := false
	if condition := n.ConditionOf(claim); condition != nil {
		state.Reason, state.Message, state.Since = condition.Reason, condition.Message, condition.LastTransitionTime.Time
		failing = condition.Status == corev1.ConditionFalse
	}
	state.State = stateOf(claim, state.Reason, failing)
	return state
}

// ConditionOf returns Mooring's condition of a claim, nil if it has none.
func (n Names) ConditionOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	for i := range claim.Status.Conditions {
		if string(claim.Status.Conditions[i].Type) == n.Condition() {
			return &claim.Status.Conditions[i]
		}
	}
	return nil
}

func stateOf(claim *corev1.PersistentVolumeClaim, reason string, failing bool) State {
	switch {
	case claim.DeletionTimestamp != nil:
		return StateEnding
	case claim.Status.Phase == corev1.ClaimLost:
		return StateLost
	case claim.Status.Phase == corev1.ClaimBound && failing:
		return stateOfBound(reason)
	case claim.Status.Phase == corev1.ClaimBound:
		return StateBound
	case failing && reason == ReasonOriginPending:
		return StateWaiting
	case failing:
		return StateRefused
	}
	return StatePending
}

// stateOfBound tells a grant that has ended from a mirror that is not certain.
func stateOfBound(reason string) State {
	switch reason {
	case ReasonNotShared, ReasonOriginTerminating, ReasonGrantReadOnly, ReasonOriginReplaced:
		return StateRevoked
	}
	return StateUnclear
}
