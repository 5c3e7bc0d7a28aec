package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Explanation is what mooring explain says of a claim: docs/explain.schema.json.
type Explanation struct {
	Claim string `json:"claim"`
	// Outcome is Bound, Allowed, Refused, Waiting, Revoked or Unclear.
	Outcome string        `json:"outcome"`
	Reason  mirror.Reason `json:"reason,omitempty"`
	Message string        `json:"message"`
	// From says whose answer it is: the rules', climbed here, or the controller's,
	// read from the claim.
	From   string `json:"from"`
	Origin string `json:"origin,omitempty"`
	Access string `json:"access"`
	// Steps are the rungs of the controller's ladder.
	Steps []mirror.Step `json:"steps,omitempty"`
	Mend  *Mending      `json:"mend,omitempty"`
	// Said is the controller's own answer.
	Said   *Said   `json:"said,omitempty"`
	Source *Source `json:"source,omitempty"`
	// NotVisible is what whoever asks may not read.
	NotVisible []string `json:"notVisible,omitempty"`
}

// Mending is who can mend what a reason names, and how.
type Mending struct {
	Who   string `json:"who"`
	How   string `json:"how,omitempty"`
	Wakes string `json:"wakes,omitempty"`
}

// Said is the condition that the controller wrote.
type Said struct {
	Status  string     `json:"status"`
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	Since   *time.Time `json:"since,omitempty"`
}

// Source is where a bound mirror's data come from.
type Source struct {
	Volume       string     `json:"volume"`
	OriginVolume string     `json:"originVolume,omitempty"`
	Since        *time.Time `json:"since,omitempty"`
	ServedBy     string     `json:"servedBy,omitempty"`
	// GrantedBy is what lets the claim in now; where that is hidden or has ended,
	// what did when it was bound.
	GrantedBy string     `json:"grantedBy,omitempty"`
	Until     *time.Time `json:"until,omitempty"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	// Ends is what would end it, Then what happens to the claim in that case.
	Ends []string `json:"ends,omitempty"`
	Then string   `json:"then,omitempty"`
}

// Whose answer an explanation is.
const (
	fromRules      = "rules"
	fromController = "controller"
)

func newExplain(e Env) *cobra.Command {
	var people peopleFlags
	var output string
	command := &cobra.Command{
		Use:   "explain NAMESPACE/CLAIM",
		Short: "Say why a claim is, or is not, mirrored",
		Long: "explain climbs the controller's ladder for one claim, rung by rung: what it looked at, where it stops,\n" +
			"who can mend that and how. For a bound mirror it says where the data come from, since when, by which\n" +
			"grant, and what would end it. The rights of the claim's own namespace are enough: what is not visible\n" +
			"is said, and the answer is then the controller's own.\n\n" +
			"Ends with 0 if the claim is bound and its grant holds, or nothing is in its way; else with a code of\n" +
			"docs/exit-codes.md: 3 refused, 4 waiting, 5 revoked, 6 unclear, 7 not found, 8 not a mirror.",
		Example: "  mooring explain team-b/data\n  mooring explain data -n team-b -o json\n  mooring explain team-b/data >/dev/null || echo not mirrored",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.Context(), e, &people, output, args[0])
		},
	}
	people.flags(command, e)
	command.ValidArgsFunction = completeClaim(&people, e)
	command.Flags().StringVarP(&output, "output", "o", "", "json or yaml, as docs/explain.schema.json says; text for people without it")
	completeTo(command, "output", "json", "yaml")
	return command
}

func explain(ctx context.Context, e Env, people *peopleFlags, output, arg string) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	s, err := people.open(ctx, e)
	if err != nil {
		return err
	}
	key, err := s.claimArg(arg)
	if err != nil {
		return err
	}
	account, err := s.Explain(ctx, key)
	switch {
	case err != nil:
		return err
	case account.Claim == nil:
		s.done(e.Err)
		return &end{endNoClaim, "claim " + key.String() + " does not exist or is not visible to you"}
	case !account.IsMirror:
		return &end{endNotOurs, "claim " + key.String() + " asks for no mirror, and is none; to see who can reach its data: mooring access " + key.String()}
	}
	said := mirror.Explain(account.Situation)
	explanation := s.explanation(account, said)
	if output != "" {
		err = encode(e.Out, output, explanation)
	} else {
		err = printExplanation(e.Out, explanation)
	}
	s.done(e.Err)
	if err != nil {
		return err
	}
	return endOf(said.Outcome)
}

// explanation puts an answer into the words of its readers.
func (s *session) explanation(account inventory.Account, said mirror.Explanation) Explanation {
	row := inventory.RowOf(s.Names, account.Claim, account.Volume)
	x := Explanation{
		Claim: row.Key().String(), Outcome: orElse(string(said.Outcome), "Unclear"), Reason: said.Reason, Message: said.Message,
		From: fromRules, Origin: row.Origin, Access: row.Access, Steps: said.Steps, NotVisible: s.Hidden(),
	}
	if said.ByController {
		x.From = fromController
	}
	if condition := account.Situation.Said; condition != nil {
		x.Said = &Said{Status: string(condition.Status), Reason: condition.Reason, Message: condition.Message}
		if since := condition.LastTransitionTime; !since.IsZero() {
			x.Said.Since = &since.Time
		}
	}
	if said.Outcome != mirror.StandsBound && said.Outcome != mirror.StandsAllowed {
		x.Mend = s.mending(said.Reason)
	}
	if account.Claim.Status.Phase == corev1.ClaimBound {
		x.Source = s.source(account, said, row)
	}
	return x
}

// mending returns what the list of reasons says about one; nil for none of them.
func (s *session) mending(reason mirror.Reason) *Mending {
	plain := strings.NewReplacer("<name>", s.Names.Provisioner(), "`", "")
	for _, doc := range mirror.Reasons() {
		if doc.Reason == reason {
			return &Mending{Who: string(doc.Mends), How: plain.Replace(doc.Remedy), Wakes: doc.Wakes}
		}
	}
	return nil
}

