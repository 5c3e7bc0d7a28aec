package retain

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// digestOf and digestOfBytes are the receipt's digests, so that a receipt can be
// checked against what the pure files computed.
func digestOf(value any) string { return receipt.Digest(value) }

func digestOfBytes(data []byte) string { return receipt.DigestBytes(data) }

// claimIdentity returns the claim as receipts and the plan digest have it.
func claimIdentity(m Manifest, claim *corev1.PersistentVolumeClaim) receipt.Claim {
	ref := m.Volume.Spec.ClaimRef
	identity := receipt.Claim{Namespace: ref.Namespace, Name: ref.Name}
	if claim == nil {
		return identity
	}
	identity.Present = true
	identity.UID = string(claim.UID)
	identity.VolumeName = claim.Spec.VolumeName
	identity.Phase = string(claim.Status.Phase)
	identity.SpecDigest = receipt.Digest(claim.Spec)
	return identity
}

// liveRecord returns a reading of a live volume as receipts have it.
func liveRecord(live map[string]any) *receipt.Live {
	if live == nil {
		return nil
	}
	version, _ := child(live, "metadata")["resourceVersion"].(string)
	return &receipt.Live{
		UID:             string(liveUID(live)),
		ResourceVersion: version,
		Phase:           string(livePhase(live)),
		Digest:          liveDigest(live),
		ClaimUID:        string(claimRefUID(live)),
	}
}

// liveDigest is the digest of what a manifest can say of a live volume: the
// same before and after it is bound.
func liveDigest(live map[string]any) string { return receipt.Digest(normaliseLive(live, evolved)) }

// dryRunDigest is the digest of all that a dry run returned, without what the
// server makes anew each time.
func dryRunDigest(result map[string]any) string {
	return receipt.Digest(normaliseLive(result, exactly))
}
