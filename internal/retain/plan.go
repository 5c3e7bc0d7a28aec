package retain

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Action is what a plan does. The zero value refuses.
type Action int

// The actions.
const (
	Refuse Action = iota
	Create
	Keep // the volume is there exactly as the manifest says
)

// String returns the action as receipts and people read it.
func (a Action) String() string {
	switch a {
	case Create:
		return "create"
	case Keep:
		return "unchanged"
	default:
		return "refused"
	}
}

// Facts are what was read of the cluster for one manifest. An error while
// reading never becomes Facts.
type Facts struct {
	// Live is the volume of the manifest's name as the server wrote it, or nil
	// if the server said that there is none.
	Live map[string]any
	// Claim is the claim that the manifest names, or nil if there is none.
	Claim *corev1.PersistentVolumeClaim
	// Neighbours are all other volumes, terminating ones included.
	Neighbours []Neighbour
	// AllowOverlap names volumes on nested paths that the caller accepts.
	AllowOverlap []string
}

// Neighbour is what counts of another volume.
type Neighbour struct {
	Name      string
	UID       types.UID
	Locations []Location
	ClaimRef  *corev1.ObjectReference
	// Mirror is set if the volume is a mirror by its record.
	Mirror *MirrorRecord
}

// MirrorRecord is the part of a mirror volume's record that says whose data it
// reaches.
type MirrorRecord struct {
	OriginVolume    string
	OriginVolumeUID types.UID
}

// Plan is the pure outcome of a manifest and facts. The zero value refuses.
type Plan struct {
	Action  Action
	Reason  Reason // set if Action is Refuse
	Message string
	// LiveUID is the live volume's UID, if there is a volume.
	LiveUID types.UID
	// Mirrors are the names of the mirrors of the live volume; AllowedOverlaps
	// are the volumes on a nested path that the caller named, each with its place.
	Mirrors, AllowedOverlaps []string
	// OtherMetadata lists labels and annotations of other tools on the live volume.
	OtherMetadata []string
}

// Decide returns the plan for one manifest.
func Decide(m Manifest, f Facts) Plan {
	plan := Plan{LiveUID: liveUID(f.Live)}
	err := plan.decide(m, f)
	if err == nil {
		return plan
	}
	plan.Action, plan.Reason, plan.Message = Refuse, err.Reason, err.Message
	return plan
}

func (p *Plan) decide(m Manifest, f Facts) *Error {
	// 1. The live volume of that name, if there is one, is the manifest's.
	if f.Live != nil {
		if err := p.checkLive(m, f); err != nil {
			return err
		}
	}
	// 2. No other volume reaches what this one reaches.
	for _, neighbour := range f.Neighbours {
		if err := checkNeighbour(m, neighbour, f.AllowOverlap, p); err != nil {
			return err
		}
	}
	// 3. A claim that is not bound to this volume could bind to it.
	if f.Claim != nil && !isBound(f.Live) {
		if err := checkClaim(m, f.Live != nil, f.Claim); err != nil {
			return err
		}
	}
	// 4. No other volume is reserved for the claim.
	for _, neighbour := range f.Neighbours {
		if err := checkContest(m, f.Claim, neighbour); err != nil {
			return err
		}
	}
	// 5. Nothing stands in the way.
	p.Action = Create
	if f.Live != nil {
		p.Action = Keep
	}
	return nil
}

// checkLive refuses a live volume that is not exactly the manifest's, or whose
// binding is not proven.
func (p *Plan) checkLive(m Manifest, f Facts) *Error {
	// 1. It will stay.
	if child(f.Live, "metadata")["deletionTimestamp"] != nil {
		return refusef(VolumeTerminating, "volume %s is being deleted", m.Name())
	}
	switch phase := livePhase(f.Live); phase {
	case corev1.VolumeReleased:
		return refusef(VolumeReleased, "volume %s was released by %s and keeps its data; it binds to no claim until an administrator decides", m.Name(), liveClaim(f.Live))
	case corev1.VolumeFailed:
		return refusef(VolumeFailed, "volume %s has the phase Failed", m.Name())
	case "", corev1.VolumePending, corev1.VolumeAvailable, corev1.VolumeBound:
	default:
		return refusef(VolumeFailed, "volume %s has the phase %q, which this version does not know", m.Name(), phase)
	}
	// 2. It is what the manifest says, and nothing else.
	differences, others := compare(m, f.Live, evolved)
	if err := refuseDifferences(m, differences); err != nil {
		return err
	}
	p.OtherMetadata = others
	// 3. Its binding is proven from the claim.
	if isBound(f.Live) {
		return proveBinding(m.Name(), f.Live, f.Claim)
	}
	return nil
}

