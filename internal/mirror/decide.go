package mirror

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/recipe"
)

// ladder is the order in which a claim is judged. The grant stands before
// everything that is looked up about the origin, so that nobody learns about
// an origin that is not shared with them.
var ladder = []rung{
	{"the claim names one origin of another namespace, and nothing else", claimIsFit},
	{"its class is fit for mirrors", classIsFit},
	{"the origin's owner shares it with this namespace", ownerGrants},
	{"the origin is bound to its volume", originIsBound},
	{"the origin is not itself a mirror", originIsNoMirror},
	{"the origin's driver has a recipe", driverHasRecipe},
	{"access, volume mode and size fit", claimFitsOrigin},
	{"no other claim of the namespace mirrors the same handle, or asked for it before", claimIsFirst},
}

// Rungs returns what each rung of the ladder asks for, the first one first.
func Rungs() []string {
	var titles []string
	for _, rung := range ladder {
		titles = append(titles, rung.title)
	}
	return titles
}

// rung is one step of the ladder: climb returns nil to go on.
type rung struct {
	title string
	climb func(*climber) *refusal
}

// climber carries the facts up the ladder, and what was found on the way.
type climber struct {
	Facts
	origin types.NamespacedName
	grant  grant.Grant
	mirror recipe.Mirror
}

// refusal is why a rung is not passed.
type refusal struct {
	verdict Verdict
	reason  Reason
	message string
}

func refused(reason Reason, format string, args ...any) *refusal {
	return &refusal{Refuse, reason, fmt.Sprintf(format, args...)}
}

func waiting(reason Reason, format string, args ...any) *refusal {
	return &refusal{Wait, reason, fmt.Sprintf(format, args...)}
}

// Decide climbs the ladder and returns the first refusal, or the volume to be
// made. The same facts always give the same decision.
func Decide(facts Facts) Decision {
	c := &climber{Facts: facts}
	for _, rung := range ladder {
		if said := rung.climb(c); said != nil {
			return Decision{Verdict: said.verdict, Reason: said.reason, Message: said.message, Grant: c.grant}
		}
	}
	message := fmt.Sprintf("mirrors %s (%s)", c.origin, c.access())
	if limits := c.mirror.Limits; limits != "" {
		message += "; " + limits
	}
	return Decision{
		Verdict: Allow,
		Reason:  Mirrored,
		Message: message,
		Grant:   c.grant,
		Volume:  c.volume(),

		SharesHandle: c.mirror.SharedHandle,
	}
}
