package mirror_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// shuffled returns the base case with several rows' changes at once, and
// whatever a pointer among the facts may lack taken away: facts that no table
// would list.
func shuffled(seed uint64) mirror.Facts {
	random := rand.New(rand.NewPCG(seed, seed))
	rows := append(append([]row{}, allowed...), notAllowed...)
	facts := base()
	for range random.IntN(4) {
		apply(rows[random.IntN(len(rows))].change, &facts)
	}
	for _, forget := range []func(){
		func() { facts.Claim = nil }, func() { facts.Class = nil }, func() { facts.NamespaceLabels = nil },
		func() { facts.Origin = nil }, func() { facts.OriginVolume = nil }, func() { facts.Driver = nil },
	} {
		if random.IntN(40) == 0 {
			forget()
		}
	}
	return facts
}

// apply changes facts, unless an earlier change took away what this one needs.
func apply(change func(*mirror.Facts), facts *mirror.Facts) {
	kept := *facts
	defer func() {
		if recover() != nil {
			*facts = kept
		}
	}()
	change(facts)
}

// checkProperties holds what must be true of every decision.
func checkProperties(t *testing.T, seed uint64) mirror.Verdict {
	t.Helper()
	facts := shuffled(seed)
	got := mirror.Decide(facts)
	if diff := cmp.Diff(got, mirror.Decide(shuffled(seed))); diff != "" {
		t.Fatalf("seed %d: the same facts give two decisions\n%s", seed, diff)
	}
	if (got.Volume != nil) != (got.Verdict == mirror.Allow) || got.Reason == "" || got.Message == "" {
		t.Fatalf("seed %d: %v %q %q comes with volume %v", seed, got.Verdict, got.Reason, got.Message, got.Volume)
	}
	if got.Volume != nil {
		checkVolume(t, facts, got.Volume)
	}
	// Whatever else is true: without a grant nothing is allowed.
	facts = shuffled(seed)
	if facts.Origin != nil {
		delete(facts.Origin.Annotations, names.ReadWriteGrant())
		delete(facts.Origin.Annotations, names.ReadOnlyGrant())
	}
	if without := mirror.Decide(facts); without.Verdict != mirror.Refuse {
		t.Fatalf("seed %d: without any grant: %v %s", seed, without.Verdict, without.Reason)
	}
	return got.Verdict
}

func checkVolume(t *testing.T, facts mirror.Facts, volume *corev1.PersistentVolume) {
	t.Helper()
	claim, ref := facts.Claim, volume.Spec.ClaimRef
	switch {
	case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		t.Fatalf("reclaim policy %s", volume.Spec.PersistentVolumeReclaimPolicy)
	case ref == nil || ref.UID != claim.UID || ref.UID == "" || ref.Namespace != claim.Namespace || ref.Name != claim.Name:
		t.Fatalf("claimRef %v", ref)
	case !mirror.IsMirrorOf(facts.Names, volume, claim):
		t.Fatal("the volume is not known as its claim's mirror")
	case len(volume.Finalizers) > 0 || len(volume.OwnerReferences) > 0 || len(volume.Labels) != 1:
		t.Fatalf("metadata %v", volume.ObjectMeta)
	}
	for key, value := range facts.OriginVolume.Annotations {
		if volume.Annotations[key] == value && key != mooringapi.ProvisionedBy {
			t.Fatalf("annotation %s of the origin is on the mirror", key)
		}
	}
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, mode) {
			t.Fatalf("the claim asks for %v, the volume has %v: they would never bind", claim.Spec.AccessModes, volume.Spec.AccessModes)
		}
	}
}

func TestDecideProperties(t *testing.T) {
	verdicts := map[mirror.Verdict]int{}
	for seed := range uint64(20_000) {
		verdicts[checkProperties(t, seed)]++
	}
	for _, verdict := range []mirror.Verdict{mirror.Refuse, mirror.Wait, mirror.Allow} {
		if verdicts[verdict] < 100 {
			t.Errorf("only %d of the cases give %v: the test has lost its sense", verdicts[verdict], verdict)
		}
	}
}

func FuzzDecide(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkProperties(t, seed) })
}