func refuseDifferences(m Manifest, differences []Difference) *Error {
	if len(differences) == 0 {
		return nil
	}
	reason := VolumeExtraFields
	if slices.ContainsFunc(differences, func(d Difference) bool { return !d.IsExtra() }) {
		reason = VolumeDiffers
	}
	return refusef(reason, "volume %s is not what the manifest says:\n%s", m.Name(), describe(differences))
}

// isBound says whether the volume claims to be bound: by its phase, or by the
// UID that the binder writes before the phase.
func isBound(live map[string]any) bool {
	return live != nil && (livePhase(live) == corev1.VolumeBound || claimRefUID(live) != "")
}

// proveBinding refuses unless volume and claim both say that they are bound to
// each other, by UID. The volume's word alone proves nothing: it stays when the
// claim is deleted, and a new claim of the same name is another one.
func proveBinding(name string, live map[string]any, claim *corev1.PersistentVolumeClaim) *Error {
	uid := claimRefUID(live)
	switch {
	case claim == nil:
		return refusef(BoundClaimMissing, "volume %s is bound to the claim %s, which is not there", name, liveClaim(live))
	case uid == "":
		return refusef(BoundUnproven, "volume %s has the phase Bound, but its claimRef has no uid", name)
	case uid != claim.UID:
		return refusef(BoundOtherClaim, "volume %s is bound to a claim %s with the UID %s; the claim of that name has the UID %s", name, liveClaim(live), uid, claim.UID)
	case claim.Spec.VolumeName == "":
		return refusef(BoundUnproven, "volume %s names the claim %s by its UID; the claim does not name the volume yet", name, liveClaim(live))
	case claim.Spec.VolumeName != name:
		return refusef(BoundClaimDisowns, "volume %s is bound to the claim %s, which names the volume %s", name, liveClaim(live), claim.Spec.VolumeName)
	case claim.Status.Phase == corev1.ClaimLost:
		return refusef(ClaimLost, "volume %s is bound to the claim %s, which is Lost", name, liveClaim(live))
	}
	return nil
}

// checkNeighbour refuses a volume that reaches the same backend, and one on a
// nested path unless the caller named it. Mirrors of this very live volume are
// excepted by their record.
func checkNeighbour(m Manifest, n Neighbour, allowed []string, p *Plan) *Error {
	relation, mine, theirs := closest(m.Locations, n.Locations)
	switch {
	case relation == apart:
		return nil
	case n.isMirrorOf(m.Name(), p.LiveUID):
		p.Mirrors = append(p.Mirrors, n.Name)
		return nil
	case relation == same:
		return refusef(BackendShared, "%s: volume %s reaches the same place", mine, n.Name)
	case slices.Contains(allowed, n.Name):
		p.AllowedOverlaps = append(p.AllowedOverlaps, n.Name+" at "+theirs.String())
		return nil
	}
	return refusef(BackendNested, "%s: volume %s reaches %s; if both are meant, pass --allow-overlap pv/%s", mine, n.Name, theirs, n.Name)
}

func closest(mine, theirs []Location) (overlap, Location, Location) {
	relation, a, b := apart, Location{}, Location{}
	for _, m := range mine {
		for _, t := range theirs {
			if found := m.overlap(t); found > relation {
				relation, a, b = found, m, t
			}
		}
	}
	return relation, a, b
}

func (n Neighbour) isMirrorOf(name string, uid types.UID) bool {
	return n.Mirror != nil && uid != "" && n.Mirror.OriginVolume == name && n.Mirror.OriginVolumeUID == uid
}

// NeighbourOf returns what counts of a volume.
func NeighbourOf(pv *corev1.PersistentVolume) Neighbour {
	return Neighbour{
		Name: pv.Name, UID: pv.UID, Locations: locations(&pv.Spec), ClaimRef: pv.Spec.ClaimRef, Mirror: mirrorRecord(pv),
	}
}

// mirrorRecord returns the record of a mirror volume, under whichever
// provisioner name it was made, or nil. A record is believed only on a volume
// that Mooring could have made: named after the mirror claim's UID, Retain,
// reserved for no other claim.
func mirrorRecord(pv *corev1.PersistentVolume) *MirrorRecord {
	const origin, originUID, claimUID = "/origin-volume", "/origin-volume-uid", "/mirror-claim-uid"
	for _, key := range slices.Sorted(maps.Keys(pv.Annotations)) {
		provisioner, isRecord := strings.CutSuffix(key, claimUID)
		if !isRecord {
			continue
		}
		uid := types.UID(pv.Annotations[key])
		ref := pv.Spec.ClaimRef
		if pv.Name != mooringapi.VolumeNamePrefix+string(uid) || ref == nil || ref.UID != "" && ref.UID != uid ||
			pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			return nil
		}
		return &MirrorRecord{
			OriginVolume:    pv.Annotations[provisioner+origin],
			OriginVolumeUID: types.UID(pv.Annotations[provisioner+originUID]),
		}
	}
	return nil
}
