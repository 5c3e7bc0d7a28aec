package retain

import (
	"strings"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

func TestApproval(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	digest := receipt.Digest("plan")
	preview := func(change func(r *receipt.Receipt)) *receipt.Receipt {
		r := &receipt.Receipt{Action: "preview", Outcome: receipt.WouldCreate, PlanDigest: digest, FinishedAt: "2026-06-01T11:00:00Z"}
		change(r)
		return r
	}
	asItIs := func(*receipt.Receipt) {}
	for _, tc := range []struct {
		name     string
		approval Approval
		want     Reason
	}{
		{"none", Approval{}, ApprovalMissing},
		{"without", Approval{Without: true}, ""},
		{"digest", Approval{PlanDigest: digest}, ""},
		{"digest without its algorithm", Approval{PlanDigest: strings.TrimPrefix(digest, "sha256:")}, Usage},
		{"digest in capitals", Approval{PlanDigest: strings.ToUpper(digest)}, Usage},
		{"preview", Approval{Preview: preview(asItIs), MaxAge: time.Hour}, ""},
		{"unchanged preview", Approval{Preview: preview(func(r *receipt.Receipt) { r.Outcome = receipt.Unchanged }), MaxAge: time.Hour}, ""},
		{"old preview", Approval{Preview: preview(asItIs), MaxAge: time.Hour - 1}, ApprovalExpired},
		{"preview without an age", Approval{Preview: preview(asItIs)}, ApprovalExpired},
		{"preview of tomorrow", Approval{Preview: preview(func(r *receipt.Receipt) { r.FinishedAt = "2026-06-02T12:00:00Z" }), MaxAge: time.Hour}, ApprovalExpired},
		{"preview of a clock ahead", Approval{Preview: preview(func(r *receipt.Receipt) { r.FinishedAt = "2026-06-01T12:04:00Z" }), MaxAge: time.Hour}, ""},
		{"refused preview", Approval{Preview: preview(func(r *receipt.Receipt) { r.Outcome = receipt.Refused }), MaxAge: time.Hour}, ReceiptInvalid},
		{"a create", Approval{Preview: preview(func(r *receipt.Receipt) { r.Action = "create" }), MaxAge: time.Hour}, ReceiptInvalid},
		{"preview without an end", Approval{Preview: preview(func(r *receipt.Receipt) { r.FinishedAt = "" }), MaxAge: time.Hour}, ReceiptInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.approval.Check(now)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || ReasonOf(err) != tc.want) {
				t.Fatalf("got %v; want %q", err, tc.want)
			}
		})
	}
	if (Approval{}).covers(digest) == nil || (Approval{PlanDigest: digest}).covers(receipt.Digest("other")) == nil {
		t.Error("an approval covers another plan")
	}
	if (Approval{PlanDigest: digest}).covers(digest) != nil || (Approval{Without: true}).covers(digest) != nil {
		t.Error("an approval does not cover its plan")
	}
	// Without a plan digest there is nothing to approve, not even nothing.
	if (Approval{}).covers("") == nil {
		t.Error("no approval covers no plan")
	}
}
