package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// mirroring is a mirror claim as the command line asks for it.
type mirroring struct {
	people  peopleFlags
	writing writingFlags

	into, name, class string
	readOnly, wait    bool
	timeout           time.Duration
}

func newMirror(e Env) *cobra.Command {
	var m mirroring
	cmd := &cobra.Command{
		Use:   "mirror NAMESPACE/CLAIM --into NAMESPACE",
		Short: "Reach a claim of another namespace, by a mirror claim",
		Long: `Create a mirror claim: a claim that is bound to the data of another namespace's claim, if its
owner shares it.

The origin is named in the form that the cluster supports: dataSourceRef where the API server
keeps it, which is asked by a dry run, and else the annotation. Then it waits until the claim is
bound, or says why it is not.

Ends with 0 if the claim is bound (or was created, with --wait=false); else with a code of
docs/exit-codes.md: 3 refused, 4 not bound in time, 25 you may not create it.`,
		Example: `  mooring mirror team-a/data --into team-b
  mooring mirror team-a/data --into team-b --name inputs --read-only
  mooring mirror team-a/data --into team-b --dry-run=client -o yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return m.run(cmd.Context(), e, args[0]) },
	}
	cmd.Flags().StringVar(&m.into, "into", "", "the `NAMESPACE` of the mirror claim; unset: that of -n or the kubeconfig")
	cmd.Flags().StringVar(&m.name, "name", "", "the mirror claim's `NAME`; unset: the origin's")
	cmd.Flags().StringVar(&m.class, "class", "", "the StorageClass; unset: the only one of Mooring's")
	cmd.Flags().BoolVar(&m.readOnly, "read-only", false, "ask to read only")
	cmd.Flags().BoolVar(&m.wait, "wait", true, "wait until the claim is bound or refused")
	cmd.Flags().DurationVar(&m.timeout, "timeout", time.Minute, "how long to wait")
	m.people.flags(cmd, e)
	m.writing.flags(cmd)
	cmd.ValidArgsFunction = completeClaim(&m.people, e)
	_ = cmd.RegisterFlagCompletionFunc("into", completeNamespace(&m.people, e)) // the flag exists
	_ = cmd.RegisterFlagCompletionFunc("class", completeClass(&m.people, e))    // the flag exists
	return cmd
}

func (m *mirroring) run(ctx context.Context, e Env, arg string) error {
	if err := m.writing.check(); err != nil {
		return err
	}
	session, err := m.people.open(ctx, e)
	if err != nil {
		return err
	}
	origin, err := session.claimArg(arg)
	if err != nil {
		return err
	}
	if m.into == "" {
		m.into = session.namespace
	}
	if m.into == origin.Namespace {
		return usageError("%s is in namespace %s already: use it there directly", origin, m.into)
	}
	claim, err := m.claim(ctx, session, origin)
	if err != nil {
		return err
	}
	if m.writing.dryRun == dryRunClient {
		return m.shown(e, claim)
	}
	created, err := session.createClaim(ctx, claim, m.writing.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	if err := m.shown(e, created); err != nil || m.writing.dryRun == dryRunServer || !m.wait {
		return err
	}
	return session.waitBound(ctx, created, m.timeout)
}

func (m *mirroring) shown(e Env, claim *corev1.PersistentVolumeClaim) error {
	if m.writing.output != "" {
		return m.writing.print(e, claim)
	}
	how := "created"
	if m.writing.dryRun != dryRunNone {
		how = "would be created (" + m.writing.dryRun + " dry run)"
	}
	fmt.Fprintf(e.Out, "persistentvolumeclaim/%s %s in namespace %s\n", claim.Name, how, claim.Namespace)
	return nil
}

// claim returns the claim to be created, in the form that the cluster keeps.
func (m *mirroring) claim(ctx context.Context, s *session, origin types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	class, err := m.className(ctx, s)
	if err != nil {
		return nil, err
	}
	byReference, err := m.form(s, origin, class, true)
	if err != nil {
		return nil, err
	}
	if m.writing.dryRun == dryRunClient || !s.keepsReference(ctx, byReference) {
		return m.form(s, origin, class, false)
	}
	return byReference, nil
}

// form returns the claim in one of the two forms of reference.
func (m *mirroring) form(s *session, origin types.NamespacedName, class string, byReference bool) (*corev1.PersistentVolumeClaim, error) {
	claim, err := s.Names.NewMirrorClaim(origin, m.into, orElse(m.name, origin.Name),
		mooringapi.MirrorOptions{Class: class, ReadOnly: m.readOnly, ByReference: byReference})
	if err != nil {
		return nil, usageError("%s", err)
	}
	return claim, nil
}

// keepsReference asks, by a dry run, whether the API server keeps a reference to
// another namespace. Where it cannot be asked the annotation serves, which works
// everywhere.
func (s *session) keepsReference(ctx context.Context, claim *corev1.PersistentVolumeClaim) bool {
	answer, err := s.createClaim(ctx, claim, true)
	return err == nil && answer.Spec.DataSourceRef != nil && ptr.Deref(answer.Spec.DataSourceRef.Namespace, "") != ""
}

// className returns the class to ask for.
func (m *mirroring) className(ctx context.Context, s *session) (string, error) {
	if m.class != "" {
		return m.class, nil
	}
	classes, seen, err := s.Classes(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for name := range classes {
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case !seen:
		return "", usageError("you may not list StorageClasses: name the one for mirrors with --class (usually pvc-mirror)")
	case len(names) == 0:
		return "", usageError("no StorageClass has the provisioner %s: is Mooring installed under that name? See: mooring doctor", s.Names.Provisioner())
	case len(names) > 1:
		return "", usageError("there are several StorageClasses for mirrors: choose one with --class: %s", strings.Join(names, ", "))
	}
	return names[0], nil
}

// waitBound tells how a claim fares until it is bound, refused, or the time is
// up.
func (s *session) waitBound(ctx context.Context, claim *corev1.PersistentVolumeClaim, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	said := ""
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, err := s.Claim(ctx, key) // the claim is made: an error is tried again
		if seen.Hidden || err == nil && (seen.Object == nil || seen.Object.UID != claim.UID) {
			return &end{endNoClaim, "claim " + key.String() + " was created, and is gone again or not visible to you"}
		}
		if seen.Object != nil {
			row := inventory.RowOf(s.Names, seen.Object, nil)
			switch {
			case row.State == inventory.Bound:
				fmt.Fprintf(s.env.Err, "bound to %s\n", row.Volume)
				return nil
			case row.State == inventory.Refused:
				return &end{endRefused, row.Message + " (" + row.Reason + "). Claim " + key.String() + " stays, and is bound as soon as that is mended; see: mooring explain " + key.String()}
			case row.Message != said:
				fmt.Fprintf(s.env.Err, "waits: %s\n", printable(row.Message))
				said = row.Message
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &end{endWaiting, "claim " + key.String() + " is not bound after " + timeout.String() + "; it stays, and is bound as soon as it can be. See: mooring explain " + key.String()}
		}
	}
}
