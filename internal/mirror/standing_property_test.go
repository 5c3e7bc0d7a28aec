package mirror_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// shuffledBound returns a bound mirror with several rows' changes at once, and
// some facts taken away, and whether any was.
func shuffledBound(seed uint64) (facts mirror.Bound, missing bool) {
	random := rand.New(rand.NewPCG(seed, seed))
	facts = bound()
	if random.IntN(3) == 0 {
		facts = bound(modes(corev1.ReadOnlyMany))
	}
	for range random.IntN(4) {
		changeBound(standings[random.IntN(len(standings))].change, &facts)
	}
	for _, forget := range []func(){
		func() { facts.Claim = nil }, func() { facts.Volume = nil }, func() { facts.NamespaceLabels = nil }, func() { facts.OriginVolume = nil },
	} {
		if random.IntN(40) == 0 {
			forget()
		}
	}
	return facts, facts.Claim == nil || facts.Volume == nil || facts.NamespaceLabels == nil
}

// changeBound changes facts, unless an earlier change took away what this one
// needs.
func changeBound(change func(*mirror.Bound), facts *mirror.Bound) {
	kept := *facts
	defer func() {
		if recover() != nil {
			*facts = kept
		}
	}()
	change(facts)
}

// mayBeValid is the rule in few words, told otherwise than the ladder tells it:
// the grant matches and is wide enough, the origin stays and is bound both ways
// by UID, and its data are the mirror's.
func mayBeValid(b mirror.Bound) bool {
	if b.Claim == nil || b.Volume == nil || b.Origin == nil || b.OriginVolume == nil {
		return false
	}
	given := grant.Evaluate(b.Names, b.Origin.Annotations, b.NamespaceLabels, b.Now).Access
	ref := b.OriginVolume.Spec.ClaimRef
	return given != grant.None && given >= mirror.Access(b.Claim) &&
		b.Volume.Annotations[b.Names.OriginClaim()] == b.Origin.Namespace+"/"+b.Origin.Name &&
		b.Origin.DeletionTimestamp == nil && b.OriginVolume.DeletionTimestamp == nil && b.Origin.Status.Phase == corev1.ClaimBound &&
		ref != nil && ref.UID == b.Origin.UID && b.Origin.Spec.VolumeName == b.OriginVolume.Name &&
		(b.OriginVolume.UID == volumeUID || mirror.Reaches(b.Volume, b.OriginVolume, b.Claim, b.Driver))
}

// mayBeRevoked is what has to be known before anything is taken: whose the mirror
// is, and that its grant has ended or its origin's data are certainly other ones.
func mayBeRevoked(b mirror.Bound) bool {
	if b.Claim == nil || b.Volume == nil || b.NamespaceLabels == nil {
		return false
	}
	ended := b.Origin == nil || b.Origin.DeletionTimestamp != nil || b.Volume.Annotations[b.Names.OriginClaim()] != b.Origin.Namespace+"/"+b.Origin.Name ||
		grant.Evaluate(b.Names, b.Origin.Annotations, b.NamespaceLabels, b.Now).Access < mirror.Access(b.Claim)
	if ended {
		return true
	}
	ref := func() *corev1.ObjectReference { return b.OriginVolume.Spec.ClaimRef }
	return b.OriginVolume != nil && ref() != nil && ref().UID == b.Origin.UID && b.Origin.Status.Phase == corev1.ClaimBound &&
		(b.OriginVolume.UID != volumeUID || b.Origin.UID != originUID || b.Volume.Annotations[b.Names.OriginClaimUID()] != originUID)
}

// checkStanding holds what must be true of every review.
func checkStanding(t *testing.T, seed uint64) mirror.Standing {
	t.Helper()
	facts, missing := shuffledBound(seed)
	got := mirror.Judge(facts)
	again, _ := shuffledBound(seed)
	switch {
	case !cmp.Equal(got, mirror.Judge(again)):
		t.Fatalf("seed %d: the same facts give two reviews", seed)
	case got.Reason == "" || got.Message == "":
		t.Fatalf("seed %d: %v without words", seed, got.Standing)
	case got.Standing == mirror.Valid && !mayBeValid(facts):
		t.Fatalf("seed %d: a wrong yes: %+v", seed, got)
	case got.Standing == mirror.Revoked && (missing || !mayBeRevoked(facts)):
		t.Fatalf("seed %d: taken although it is not certain: %+v", seed, got)
	case got.Standing != mirror.Valid && got.Record != nil:
		t.Fatalf("seed %d: %v, and the record would be changed", seed, got.Standing)
	}
	// Whatever else is true: without a grant nothing is confirmed.
	if again.Origin != nil {
		again.Origin.Annotations = nil
	}
	if without := mirror.Judge(again); without.Standing == mirror.Valid {
		t.Fatalf("seed %d: valid without any grant", seed)
	}
	return got.Standing
}

func TestJudgeProperties(t *testing.T) {
	standings := map[mirror.Standing]int{}
	for seed := range uint64(2_000) {
		standings[checkStanding(t, seed)]++
	}
	for _, standing := range []mirror.Standing{mirror.Unclear, mirror.Valid, mirror.Revoked} {
		if standings[standing] < 100 {
			t.Errorf("only %d of the cases are %v: the test has lost its sense", standings[standing], standing)
		}
	}
}

func FuzzJudge(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkStanding(t, seed) })
}
