package controller

import (
	"context"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

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
	metrics  *metrics
	said     recently[types.UID, saying]
	refrains refrains
}

// saying is what a condition says.
type saying struct {
	status  corev1.ConditionStatus
	reason  string
	message string
}

func sayingOf(decision mirror.Decision) saying {
	status := corev1.ConditionFalse
	if decision.Verdict == mirror.Allow {
		status = corev1.ConditionTrue
	}
	return saying{status, string(decision.Reason), decision.Message}
}

// isIn reports whether a claim's condition says this already.
func (s saying) isIn(condition *corev1.PersistentVolumeClaimCondition) bool {
	return condition != nil && s == saying{condition.Status, condition.Reason, condition.Message}
}

// refusal says why a claim is not mirrored, if that was not said already.
func (t *teller) refusal(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) (ctrl.Result, error) {
	kind := corev1.EventTypeWarning
	if decision.Verdict == mirror.Wait {
		kind = corev1.EventTypeNormal
	}
	result, news, err := t.put(ctx, claim, decision)
	if news {
		t.event(ctx, claim, kind, decision)
	}
	return result, err
}

// condition writes the condition, unless it says so already.
func (t *teller) condition(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) (ctrl.Result, error) {
	result, _, err := t.put(ctx, claim, decision)
	return result, err
}

// mirrored says that a claim's volume was made.
func (t *teller) mirrored(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) {
	t.event(ctx, claim, corev1.EventTypeNormal, decision)
}

func (t *teller) event(ctx context.Context, claim *corev1.PersistentVolumeClaim, kind string, decision mirror.Decision) {
	isFirst := !isBound(claim) && conditionOf(t.names, claim) == nil
	t.metrics.decided(decision, claim, isFirst, time.Now())
	log.FromContext(ctx).Info("decided", "verdict", decision.Verdict.String(), "reason", decision.Reason, "message", decision.Message)
	t.note(subject{claim, nil, "Mirror"}, kind, string(decision.Reason), "%s", decision.Message)
}

// recovered writes the condition of a mirror whose grant is there again, and
// says so.
func (t *teller) recovered(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) (ctrl.Result, error) {
	result, news, err := t.put(ctx, claim, decision)
	if news {
		decision.Message = "the grant is there again: " + decision.Message
		t.event(ctx, claim, corev1.EventTypeNormal, decision)
	}
	return result, err
}

// put writes the condition, unless it says so already, and reports whether it
// is news. Where the cache does not show yet what was written a moment ago, the
// claim is to be looked at once more: somebody may have removed it since.
func (t *teller) put(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) (again ctrl.Result, news bool, err error) {
	now, before, say := time.Now(), conditionOf(t.names, claim), sayingOf(decision)
	if say.isIn(before) {
		t.said.forget(claim.UID)
		return ctrl.Result{}, false, nil
	}
	if rest := t.said.rest(claim.UID, say, now); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, false, nil
	}
	condition := corev1.PersistentVolumeClaimCondition{
		Type:               corev1.PersistentVolumeClaimConditionType(t.names.Condition()),
		Status:             say.status,
		Reason:             say.reason,
		Message:            say.message,
		LastProbeTime:      metav1.NewTime(now),
		LastTransitionTime: metav1.NewTime(now),
	}
	if before != nil && before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	if err := t.write.setCondition(ctx, claim, condition); err != nil {
		return ctrl.Result{}, false, err
	}
	t.said.remember(claim.UID, say, now)
	return ctrl.Result{}, true, nil
}

// conditionOf returns Mooring's condition of a claim, nil if there is none.
func conditionOf(names mooringapi.Names, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	return names.ConditionOf(claim)
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