// source says where a bound mirror's data come from and what would end that.
func (s *session) source(account inventory.Account, said mirror.Explanation, row inventory.Row) *Source {
	source := &Source{Volume: row.Volume, ServedBy: row.ServedBy, RevokedAt: row.RevokedAt}
	if account.Volume != nil {
		source.OriginVolume = mirror.RecordOf(s.Names, account.Volume).OriginVolume
		source.Since = &account.Volume.CreationTimestamp.Time
		if by := mirror.GrantedByOf(s.Names, account.Volume); by.Annotation != "" {
			source.GrantedBy = by.Annotation + ": " + by.Selector
		}
	}
	if said.Outcome != mirror.StandsBound {
		return source
	}
	by, selector := "the grant on "+row.Origin, "what that grant asks for"
	if said.Grant.Selector != "" {
		source.GrantedBy = said.Grant.Annotation + ": " + said.Grant.Selector
		by, selector = said.Grant.Annotation+" on "+row.Origin, said.Grant.Selector
	}
	source.Ends = []string{
		"the owner removes or narrows " + by,
		"the labels of namespace " + row.Namespace + " no longer match " + selector,
		"claim " + row.Origin + " is deleted, or replaced by one with other data",
	}
	if until := said.Grant.Expires; !until.IsZero() {
		source.Until = &until
		source.Ends = slices.Insert(source.Ends, 0, "the time "+until.UTC().Format(time.RFC3339)+", when the grant ends by itself")
	}
	switch policy := mirror.PolicyOf(s.Names, account.Situation.Class); {
	case account.Situation.Hidden.Class:
		source.Then = "what follows is said by the StorageClass, which is not visible to you"
	case policy.Delete:
		source.Then = "the claim is deleted " + policy.After.String() + " later; Pods that run then may finish"
	default:
		source.Then = "that is reported, and nothing is taken from the claim"
	}
	return source
}
