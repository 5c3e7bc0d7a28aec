package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/mooring-k8s/mooring/internal/retain"
)

// Who the writes of this command are by, as kubectl says it of its own.
const peopleFieldManager = "mooring"

// The values of --dry-run, as kubectl has them.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// writingFlags are those of every command that writes.
type writingFlags struct {
	dryRun string
	output string
	yes    bool
}

func (f *writingFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dryRun, "dry-run", dryRunNone, "none; client: only show what would be written; server: let the API server check it and store nothing")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "print the claim as json or yaml, as docs/claim.schema.json says")
	completeTo(cmd, "output", "json", "yaml")
	completeTo(cmd, "dry-run", dryRunNone, dryRunClient, dryRunServer)
}

// asking adds the flag of commands that ask before they write.
func (f *writingFlags) asking(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
}

func (f *writingFlags) check() error {
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, f.dryRun) {
		return usageError("--dry-run: is %q; expected none, client or server", f.dryRun)
	}
	return checkOutput(f.output)
}

func (f *writingFlags) suffix() string {
	if f.dryRun == dryRunServer {
		return " (server dry run)"
	}
	return ""
}

// print prints an object where the command line asks for it.
func (f *writingFlags) print(e Env, claim *corev1.PersistentVolumeClaim) error {
	if f.output == "" {
		return nil
	}
	claim = claim.DeepCopy()
	claim.ManagedFields = nil
	claim.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	return encode(e.Out, f.output, claim)
}

// confirm asks a person, where one is there to answer; nothing is written
// without a yes.
func (f *writingFlags) confirm(e Env, question string) error {
	if f.yes || f.dryRun != dryRunNone {
		return nil
	}
	if file, ok := e.In.(*os.File); e.In == nil || ok && !term.IsTerminal(int(file.Fd())) {
		return usageError("nobody is there to confirm, and nothing was written: look at what is shown, and add --yes")
	}
	fmt.Fprintf(e.Err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(e.In).ReadString('\n') // no answer is no yes
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return usageError("not confirmed: nothing was written")
}

// writeGrants sets and removes annotations of a claim, if it still has the
// annotations that were shown. Others write a claim too, such as its status; that
// is tried again.
func (s *session) writeGrants(ctx context.Context, claim *corev1.PersistentVolumeClaim, set map[string]string, remove []string, dryRun bool) (*corev1.PersistentVolumeClaim, error) {
	annotations := map[string]any{}
	for key, value := range set {
		annotations[key] = value
	}
	for _, key := range remove {
		annotations[key] = nil
	}
	claims, current := s.API.CoreV1().PersistentVolumeClaims(claim.Namespace), claim
	var written *corev1.PersistentVolumeClaim
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": claim.UID, "resourceVersion": current.ResourceVersion, "annotations": annotations,
		}})
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: peopleFieldManager, DryRun: dryRunOption(dryRun)}
		written, err = claims.Patch(ctx, claim.Name, types.MergePatchType, patch, options)
		if !apierrors.IsConflict(err) {
			return err
		}
		latest, getErr := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		if getErr == nil && latest.UID == claim.UID && maps.Equal(latest.Annotations, claim.Annotations) {
			current = latest
		}
		return err
	})
	switch key := claim.Namespace + "/" + claim.Name; {
	case apierrors.IsConflict(err):
		return nil, &end{endChanged, "the annotations of claim " + key + " changed after they were shown: nothing was written"}
	case apierrors.IsForbidden(err):
		return nil, &end{endNotAllowed, "you may not write the grant of claim " + key + ": " + err.Error()}
	case err != nil:
		return nil, notWritten("write the grant of "+key, err)
	}
	return written, nil
}

// createClaim creates a mirror claim.
func (s *session) createClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, dryRun bool) (*corev1.PersistentVolumeClaim, error) {
	options := metav1.CreateOptions{FieldManager: peopleFieldManager, DryRun: dryRunOption(dryRun)}
	created, err := s.API.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, options)
	switch key := claim.Namespace + "/" + claim.Name; {
	case apierrors.IsAlreadyExists(err):
		return nil, usageError("there is a claim %s already, and it was left as it is: choose another --name, or see: mooring explain %s", key, key)
	case apierrors.IsForbidden(err):
		return nil, &end{endNotAllowed, "you may not create claim " + key + ": " + err.Error()}
	case err != nil:
		return nil, notWritten("create claim "+key, err)
	}
	return created, nil
}

// notWritten is a write that failed, of which it is not certain that it did
// nothing.
func notWritten(what string, err error) error {
	return &retain.Error{Reason: retain.Unexpected, Message: what + ": " + err.Error(), Cause: err}
}

func dryRunOption(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
