package retain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// Verified is what the live cluster says about a receipt.
type Verified struct {
	// Volumes has one entry per volume of the receipt, in its order.
	Volumes []VerifiedVolume `json:"volumes"`
	Notes   []string         `json:"notes,omitempty"`
}

// VerifiedVolume is what the live cluster says about one volume of a receipt.
type VerifiedVolume struct {
	Name    string          `json:"name"`
	Outcome receipt.Outcome `json:"outcome"` // in the receipt
	// State is one sentence about the live volume.
	State string `json:"state"`
	// Compared says that there is a live volume which the receipt answers for.
	Compared bool `json:"compared"`
	// Drift lists every field in which the live volume left the receipt.
	Drift []string `json:"drift,omitempty"`
	// OtherMetadata lists labels and annotations of other tools: no drift.
	OtherMetadata []string `json:"otherMetadata,omitempty"`
}

// Verify compares a receipt with the live cluster. The error is an *Error with
// Drift if any volume left the receipt, and with OutcomeUnknown if the receipt
// is of a run whose end nobody recorded; what was found is whole in both cases.
func Verify(ctx context.Context, c Reader, r receipt.Receipt, access AccessFacts) (Verified, error) {
	var found Verified
	if r.Cluster == nil {
		return found, refusef(ReceiptInvalid, "the receipt ended %s before it knew its cluster: there is nothing to compare", r.Outcome)
	}
	// 1. It is the receipt's cluster.
	uid, err := clusterUID(ctx, c)
	if err != nil {
		return found, err
	}
	if uid != r.Cluster.UID {
		return found, refusef(ClusterDiffers, "the cluster has the UID %s; the receipt's has %s", uid, r.Cluster.UID)
	}
	if access.CADigest != r.Cluster.CADigest {
		found.Notes = append(found.Notes, "the kubeconfig has other certificates of authority than the receipt")
	}
	// 2. Each volume.
	for _, v := range r.Volumes {
		verified, err := verifyVolume(ctx, c, v)
		if err != nil {
			return found, err
		}
		found.Volumes = append(found.Volumes, verified)
	}
	// 3. One answer for all.
	return found, found.judge(r)
}

func (f Verified) judge(r receipt.Receipt) error {
	for _, v := range f.Volumes {
		if len(v.Drift) > 0 {
			return refusef(Drift, "volume %s is not what the receipt says", v.Name)
		}
	}
	if r.Outcome == receipt.Intended || r.Outcome == receipt.Unknown {
		return refusef(OutcomeUnknown, "the receipt is of a run whose end was not recorded; what is there now stands above, and a new preview records it")
	}
	return nil
}

func verifyVolume(ctx context.Context, c Reader, v receipt.Volume) (VerifiedVolume, error) {
	m, err := manifestOf(v)
	if err != nil {
		return VerifiedVolume{}, err
	}
	facts, err := observe(ctx, c, m, nil)
	if err != nil {
		return VerifiedVolume{}, err
	}
	found := VerifiedVolume{Name: m.Name(), Outcome: v.Outcome}
	found.compare(m, v, facts)
	return found, nil
}

// manifestOf returns the manifest in a receipt, after the same checks as one in
// a file: a receipt can have been written by anybody.
func manifestOf(v receipt.Volume) (Manifest, error) {
	data, err := json.Marshal(v.Manifest)
	if err != nil {
		return Manifest{}, fmt.Errorf("the manifest in the receipt: %w", err)
	}
	m, problems := ParseManifest(data)
	if len(problems) > 0 {
		return Manifest{}, refusef(ReceiptInvalid, "the manifest of volume %s in the receipt: %w", v.Planned.Name, problems)
	}
	if m.Digest != v.Planned.ManifestDigest || m.Name() != v.Planned.Name {
		return Manifest{}, refusef(ReceiptInvalid, "the manifest of volume %s in the receipt is not in its normalised form", v.Planned.Name)
	}
	return m, nil
}

// compare fills in state and drift. What the receipt promised decides what is
// drift; expected evolution is none.
func (f *VerifiedVolume) compare(m Manifest, v receipt.Volume, facts Facts) {
	promised := slices.Contains([]receipt.Outcome{receipt.Created, receipt.Unchanged, receipt.NeedsReview}, v.Outcome)
	switch {
	case facts.Live == nil && promised:
		f.State = "is not there"
		f.Drift = []string{"the volume is gone; its data is still at " + fmt.Sprint(v.Planned.Backends)}
	case facts.Live == nil:
		f.State = "is not there"
	case v.Outcome == receipt.Refused || v.Outcome == receipt.NotReached || v.Outcome == receipt.WouldCreate:
		f.State = "is there; the receipt did not make it"
	default:
		f.compareLive(m, v, facts, promised)
	}
}

func (f *VerifiedVolume) compareLive(m Manifest, v receipt.Volume, facts Facts, promised bool) {
	phase := livePhase(facts.Live)
	f.Compared = true
	f.State = fmt.Sprintf("is there, %s, UID %s", phase, liveUID(facts.Live))
	// 1. It is the same object.
	if promised && v.Live != nil && string(liveUID(facts.Live)) != v.Live.UID {
		f.Drift = append(f.Drift, fmt.Sprintf("metadata.uid: is %s; the receipt says %s: it was deleted and made anew", liveUID(facts.Live), v.Live.UID))
	}
	// 2. It says what the manifest says.
	differences, others := compare(m, facts.Live, evolved)
	for _, d := range differences {
		f.Drift = append(f.Drift, d.String())
	}
	f.OtherMetadata = others
	// 3. It will stay, and its binding is proven.
	if child(facts.Live, "metadata")["deletionTimestamp"] != nil {
		f.Drift = append(f.Drift, "metadata.deletionTimestamp: the volume is being deleted")
	}
	if phase != corev1.VolumeAvailable && phase != corev1.VolumeBound && phase != corev1.VolumePending {
		f.Drift = append(f.Drift, fmt.Sprintf("status.phase: is %s", phase))
	} else {
		f.compareBinding(m, v, facts)
	}
}

// compareBinding finds a binding that is not proven, or not the recorded one any
// more. A volume that lost its binding can be bound by another claim.
func (f *VerifiedVolume) compareBinding(m Manifest, v receipt.Volume, facts Facts) {
	hadClaim := v.Live != nil && v.Live.ClaimUID != ""
	if !isBound(facts.Live) {
		if hadClaim {
			f.Drift = append(f.Drift, fmt.Sprintf("spec.claimRef.uid: is missing; the receipt says %s", v.Live.ClaimUID))
		}
		return
	}
	if refused := proveBinding(m.Name(), facts.Live, facts.Claim); refused != nil {
		f.Drift = append(f.Drift, "spec.claimRef: "+refused.Message)
		return
	}
	if hadClaim && v.Live.ClaimUID != string(claimRefUID(facts.Live)) {
		f.Drift = append(f.Drift, fmt.Sprintf("spec.claimRef.uid: is %s; the receipt says %s", claimRefUID(facts.Live), v.Live.ClaimUID))
	}
}
