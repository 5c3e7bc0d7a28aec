package cli

import (
	"context"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Access is what mooring access says of a claim: docs/access.schema.json.
type Access struct {
	Origin string `json:"origin"`
	Volume string `json:"volume,omitempty"`
	// Exists is false where the claim is gone and mirrors of it are left.
	Exists bool `json:"exists"`
	// Tried says that the grants below are not those that are written.
	Tried    bool       `json:"tried"`
	Grants   []Granting `json:"grants"`
	Until    *time.Time `json:"until,omitempty"`
	Problems []string   `json:"problems,omitempty"`
	// Mirrored says that the claim has mirrors, also where they are not visible.
	Mirrored   bool              `json:"mirrored"`
	Pods       []string          `json:"pods,omitempty"`
	Namespaces []inventory.Space `json:"namespaces"`
	NotVisible []string          `json:"notVisible,omitempty"`
}

// Granting is one grant of a claim.
type Granting struct {
	Access   string `json:"access"`
	Selector string `json:"selector"`
}

// accessFlags are the flags of mooring access.
type accessFlags struct {
	people           peopleFlags
	output           string
	selector, reader string
	command          *cobra.Command
}

// The flags that try a grant.
const (
	asOfFlag         = "as-of-selector"
	asOfReadOnlyFlag = "as-of-read-only-selector"
)

func newAccess(e Env) *cobra.Command {
	f := &accessFlags{}
	f.command = &cobra.Command{
		Use:   "access NAMESPACE/CLAIM",
		Short: "Say who can reach a claim's data",
		Long: "access prints which namespaces may mirror a claim, read-write or read-only, which of them do, whether\n" +
			"their mirrors are bound or revoked, and which Pods use them; and the claim's own Pods. What is not\n" +
			"visible to you is said.\n\n" +
			"With --as-of-selector or --as-of-read-only-selector it shows who could if the claim had that grant;\n" +
			"nothing is written. An empty selector stands for no such grant. To write one: mooring share.\n\n" +
			"Ends with 0, or with a code of docs/exit-codes.md: 7 if the claim is not found, or not visible.",
		Example: "  mooring access team-a/data\n  mooring access data -n team-a -o json\n" +
			"  mooring access team-a/data --as-of-selector example.com/project=atlas\n" +
			"  mooring access team-a/data --as-of-selector ''     # who would lose access",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args[0]) },
	}
	f.people.flags(f.command, e)
	f.command.ValidArgsFunction = completeClaim(&f.people, e)
	flags := f.command.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "json or yaml, as docs/access.schema.json says; text for people without it")
	completeTo(f.command, "output", "json", "yaml")
	flags.StringVar(&f.selector, asOfFlag, "", "try this label `SELECTOR` in place of the read-write grant")
	flags.StringVar(&f.reader, asOfReadOnlyFlag, "", "try this label `SELECTOR` in place of the read-only grant")
	completeSelectors(f.command, &f.people, e, asOfFlag, asOfReadOnlyFlag)
	return f.command
}

func (f *accessFlags) run(ctx context.Context, e Env, arg string) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	s, err := f.people.open(ctx, e)
	if err != nil {
		return err
	}
	key, err := s.claimArg(arg)
	if err != nil {
		return err
	}
	edit := f.edit(s.Names)
	if edit != nil {
		if problems := grant.Parse(s.Names, edit(nil)).Problems(); len(problems) > 0 {
			return usageError("the selector to try: %v", problems[0])
		}
	}
	reach, err := s.Access(ctx, key, edit)
	switch {
	case err != nil:
		return err
	case reach.Unbound:
		s.done(e.Err)
		return &end{endIsMirror, unboundText(key, reach.Origin)}
	case reach.IsMirror:
		s.done(e.Err)
		return &end{endIsMirror, "claim " + key.String() + " is itself a mirror, of " + reach.Origin.String() + ", whose owner says who may reach the data: mooring access " + reach.Origin.String()}
	case reach.Claim == nil && len(reach.Spaces) == 0:
		s.done(e.Err)
		return &end{endNoClaim, "claim " + key.String() + " does not exist or is not visible to you"}
	}
	access := s.access(key.String(), reach, edit)
	if f.output != "" {
		err = encode(e.Out, f.output, access)
	} else {
		err = printAccess(e.Out, access)
	}
	s.done(e.Err)
	return err
}

// unboundText says what a mirror claim without data asks for, and how to go on.
func unboundText(claim, origin types.NamespacedName) string {
	asks := "asks to mirror " + origin.String()
	if origin.Name == "" {
		asks = "asks for a mirror, and names no origin that can be meant"
	}
	return "claim " + claim.String() + " " + asks + ", and is not bound yet, so that it reaches nobody's data: mooring explain " + claim.String()
}

// edit returns what leaves annotations as the flags ask; nil without them.
func (f *accessFlags) edit(names mooringapi.Names) func(map[string]string) map[string]string {
	asked := map[string]string{}
	if f.command.Flags().Changed(asOfFlag) {
		asked[names.ReadWriteGrant()] = f.selector
	}
	if f.command.Flags().Changed(asOfReadOnlyFlag) {
		asked[names.ReadOnlyGrant()] = f.reader
	}
	if len(asked) == 0 {
		return nil
	}
	return func(annotations map[string]string) map[string]string {
		edited := maps.Clone(annotations)
		if edited == nil {
			edited = map[string]string{}
		}
		maps.Copy(edited, asked)
		maps.DeleteFunc(edited, func(key, text string) bool { _, ours := asked[key]; return ours && text == "" })
		return edited
	}
}

// access puts what was read into the words of its readers.
func (s *session) access(origin string, reach inventory.Reach, edit func(map[string]string) map[string]string) Access {
	a := Access{Origin: origin, Exists: reach.Claim != nil, Tried: edit != nil, Grants: []Granting{}, Pods: reach.OwnPods, Namespaces: reach.Spaces, NotVisible: s.Hidden()}
	for _, space := range reach.Spaces {
		a.Mirrored = a.Mirrored || len(space.Mirrors) > 0
	}
	if reach.Volume != nil {
		a.Volume = reach.Volume.Name
	}
	if reach.Claim == nil {
		return a
	}
	for _, finalizer := range reach.Claim.Finalizers {
		a.Mirrored = a.Mirrored || finalizer == s.Names.Finalizer()
	}
	annotations := reach.Claim.Annotations
	if edit != nil {
		annotations = edit(annotations)
	}
	s.addGrants(&a, annotations)
	if reach.Claim.DeletionTimestamp != nil {
		a.Problems = append(a.Problems, "the claim is being deleted, which ends its grants")
	}
	return a
}

// addGrants reads what the owner has written, or what is tried.
func (s *session) addGrants(a *Access, annotations map[string]string) {
	for _, g := range []struct{ key, access string }{
		{s.Names.ReadWriteGrant(), grant.ReadWrite.String()}, {s.Names.ReadOnlyGrant(), grant.ReadOnly.String()},
	} {
		if selector, given := annotations[g.key]; given {
			a.Grants = append(a.Grants, Granting{Access: g.access, Selector: selector})
		}
	}
	terms := grant.Parse(s.Names, annotations)
	if until := terms.Expires(); !until.IsZero() {
		a.Until = &until
	}
	for _, problem := range terms.Problems() {
		a.Problems = append(a.Problems, problem.Error())
	}
}
