package controller

import (
	"context"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// longestNote is the API's limit for an event's note, in bytes.
const longestNote = 1024

// teller says to people what was decided: a condition while something is
// wrong, and one event for each change.
type teller struct {
	names    mooringapi.Names
	write    writer
	recorder events.EventRecorder
}

// refusal says why a claim is not mirrored, if that was not said already.
func (t *teller) refusal(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) error {
	if isSaid(conditionOf(t.names, claim), decision) {
		return nil
	}
	if err := t.condition(ctx, claim, decision); err != nil {
		return err
	}
	kind := corev1.EventTypeWarning
	if decision.Verdict == mirror.Wait {
		kind = corev1.EventTypeNormal
	}
	t.recorder.Eventf(claim, nil, kind, string(decision.Reason), "Mirror", "%s", cut(decision.Message, longestNote))
	return nil
}

// mirrored says that a claim's volume was made.
func (t *teller) mirrored(claim *corev1.PersistentVolumeClaim, decision mirror.Decision) {
	t.recorder.Eventf(claim, nil, corev1.EventTypeNormal, string(decision.Reason), "Mirror", "%s", cut(decision.Message, longestNote))
}

// brokenGrant tells an origin's owner what is wrong with the grant.
func (t *teller) brokenGrant(origin *corev1.PersistentVolumeClaim, problem string) {
	t.recorder.Eventf(origin, nil, corev1.EventTypeWarning, "GrantBroken", "Share", "%s", cut(problem, longestNote))
}

// condition writes the condition, if it does not say so already.
func (t *teller) condition(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) error {
	before := conditionOf(t.names, claim)
	if isSaid(before, decision) {
		return nil
	}
	condition := corev1.PersistentVolumeClaimCondition{
		Type:               corev1.PersistentVolumeClaimConditionType(t.names.Condition()),
		Status:             statusOf(decision),
		Reason:             string(decision.Reason),
		Message:            decision.Message,
		LastTransitionTime: metav1.NewTime(time.Now()),
	}
	if before != nil && before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	return t.write.setCondition(ctx, claim, condition)
}

func isSaid(condition *corev1.PersistentVolumeClaimCondition, decision mirror.Decision) bool {
	return condition != nil && condition.Status == statusOf(decision) &&
		condition.Reason == string(decision.Reason) && condition.Message == decision.Message
}

func statusOf(decision mirror.Decision) corev1.ConditionStatus {
	if decision.Verdict == mirror.Allow {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// conditionOf returns Mooring's condition of a claim, nil if there is none.
func conditionOf(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	for i := range claim.Status.Conditions {
		if string(claim.Status.Conditions[i].Type) == names.Condition() {
			return &claim.Status.Conditions[i]
		}
	}
	return nil
}

// cut shortens a text to so many bytes, without breaking a character.
func cut(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
