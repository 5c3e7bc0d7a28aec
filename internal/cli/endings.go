package cli

import "github.com/mooring-k8s/mooring/internal/mirror"

// ending is how a command that answers a question ends when the answer is not
// the good one. The list is closed and goes into docs/exit-codes.md; its codes
// are none of retain's.
type ending struct {
	reason  string
	code    int
	meaning string
	next    string
}

// The endings.
var (
	endRefused    = ending{reason: "mirror-refused", code: 3, meaning: "The claim is not mirrored.", next: "Read mooring explain: it says who can mend it, and how."}
	endWaiting    = ending{reason: "mirror-waiting", code: 4, meaning: "The claim waits for its origin.", next: "Wait, or have the origin's owner see why the origin is pending."}
	endRevoked    = ending{reason: "mirror-revoked", code: 5, meaning: "The claim is bound and its grant has ended.", next: "Read mooring explain: it says who can mend it, and how."}
	endUnclear    = ending{reason: "mirror-unclear", code: 6, meaning: "How the claim stands is not certain: nothing was said yet, or something is wrong with the origin or with a volume.", next: "Wait a moment and repeat; then read mooring explain."}
	endNoClaim    = ending{reason: "claim-not-found", code: 7, meaning: "The claim does not exist, or is not visible to who asks; which of the two is not told.", next: "Check the name with kubectl get persistentvolumeclaims, or ask who may read claims of that namespace."}
	endNotOurs    = ending{reason: "not-a-mirror", code: 8, meaning: "The claim exists and asks for no mirror.", next: "See who can reach its data with mooring access, or who mirrors what with mooring list."}
	endNotAllowed = ending{reason: "not-allowed", code: 25, meaning: "The cluster does not let who asks write that; nothing was written.", next: "Read what the cluster says; ask who may edit claims of that namespace, or decides about its quota."}
	endChanged    = ending{reason: "claim-changed", code: 26, meaning: "The claim changed after what would become of it was shown; nothing was written.", next: "Run it again, and look at what it shows now."}
	endProblems   = ending{reason: "problems", code: 19, meaning: "Doctor found problems.", next: "Each says what to do about it."}
	endIsMirror   = ending{reason: "is-a-mirror", code: 9, meaning: "The claim whose access was asked for is itself a mirror.", next: "Ask about the claim that it mirrors."}
)

func endings() []ending {
	return append([]ending{endRefused, endWaiting, endRevoked, endUnclear, endNoClaim, endNotOurs, endIsMirror, endProblems, endNotAllowed, endChanged}, gateEndings()...)
}

// end is an ending as an error. Where the answer itself was printed, there is
// no more to say: the message is empty.
type end struct {
	ending
	message string
}

func (e *end) Error() string { return e.reason + ": " + e.message }

// endOf returns the ending of an explanation, nil for the good ones.
func endOf(outcome mirror.Outcome) error {
	switch outcome {
	case mirror.StandsBound, mirror.StandsAllowed:
		return nil
	case mirror.StandsRefused:
		return &end{ending: endRefused}
	case mirror.StandsWaiting:
		return &end{ending: endWaiting}
	case mirror.StandsRevoked:
		return &end{ending: endRevoked}
	default:
		return &end{ending: endUnclear}
	}
}
