package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is why a claim is refused.
type refusal struct{ namespace, claim, reason string }

func (r refusal) String() string { return r.namespace + "/" + r.claim + " " + r.reason }

// asksInVain applies a claim that is refused, and shows the event that says why.
func (s *stage) asksInVain(ctx context.Context, why refusal, file string) error {
	if err := s.types(ctx, "apply", "-f", file); err != nil {
		return err
	}
	if err := s.refused(ctx, why); err != nil {
		return err
	}
	return s.types(ctx, "events", "-n", why.namespace, "--for", "pvc/"+why.claim, "--types", "Warning")
}

// refused waits for the condition and the event that say why a claim is
// refused, and sees that there is no volume.
func (s *stage) refused(ctx context.Context, why refusal) error {
	s.refusals = append(s.refusals, why)
	claim, err := until(ctx, "a condition: "+why.String(), s.claim(why.namespace, why.claim),
		func(claim *corev1.PersistentVolumeClaim) bool {
			condition := s.condition(claim)
			return condition.Status == corev1.ConditionFalse && condition.Reason == why.reason
		})
	if err != nil {
		return err
	}
	if claim.Status.Phase != corev1.ClaimPending || claim.Spec.VolumeName != "" {
		return surprised(claim, "a claim that is refused is Pending, without a volume")
	}
	return s.hasEvent(ctx, why.namespace, why.claim, why.reason)
}

// condition is Mooring's condition of a claim, empty if there is none.
func (s *stage) condition(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimCondition {
	for _, condition := range claim.Status.Conditions {
		if string(condition.Type) == s.names.Condition() {
			return condition
		}
	}
	return corev1.PersistentVolumeClaimCondition{}
}

// events are those of a reason about the claims of a name.
func (s *stage) events(namespace, name, reason string) func(context.Context) (*corev1.EventList, error) {
	of := metav1.ListOptions{FieldSelector: "involvedObject.kind=PersistentVolumeClaim,involvedObject.name=" + name + ",reason=" + reason}
	return func(ctx context.Context) (*corev1.EventList, error) {
		return s.api.CoreV1().Events(namespace).List(ctx, of)
	}
}

func (s *stage) hasEvent(ctx context.Context, namespace, name, reason string) error {
	_, err := until(ctx, namespace+"/"+name+" has an event "+reason, s.events(namespace, name, reason),
		func(events *corev1.EventList) bool { return len(events.Items) > 0 })
	return err
}

// saidOnce sees that each refusal so far was said a single time.
func (s *stage) saidOnce(ctx context.Context) error {
	for _, why := range s.refusals {
		events, err := s.events(why.namespace, why.claim, why.reason)(ctx)
		if err != nil {
			return err
		}
		if len(events.Items) != 1 || events.Items[0].Count > 1 || events.Items[0].Series != nil {
			return surprised(events, "said once: %s", why)
		}
	}
	return nil
}
