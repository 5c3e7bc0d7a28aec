package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	askingNamespace = "team-c"
	askingClaim     = "data-of-team-a"
	wantedLabel     = "example.com/project"
	wantedProject   = "atlas"

	exitMirrorRefused = 3 // docs/exit-codes.md
)

// deniedScene is a claim from a namespace that is not granted, and what happens
// when it is.
func deniedScene(ctx context.Context, s *stage) error {
	s.tell.say("Namespace %s asks for the data of team-a, and has not got the label.", askingNamespace)
	if err := s.types(ctx, "apply", "-f", "examples/share/mirror-by-reference.yaml"); err != nil {
		return err
	}
	if err := s.refused(ctx, refusal{askingNamespace, askingClaim, "NotShared"}); err != nil {
		return err
	}
	if _, err := s.mooring(ctx, exitMirrorRefused, "explain", askingNamespace+"/"+askingClaim); err != nil {
		return err
	}
	s.tell.seen("Refused, with the way out; whether team-a/data exists at all is not told")
	s.tell.say("The label makes the namespace one of the project. Nobody touches the claim.")
	took, err := s.grantAndMeasure(ctx)
	if err != nil {
		return err
	}
	if err := s.mirrors(ctx, askingNamespace, askingClaim, "team-a/data"); err != nil {
		return err
	}
	s.tell.seen("%d ms from the label in the API server to Bound", took.Milliseconds())
	if err := s.toldMirrored(ctx); err != nil {
		return err
	}
	if err := s.types(ctx, "events", "-n", askingNamespace, "--for", "pvc/"+askingClaim); err != nil {
		return err
	}
	return s.saidOnce(ctx)
}

// toldMirrored waits until the claim's condition and events say that all is
// well.
func (s *stage) toldMirrored(ctx context.Context) error {
	_, err := until(ctx, "the condition is True", s.claim(askingNamespace, askingClaim),
		func(claim *corev1.PersistentVolumeClaim) bool {
			return s.condition(claim).Status == corev1.ConditionTrue
		})
	if err != nil {
		return err
	}
	return s.hasEvent(ctx, askingNamespace, askingClaim, "Mirrored")
}

// grantAndMeasure labels the namespace and returns how long after that the
// claim was Bound: both as a watch of the API server tells.
func (s *stage) grantAndMeasure(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	one := func(name string) metav1.ListOptions {
		return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	}
	namespaces, err := s.api.CoreV1().Namespaces().Watch(ctx, one(askingNamespace))
	if err != nil {
		return 0, err
	}
	defer namespaces.Stop()
	claims, err := s.api.CoreV1().PersistentVolumeClaims(askingNamespace).Watch(ctx, one(askingClaim))
	if err != nil {
		return 0, err
	}
	defer claims.Stop()
	labelled := when(ctx, namespaces, func(e watch.Event) bool {
		namespace, ok := e.Object.(*corev1.Namespace)
		return ok && namespace.Labels[wantedLabel] == wantedProject
	})
	bound := when(ctx, claims, func(e watch.Event) bool {
		claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
		return ok && isBound(claim)
	})
	if err := s.types(ctx, "label", "namespace", askingNamespace, wantedLabel+"="+wantedProject); err != nil {
		return 0, err
	}
	from, to := <-labelled, <-bound
	if from.IsZero() || to.IsZero() {
		return 0, s.stillNotBound(context.WithoutCancel(ctx))
	}
	return max(0, to.Sub(from)), nil
}

func (s *stage) stillNotBound(ctx context.Context) error {
	claim, err := s.claim(askingNamespace, askingClaim)(ctx)
	if err != nil {
		return err
	}
	return surprised(claim, "the label makes the claim Bound: not seen within %v; what is there:", patience)
}

// when sends the time at which the first matching event arrives, or the zero
// time if none does before the watch or the context ends.
func when(ctx context.Context, watching watch.Interface, matches func(watch.Event) bool) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		defer close(at)
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-watching.ResultChan():
				if !open {
					return
				}
				if matches(event) {
					at <- time.Now()
					return
				}
			}
		}
	}()
	return at
}
