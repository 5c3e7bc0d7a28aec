package mirror

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
)

// Hidden are the facts that whoever asks may not read: whether they exist is
// then not known either.
type Hidden struct {
	Class, Namespace, Origin, OriginVolume, Driver, Rivals bool
	// Volume is the claim's own mirror volume.
	Volume bool
}

// Situation is what somebody sees of a mirror claim.
type Situation struct {
	Facts
	Hidden Hidden
	// Volume is the volume of the name of the claim's mirror volume, whoever's
	// it is; nil where there is none.
	Volume *corev1.PersistentVolume
	// RecordedVolume is the one that the mirror volume's record names as its
	// origin's; nil where there is none.
	RecordedVolume *corev1.PersistentVolume
	// Said is the controller's own answer, the claim's condition; nil where there
	// is none.
	Said *corev1.PersistentVolumeClaimCondition
}

// Outcome is how a mirror claim stands, as explained. The zero value says that
// it is not certain.
type Outcome string

// The outcomes.
const (
	StandsUnclear Outcome = ""
	StandsBound   Outcome = "Bound"   // bound, and its grant holds
	StandsAllowed Outcome = "Allowed" // not bound yet, and nothing is in its way
	StandsRefused Outcome = "Refused"
	StandsWaiting Outcome = "Waiting"
	StandsRevoked Outcome = "Revoked" // bound, and its grant has ended
)

// Explanation is how a mirror claim stands, and why.
type Explanation struct {
	Outcome Outcome
	Reason  Reason
	Message string
	// ByController says that the answer is the controller's, taken from the claim:
	// some of what it rests on is hidden, or only the controller could try it.
	ByController bool
	Steps        []Step
	// Grant is what lets the claim in; empty where nothing does or it is hidden.
	Grant grant.Grant
}

// Explain says how a claim stands: by the controller's own ladders where
// nothing they rest on is hidden, else by what the controller wrote on the claim.
func Explain(s Situation) Explanation {
	switch {
	case s.Claim.DeletionTimestamp != nil:
		return Explanation{Message: "the claim is being deleted"}
	case s.Claim.Status.Phase == corev1.ClaimLost && s.Volume == nil && (s.Hidden.Volume || !IsRestored(s.Claim)):
		return s.lost()
	case s.isBound():
		return s.bound()
	default:
		return s.unbound()
	}
}

// isBound is the controller's: a claim restored without its volume is to get
// another one.
func (s Situation) isBound() bool {
	phase := s.Claim.Status.Phase
	return (phase == corev1.ClaimBound || phase == corev1.ClaimLost) && (s.Volume != nil || s.Hidden.Volume || !IsRestored(s.Claim))
}

// said returns the reason and text of the controller's no; empty where it has
// said none.
func (s Situation) said() (Reason, string) {
	if s.Said == nil || s.Said.Status != corev1.ConditionFalse {
		return "", ""
	}
	return Reason(s.Said.Reason), s.Said.Message
}

func (s Situation) lost() Explanation {
	if reason, message := s.said(); reason != "" {
		return Explanation{Reason: reason, Message: message, ByController: true}
	}
	return Explanation{Reason: VolumeLost, Message: "the claim was bound to volume " + s.Claim.Spec.VolumeName + ", which is not there any more; the data are untouched"}
}

// bound reviews a claim that has its volume.
func (s Situation) bound() Explanation {
	h := s.Hidden
	switch {
	case h.Volume || h.Namespace || h.Origin || h.OriginVolume || h.Driver:
		return s.boundByController()
	case s.Volume == nil:
		return Explanation{Message: "the claim is bound to volume " + s.Claim.Spec.VolumeName + ", which cannot be found"}
	}
	review, steps := Bound{
		Names: s.Names, Now: s.Now, Claim: s.Claim, Volume: s.Volume, NamespaceLabels: s.NamespaceLabels,
		Origin: s.Origin, OriginVolume: s.OriginVolume, RecordedVolume: s.RecordedVolume, Driver: s.Driver,
	}.Review()
	e := Explanation{Reason: review.Reason, Message: review.Message, Steps: steps, Grant: review.Grant}
	switch review.Standing {
	case Valid:
		e.Outcome = StandsBound
	case Revoked:
		e.Outcome = StandsRevoked
	case Unclear:
	}
	return e
}

