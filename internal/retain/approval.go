package retain

import (
	"regexp"
	"time"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// Approval is by what right a create goes on. The zero value is none and
// refuses.
type Approval struct {
	// PlanDigest is the digest that was approved.
	PlanDigest string
	// Preview is the approved preview, if the digest is that of a receipt.
	Preview *receipt.Receipt
	// MaxAge is how old Preview may be.
	MaxAge time.Duration
	// Without goes on without an approval: for people at a terminal; recorded.
	Without bool
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// clockSkew is how far in the future a preview may lie that another machine
// made.
const clockSkew = 5 * time.Minute

// Check refuses an approval that cannot be right, before anything is read.
func (a Approval) Check(now time.Time) error {
	switch {
	case a.Without:
		return nil
	case a.Preview != nil:
		return a.checkPreview(now)
	case a.PlanDigest == "":
		return refusef(ApprovalMissing, "expected --approved-plan with the digest that a preview printed, --approved with a preview's receipt, or --without-approval")
	case !digestForm.MatchString(a.PlanDigest):
		return refusef(Usage, "--approved-plan: %q is no plan digest; expected sha256: and 64 hexadecimal digits, as a preview prints them", a.PlanDigest)
	}
	return nil
}

func (a Approval) checkPreview(now time.Time) error {
	p := a.Preview
	if p.Action != "preview" || p.Outcome != receipt.WouldCreate && p.Outcome != receipt.Unchanged {
		return refusef(ReceiptInvalid, "--approved: expected the receipt of a preview that refused nothing; this one is of a %s that ended %s", p.Action, p.Outcome)
	}
	finished, err := time.Parse(time.RFC3339, p.FinishedAt)
	if err != nil {
		return refusef(ReceiptInvalid, "--approved: finishedAt: %w", err)
	}
	switch age := now.Sub(finished); {
	case age > a.MaxAge:
		return refusef(ApprovalExpired, "--approved: the preview is of %s; expected one of the last %s (--max-preview-age)", p.FinishedAt, a.MaxAge)
	case age < -clockSkew:
		return refusef(ApprovalExpired, "--approved: the preview is of %s, which is in the future", p.FinishedAt)
	}
	return nil
}

func (a Approval) digest() string {
	if a.Preview != nil {
		return a.Preview.PlanDigest
	}
	return a.PlanDigest
}

func (a Approval) record() *receipt.Approval {
	switch {
	case a.Without:
		return &receipt.Approval{Kind: "none"}
	case !digestForm.MatchString(a.digest()):
		return nil // refused by Check
	case a.Preview != nil:
		return &receipt.Approval{Kind: "preview", PlanDigest: a.digest(), PreviewFinishedAt: a.Preview.FinishedAt}
	}
	return &receipt.Approval{Kind: "digest", PlanDigest: a.digest()}
}

// covers refuses a situation that is not the approved one.
func (a Approval) covers(planDigest string) *Error {
	if a.Without || planDigest != "" && a.digest() == planDigest {
		return nil
	}
	return refusef(ApprovalDiffers, "the plan has the digest %s; approved is %s: manifest, cluster, claim or plan changed since", planDigest, a.digest())
}
