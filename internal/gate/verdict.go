package gate

// Reason is why a gate stays closed. The list is closed; each has an exit code in
// docs/exit-codes.md.
type Reason string

// The reasons, in the order in which one of several is named.
const (
	NotDispatched   Reason = "gate-not-dispatched"
	NotOwner        Reason = "gate-not-owner"
	NotProtected    Reason = "gate-not-protected"
	NotHead         Reason = "gate-not-head"
	ForgeUnknown    Reason = "gate-forge-unknown"
	CheckoutDiffers Reason = "gate-checkout-differs"
	ManifestRefused Reason = "gate-manifest"
	ScanFound       Reason = "gate-scan-found"
	ScanUnfinished  Reason = "gate-scan-unfinished"
)

// Reasons returns the closed list.
func Reasons() []Reason {
	return []Reason{NotDispatched, NotOwner, NotProtected, NotHead, ForgeUnknown,
		CheckoutDiffers, ManifestRefused, ScanFound, ScanUnfinished}
}

// Condition is one of those that must all be met.
type Condition struct {
	Name string `json:"name"`
	Met  bool   `json:"met"`
	// Says is one sentence about what was found.
	Says   string `json:"says"`
	Reason Reason `json:"reason,omitempty"`
}

// Verdict is the gate's. The zero value is closed.
type Verdict struct {
	open       bool
	Conditions []Condition
}

// Open says whether the run may go on.
func (v Verdict) Open() bool { return v.open }

// Reason returns the first reason of those that are not met, in the order of the
// list; "" if the gate is open.
func (v Verdict) Reason() Reason {
	if v.open {
		return ""
	}
	for _, reason := range Reasons() {
		for _, c := range v.Conditions {
			if !c.Met && c.Reason == reason {
				return reason
			}
		}
	}
	return NotDispatched
}

// Refusals returns the conditions that are not met.
func (v Verdict) Refusals() []Condition {
	var refused []Condition
	for _, c := range v.Conditions {
		if !c.Met {
			refused = append(refused, c)
		}
	}
	return refused
}

// Judge looks at every condition, and names each that is not met.
func Judge(f Facts) Verdict {
	var v Verdict
	for _, judge := range conditions() {
		v.Conditions = append(v.Conditions, judge(f))
	}
	v.open = len(v.Refusals()) == 0
	return v
}