func (s Situation) boundByController() Explanation {
	reason, message := s.said()
	e := Explanation{Outcome: StandsBound, Reason: Mirrored, ByController: true, Message: "bound to its mirror volume"}
	if s.Said != nil {
		e.Message = s.Said.Message
	}
	if reason != "" {
		e.Outcome, e.Reason, e.Message = StandsUnclear, reason, message
		if EndsGrant(reason) {
			e.Outcome = StandsRevoked
		}
	}
	for _, title := range reviewTitles {
		e.Steps = append(e.Steps, Step{Title: title, Outcome: Unseen})
	}
	answer(e.Steps, reviewStep(reason), reason, message)
	return e
}

// reviewStep returns which step of the review gives a reason, counted from 1; 0
// where none does.
func reviewStep(reason Reason) int {
	switch reason {
	case RecordBroken:
		return 1
	case NotShared:
		return 2
	case OriginTerminating:
		return 3
	case GrantReadOnly:
		return 4
	case OriginPending, OriginLost, OriginBindingBroken:
		return 5
	case OriginReplaced:
		return 6
	default:
		return 0
	}
}

// unbound climbs the ladder for a claim that has no volume yet.
func (s Situation) unbound() Explanation {
	facts := s.Facts
	decision, steps, seen := climb(facts, s.Hidden)
	reason, message := s.said()
	if decision.Verdict == Allow && reason == DriverUnknown {
		// Whether the installation refuses drivers that the table does not know
		// is seen by its answers alone.
		facts.RefuseUnknownDrivers = true
		decision, steps, seen = climb(facts, s.Hidden)
	}
	switch {
	case !seen:
		return s.unboundByController(decision, steps)
	case decision.Verdict != Allow:
		return Explanation{Outcome: outcomeOf(decision.Verdict), Reason: decision.Reason, Message: decision.Message, Steps: steps, Grant: decision.Grant}
	}
	e := Explanation{Outcome: StandsAllowed, Reason: Mirrored, Message: decision.Message, Steps: steps, Grant: decision.Grant}
	switch {
	case s.nameIsTaken():
		e.stop(VolumeNameTaken, "a volume "+s.Volume.Name+" exists and is not this claim's mirror: an administrator must look at it and remove it")
	case s.Volume == nil && (reason == VolumeRejected || reason == MirrorOfAnother || reason == VolumeNameTaken && s.Hidden.Volume):
		e.ByController = true // what came of the volume, the controller alone can say
		e.stop(reason, message)
	}
	return e
}

// nameIsTaken reports whether somebody else's volume has the name of the claim's
// mirror volume.
func (s Situation) nameIsTaken() bool {
	return s.Volume != nil && !IsMadeFor(s.Names, s.Volume, s.Claim) && !IsRestoredFor(s.Names, s.Volume, s.Claim) && !IsFormer(s.Names, s.Volume)
}

// volumeStep is what comes after the ladder.
const volumeStep = "its mirror volume can be made"

func (e *Explanation) stop(reason Reason, message string) {
	e.Outcome, e.Reason, e.Message = StandsRefused, reason, message
	e.Steps = append(e.Steps, Step{Title: volumeStep, Outcome: Stopped, Reason: reason, Message: message})
}

// unboundByController takes the controller's answer, and what could be seen of
// the ladder where there is none yet.
func (s Situation) unboundByController(decision Decision, steps []Step) Explanation {
	e := Explanation{ByController: true, Steps: steps}
	reason, message := s.said()
	switch {
	case reason != "":
		rung, verdict := rungOf(reason)
		e.Outcome, e.Reason, e.Message = outcomeOf(verdict), reason, message
		answer(steps, rung, reason, message)
		if rung == 0 {
			e.stop(reason, message)
		}
	case decision.Reason != "":
		e.ByController = false
		e.Outcome, e.Reason, e.Message = outcomeOf(decision.Verdict), decision.Reason, decision.Message
	default:
		e.Message = "the controller has said nothing yet about this claim"
	}
	return e
}

