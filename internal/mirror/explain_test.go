package mirror_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

func saying(decision mirror.Decision) *corev1.PersistentVolumeClaimCondition {
	status := corev1.ConditionFalse
	if decision.Verdict == mirror.Allow {
		status = corev1.ConditionTrue
	}
	return &corev1.PersistentVolumeClaimCondition{Status: status, Reason: string(decision.Reason), Message: decision.Message}
}

// With nothing hidden, Explain is Decide; with everything hidden, it is what the
// controller, which decided on the same facts, wrote on the claim.
func TestExplainIsTheDecision(t *testing.T) {
	hidden := mirror.Hidden{Class: true, Namespace: true, Origin: true, OriginVolume: true, Driver: true, Rivals: true, Volume: true}
	for _, tc := range append(allowed, notAllowed...) {
		facts := base()
		tc.change(&facts)
		if facts.Claim == nil {
			continue // nothing to explain
		}
		decision := mirror.Decide(facts)
		got := mirror.Explain(mirror.Situation{Facts: facts})
		if got.Reason != decision.Reason || got.Message != decision.Message || got.ByController || (got.Outcome == mirror.StandsAllowed) != (decision.Verdict == mirror.Allow) {
			t.Errorf("%s: explained as %s %s (%s), decided %s (%s)", tc.name, got.Outcome, got.Reason, got.Message, decision.Reason, decision.Message)
		}
		if decision.Verdict == mirror.Allow {
			continue
		}
		got = mirror.Explain(mirror.Situation{Facts: facts, Hidden: hidden, Said: saying(decision)})
		if got.Reason != decision.Reason || got.Message != decision.Message || got.Outcome == mirror.StandsAllowed {
			t.Errorf("%s: explained, unseen, as %s %s (%s), decided %s (%s)", tc.name, got.Outcome, got.Reason, got.Message, decision.Reason, decision.Message)
		}
	}
}

// Whatever is hidden, Explain has an answer, and none but the controller's yes
// where it matters; and what is hidden has no part in it.
func TestExplainKnowsNothingHidden(t *testing.T) {
	for _, tc := range append(allowed, notAllowed...) {
		for bits := range 1 << 7 {
			has := func(bit int) bool { return bits&(1<<bit) != 0 }
			hidden := mirror.Hidden{Class: has(0), Namespace: has(1), Origin: has(2), OriginVolume: has(2) || has(3), Driver: has(2) || has(3) || has(4), Rivals: has(5), Volume: has(6)}
			facts := base()
			tc.change(&facts)
			if facts.Claim == nil {
				continue
			}
			// What is hidden is never among the facts.
			blind := facts
			if hidden.Class {
				blind.Class = nil
			}
			if hidden.Namespace {
				blind.NamespaceLabels = nil
			}
			if hidden.Origin {
				blind.Origin = nil
			}
			if hidden.OriginVolume {
				blind.OriginVolume = nil
			}
			if hidden.Driver {
				blind.Driver = nil
			}
			got := mirror.Explain(mirror.Situation{Facts: blind, Hidden: hidden})
			if got.Outcome == mirror.StandsAllowed && mirror.Decide(facts).Verdict != mirror.Allow {
				t.Fatalf("%s: allowed with %+v", tc.name, hidden)
			}
			if got.Outcome == mirror.StandsBound {
				t.Fatalf("%s: bound with %+v", tc.name, hidden)
			}
			if hidden.Origin {
				facts.Class, facts.NamespaceLabels, facts.Driver = blind.Class, blind.NamespaceLabels, blind.Driver
				if seen := mirror.Explain(mirror.Situation{Facts: facts, Hidden: hidden}); !reflect.DeepEqual(seen, got) {
					t.Fatalf("%s: the origin's existence shows with %+v", tc.name, hidden)
				}
			}
		}
	}
}
