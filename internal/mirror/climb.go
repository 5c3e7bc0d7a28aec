package mirror

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Step is one rung of a ladder as it was climbed: what people are shown.
type Step struct {
	Title string `json:"title"`
	// Outcome is passed, stopped, not reached or not visible.
	Outcome StepOutcome `json:"outcome"`
	// Reason and Message say why the ladder stopped here.
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Saw is what the rung looked at, a line each.
	Saw []string `json:"saw,omitempty"`
}

// StepOutcome is how a step ended.
type StepOutcome string

// The outcomes of a step.
const (
	NotReached StepOutcome = "not reached"
	Passed     StepOutcome = "passed"
	Stopped    StepOutcome = "stopped"
	// Unseen is a step that rests on what whoever asks may not read.
	Unseen StepOutcome = "not visible"
)

// sights say what each rung of the ladder looks at, in its order.
var sights = []func(*climber) []string{
	func(c *climber) []string {
		var saw []string
		for _, origin := range Origins(c.Names, c.Claim) {
			saw = append(saw, "names "+origin.String())
		}
		return saw
	},
	func(c *climber) []string {
		if c.Class == nil {
			return []string{"no StorageClass " + quote(deref(c.Claim.Spec.StorageClassName, ""))}
		}
		saw := []string{"StorageClass " + c.Class.Name + " of provisioner " + c.Class.Provisioner}
		for key, value := range c.Class.Parameters {
			saw = append(saw, "parameter "+key+": "+value)
		}
		slices.Sort(saw[1:])
		return saw
	},
	grantSight,
	bindingSight,
	func(c *climber) []string { return []string{"record of volume " + c.OriginVolume.Name} },
	func(c *climber) []string { return []string{"driver " + driverOf(c.OriginVolume)} },
	func(c *climber) []string {
		asked := c.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
		capacity := c.OriginVolume.Spec.Capacity[corev1.ResourceStorage]
		return []string{
			fmt.Sprintf("asks for %s (%s)", modesText(c.Claim.Spec.AccessModes), c.access()),
			fmt.Sprintf("the origin volume offers %s", modesText(c.OriginVolume.Spec.AccessModes)),
			fmt.Sprintf("asks for %s of %s", asked.String(), capacity.String()),
		}
	},
	func(c *climber) []string {
		if !c.mirror.SharedHandle {
			return []string{"the mirror has a handle of its own"}
		}
		return []string{fmt.Sprintf("the mirror shares the origin's handle; %d claims of the namespace name the origin", len(c.Rivals))}
	},
}

// grantSight tells what the owner wrote only where it lets the claim in: who is
// not let in learns nothing about the origin.
func grantSight(c *climber) []string {
	saw := []string{"labels of namespace " + c.Claim.Namespace + ": " + labelsText(c.NamespaceLabels)}
	if c.grant.Selector != "" {
		saw = append(saw, fmt.Sprintf("the owner's %s: %s (%s)", c.grant.Annotation, c.grant.Selector, c.grant.Access))
	}
	if !c.grant.Expires.IsZero() {
		saw = append(saw, "until "+c.grant.Expires.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return saw
}

func bindingSight(c *climber) []string {
	saw := []string{fmt.Sprintf("claim %s is %s", c.origin, orUnknown(string(c.Origin.Status.Phase)))}
	if c.OriginVolume != nil {
		saw = append(saw, "volume "+c.OriginVolume.Name)
	}
	return saw
}

func driverOf(volume *corev1.PersistentVolume) string {
	switch {
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.Driver
	case volume.Spec.NFS != nil:
		return "nfs, in-tree"
	default:
		return "neither CSI nor NFS"
	}
}

func labelsText(set map[string]string) string {
	if set == nil {
		return "not known"
	}
	return orUnknown(labels.Set(set).String())
}

func orUnknown(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func modesText(modes []corev1.PersistentVolumeAccessMode) string {
	var all []string
	for _, mode := range modes {
		all = append(all, string(mode))
	}
	return orUnknown(strings.Join(all, ", "))
}

// reviewTitles say what each step of Judge asks for, in its order.
var reviewTitles = []string{
	"the volume's record is whole",
	"the origin's owner shares it with this namespace now",
	"the origin is not being deleted",
	"the grant is as wide as the mirror",
	"the origin is bound to its volume",
	"the origin has the data that the mirror reaches",
}

// Review returns how a bound mirror stands, as Judge does, step by step.
func (facts Bound) Review() (Review, []Step) {
	r := &reviewer{Bound: facts}
	var steps []Step
	stopped := false
	for i, review := range reviews {
		step := Step{Title: reviewTitles[i], Outcome: NotReached}
		if !stopped {
			step.Outcome = Passed
			if said := review(r); said != nil {
				stopped = true
				step.Outcome, step.Reason, step.Message = Stopped, said.Reason, said.Message
			}
			step.Saw = r.saw(i)
		}
		steps = append(steps, step)
	}
	return Judge(facts), steps
}

func (r *reviewer) saw(step int) []string {
	switch step {
	case 0:
		return []string{"mirrors " + r.record.Origin.String(), "looked after by " + orUnknown(r.record.ServedBy)}
	case 1:
		return grantSight(&climber{Facts: Facts{Claim: r.Claim, NamespaceLabels: r.NamespaceLabels}, grant: r.grant})
	case 3:
		return []string{"the mirror is " + Access(r.Claim).String() + ", the grant " + r.grant.Access.String()}
	case 4:
		return bindingSight(&climber{Facts: Facts{Origin: r.Origin, OriginVolume: r.OriginVolume}, origin: r.record.Origin})
	default:
		return nil
	}
}