func outcomeOf(verdict Verdict) Outcome {
	switch verdict {
	case Allow:
		return StandsAllowed
	case Wait:
		return StandsWaiting
	default:
		return StandsRefused
	}
}

// rungOf returns the rung that gives a reason, 0 where none does, and the verdict
// that goes with it.
func rungOf(reason Reason) (int, Verdict) {
	for _, doc := range Reasons() {
		if doc.Reason == reason {
			return doc.Rung, doc.Verdict
		}
	}
	return 0, Refuse
}

// byController is what a step looked at that was not seen itself.
const byController = "by the controller's answer; not visible to you"

// answer fills in what the controller's answer says of the steps: those before
// the one that stopped it were passed, and those after it not reached. With
// step 0 all were passed.
func answer(steps []Step, stopped int, reason Reason, message string) {
	for i := range steps {
		step := &steps[i]
		switch {
		case i+1 == stopped:
			step.Outcome, step.Reason, step.Message = Stopped, reason, message
		case stopped > 0 && i+1 > stopped:
			*step = Step{Title: step.Title, Outcome: NotReached}
		case step.Outcome == Unseen:
			step.Outcome, step.Saw = Passed, []string{byController}
		}
	}
}

// climb climbs the ladder as far as the facts are seen, and reports whether the
// decision rests on no hidden one. Where it does not, it is the first refusal
// that could be seen, without reason where there is none.
func climb(facts Facts, hidden Hidden) (decision Decision, steps []Step, seen bool) {
	c := &climber{Facts: facts}
	if !hidden.Origin && facts.Origin == nil {
		hidden.Namespace = false // an origin that is not there lets in nobody, whatever the labels
	}
	seen = true
	stopped := false
	for i, rung := range ladder {
		step := Step{Title: rung.title, Outcome: NotReached}
		unseen := hidden.before(i + 1)
		switch {
		case stopped:
		case len(unseen) > 0:
			seen = false
			step.Outcome, step.Saw = Unseen, unseen
		default:
			step.Outcome = Passed
			if said := rung.climb(c); said != nil {
				stopped = true
				step.Outcome, step.Reason, step.Message = Stopped, said.reason, said.message
				decision = Decision{Verdict: said.verdict, Reason: said.reason, Message: said.message, Grant: c.grant}
			}
			step.Saw = sights[i](c)
		}
		steps = append(steps, step)
	}
	if seen {
		decision = Decide(facts)
	}
	return decision, steps, seen
}

// before returns what of a rung's facts is hidden, a line each.
func (h Hidden) before(rung int) []string {
	class := fact{h.Class, "the claim's StorageClass"}
	namespace := fact{h.Namespace, "the labels of the claim's namespace"}
	origin := fact{h.Origin, "the origin claim"}
	volume := fact{h.OriginVolume, "the origin volume"}
	driver := fact{h.Driver, "the driver's CSIDriver object"}
	rivals := fact{h.Rivals, "the other claims of the namespace, or their mirror volumes"}
	switch rung {
	case 2:
		return whichOf(class)
	case 3:
		return whichOf(namespace, origin)
	case 4, 5:
		return whichOf(origin, volume)
	case 6:
		return whichOf(origin, volume, driver)
	case 7:
		return whichOf(class, namespace, origin, volume)
	case 8:
		return whichOf(origin, volume, driver, rivals)
	default:
		return nil
	}
}

type fact struct {
	hidden bool
	name   string
}

func whichOf(facts ...fact) []string {
	var hidden []string
	for _, f := range facts {
		if f.hidden {
			hidden = append(hidden, "not visible to you: "+f.name)
		}
	}
	return hidden
}
