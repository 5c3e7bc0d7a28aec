package mooringapi_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

func TestStateOf(t *testing.T) {
	var names mooringapi.Names
	const none = corev1.ConditionStatus("")
	for _, tc := range []struct {
		name     string
		phase    corev1.PersistentVolumeClaimPhase
		status   corev1.ConditionStatus
		reason   string
		deleting bool
		want     mooringapi.State
	}{
		{"the zero value", "", none, "", false, mooringapi.StatePending},
		{"nothing said", corev1.ClaimPending, none, "", false, mooringapi.StatePending},
		{"waits", corev1.ClaimPending, corev1.ConditionFalse, mooringapi.ReasonOriginPending, false, mooringapi.StateWaiting},
		{"refused", corev1.ClaimPending, corev1.ConditionFalse, mooringapi.ReasonNotShared, false, mooringapi.StateRefused},
		{"refused for another reason", corev1.ClaimPending, corev1.ConditionFalse, "TooLarge", false, mooringapi.StateRefused},
		{"let in, not bound yet", corev1.ClaimPending, corev1.ConditionTrue, mooringapi.ReasonMirrored, false, mooringapi.StatePending},
		{"bound", corev1.ClaimBound, none, "", false, mooringapi.StateBound},
		{"bound again", corev1.ClaimBound, corev1.ConditionTrue, mooringapi.ReasonMirrored, false, mooringapi.StateBound},
		{"grant ended", corev1.ClaimBound, corev1.ConditionFalse, mooringapi.ReasonNotShared, false, mooringapi.StateRevoked},
		{"grant narrowed", corev1.ClaimBound, corev1.ConditionFalse, mooringapi.ReasonGrantReadOnly, false, mooringapi.StateRevoked},
		{"origin being deleted", corev1.ClaimBound, corev1.ConditionFalse, mooringapi.ReasonOriginTerminating, false, mooringapi.StateRevoked},
		{"origin replaced", corev1.ClaimBound, corev1.ConditionFalse, mooringapi.ReasonOriginReplaced, false, mooringapi.StateRevoked},
		{"bound and not certain", corev1.ClaimBound, corev1.ConditionFalse, "RecordBroken", false, mooringapi.StateUnclear},
		{"lost", corev1.ClaimLost, none, "", false, mooringapi.StateLost},
		{"being deleted", corev1.ClaimBound, none, "", true, mooringapi.StateEnding},
	} {
		t.Run(tc.name, func(t *testing.T) {
			since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			claim := &corev1.PersistentVolumeClaim{}
			claim.Spec.VolumeName, claim.Status.Phase = "v", tc.phase
			want := mooringapi.MirrorState{State: tc.want, Volume: "v"}
			claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "Unused", Status: corev1.ConditionFalse, Reason: mooringapi.ReasonNotShared}}
			if tc.status != none {
				claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
					Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: tc.status, Reason: tc.reason,
					Message: "why", LastTransitionTime: metav1.NewTime(since),
				})
				want.Reason, want.Message, want.Since = tc.reason, "why", since
			}
			if tc.deleting {
				now := metav1.Now()
				claim.DeletionTimestamp = &now
			}
			if got := names.StateOf(claim); got != want {
				t.Errorf("got %+v; want %+v", got, want)
			}
		})
	}
}
