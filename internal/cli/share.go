package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// sharing is a change of an origin's grants as the command line asks for it.
type sharing struct {
	people  peopleFlags
	writing writingFlags
	// set are annotations to be written; remove those to be removed.
	set    map[string]string
	remove []string
}

func newShare(e Env) *cobra.Command {
	var s sharing
	var with, expires string
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "share NAMESPACE/CLAIM --with SELECTOR",
		Short: "Let other namespaces mirror a claim",
		Long: `Let other namespaces mirror a claim, by the labels that they have.

The selector is matched against the labels of the namespaces that ask, as kubectl -l
takes it. Which namespaces gain or lose access now is shown by name, and confirmed,
before anything is written. One selector each for read-write and read-only access:
what stood there before is replaced.`,
		Example: `  mooring share team-a/data --with kubernetes.io/metadata.name=team-b
  mooring share team-a/data --with example.com/project=atlas --read-only
  mooring share team-a/data --with example.com/project=atlas --expires 2027-06-30T18:00:00Z --yes
  mooring share team-a/data --with example.com/project --dry-run=client`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd.Context(), e, args[0], func(names mooringapi.Names) error {
				s.set = map[string]string{grantKey(names, readOnly): with}
				if expires != "" {
					s.set[names.GrantExpires()] = expires
				}
				if problems := grant.Parse(names, s.set).Problems(); len(problems) > 0 {
					return usageError("%v", problems[0])
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&with, "with", "", "label `SELECTOR` of the namespaces to let in")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "let them read only")
	cmd.Flags().StringVar(&expires, "expires", "", "when all grants of the claim end, as an RFC 3339 `TIME`")
	_ = cmd.MarkFlagRequired("with") // the flag exists
	cmd.ValidArgsFunction = completeClaim(&s.people, e)
	completeSelectors(cmd, &s.people, e, "with")
	s.flags(cmd, e)
	return cmd
}

func newUnshare(e Env) *cobra.Command {
	var s sharing
	var readOnly, readWrite bool
	cmd := &cobra.Command{
		Use:   "unshare NAMESPACE/CLAIM",
		Short: "End the grants of a claim",
		Long: `End the grants of a claim: all of them, or only the read-only or the read-write one.

Which namespaces lose access is shown by name, and confirmed, before anything is
written. What becomes of their mirrors is a matter of their class: docs/revocation.md.`,
		Example: `  mooring unshare team-a/data
  mooring unshare team-a/data --read-only
  mooring unshare team-a/data --dry-run=client`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd.Context(), e, args[0], func(names mooringapi.Names) error {
				switch {
				case readOnly && !readWrite:
					s.remove = []string{names.ReadOnlyGrant()}
				case readWrite && !readOnly:
					s.remove = []string{names.ReadWriteGrant()}
				default:
					s.remove = []string{names.ReadWriteGrant(), names.ReadOnlyGrant(), names.GrantExpires()}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "end the read-only grant only")
	cmd.Flags().BoolVar(&readWrite, "read-write", false, "end the read-write grant only")
	cmd.ValidArgsFunction = completeClaim(&s.people, e)
	s.flags(cmd, e)
	return cmd
}

func (s *sharing) flags(cmd *cobra.Command, e Env) {
	s.people.flags(cmd, e)
	s.writing.flags(cmd)
	s.writing.asking(cmd)
}

func grantKey(names mooringapi.Names, readOnly bool) string {
	if readOnly {
		return names.ReadOnlyGrant()
	}
	return names.ReadWriteGrant()
}

// run shows what the change means, asks, and writes it.
func (s *sharing) run(ctx context.Context, e Env, arg string, choose func(mooringapi.Names) error) error {
	if err := s.writing.check(); err != nil {
		return err
	}
	session, err := s.people.open(ctx, e)
	if err != nil {
		return err
	}
	key, err := session.claimArg(arg)
	if err != nil {
		return err
	}
	if err := choose(session.Names); err != nil {
		return err
	}
	claim, err := session.originFor(ctx, key)
	if err != nil {
		return err
	}
	// What it means is told on stderr where the object itself goes to stdout.
	tell := e.Out
	if s.writing.output != "" {
		tell = e.Err
	}
	changed := claim.DeepCopy()
	s.apply(changed)
	if maps.Equal(changed.Annotations, claim.Annotations) {
		how := "is shared like that already"
		if len(s.set) == 0 {
			how = "is not shared"
		}
		fmt.Fprintf(tell, "%s %s: nothing to write.\n", key, how)
		session.done(e.Err)
		return s.writing.print(e, changed)
	}
	if err := session.showChange(ctx, tell, claim, changed); err != nil {
		return err
	}
	session.done(e.Err)
	if err := s.writing.confirm(e, "Write this grant?"); err != nil {
		return err
	}
	return s.write(ctx, session, claim, changed)
}

func (s *sharing) apply(claim *corev1.PersistentVolumeClaim) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	maps.Copy(claim.Annotations, s.set)
	for _, key := range s.remove {
		delete(claim.Annotations, key)
	}
}

func (s *sharing) write(ctx context.Context, session *session, claim, changed *corev1.PersistentVolumeClaim) error {
	if s.writing.dryRun == dryRunClient {
		fmt.Fprintln(session.env.Err, "client dry run: nothing was written")
		return s.writing.print(session.env, changed)
	}
	written, err := session.writeGrants(ctx, claim, s.set, s.remove, s.writing.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	if s.writing.output == "" {
		fmt.Fprintf(session.env.Out, "persistentvolumeclaim/%s changed%s\n", claim.Name, s.writing.suffix())
	}
	return s.writing.print(session.env, written)
}

// originFor reads a claim that is to be shared.
func (s *session) originFor(ctx context.Context, key types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	claim, err := s.Claim(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case claim.Hidden:
		return nil, &end{endNoClaim, "you may not read claims of namespace " + key.Namespace + "; to share one, its owner's rights are needed"}
	case claim.Object == nil:
		return nil, &end{endNoClaim, "there is no claim " + key.String() + "; see: kubectl --namespace " + key.Namespace + " get persistentvolumeclaims"}
	}
	return claim.Object, nil
}

// showChange tells which namespaces gain or lose access, and what looks wrong.
func (s *session) showChange(ctx context.Context, w io.Writer, before, after *corev1.PersistentVolumeClaim) error {
	p := &prose{width: terminalOf(w).width}
	if err := s.describeChange(ctx, p, before, after); err != nil {
		return err
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

func (s *session) describeChange(ctx context.Context, p *prose, before, after *corev1.PersistentVolumeClaim) error {
	now := time.Now()
	old, next := grant.Parse(s.Names, before.Annotations), grant.Parse(s.Names, after.Annotations)
	s.showGrants(p, after, next, now)
	all, seen, err := s.Namespaces(ctx)
	if err != nil {
		return err
	}
	if !seen {
		p.add("", "Which namespaces gain or lose access cannot be shown: you may not list namespaces.")
		return nil
	}
	namespaces := map[string]map[string]string{}
	for _, namespace := range all {
		if namespace.Name != before.Namespace { // who has the claim needs no grant
			namespaces[namespace.Name] = namespace.Labels
		}
	}
	printChanges(p, grant.Compare(old, next, namespaces, now))
	for _, warning := range warnings(next, namespaces, now) {
		p.warn(warning)
	}
	return nil
}
