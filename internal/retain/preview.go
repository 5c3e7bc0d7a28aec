package retain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// AccessFacts are what a receipt says of the kubeconfig.
type AccessFacts struct{ Server, CADigest string }

// Options say how a run goes. The zero value accepts nothing beyond the rules.
type Options struct {
	Access AccessFacts
	// AllowOverlap names volumes on nested paths that are accepted.
	AllowOverlap []string
	// AllowExcess goes on although the identity could change volumes; recorded.
	AllowExcess bool
	// Version of Mooring, for the receipt.
	Version string
	// Notes go into the receipt.
	Notes []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Settle is how long a read-back waits for a binding that is under way; 0
	// means 15 seconds.
	Settle time.Duration
}

func (o Options) clock() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

func (o Options) now() string { return o.clock().UTC().Format(time.RFC3339) }

// run is one preview or create while it goes on.
type run struct {
	cluster   Cluster
	manifests []Manifest
	options   Options
	record    receipt.Receipt
}

func newRun(action string, c Cluster, manifests []Manifest, o Options) *run {
	r := &run{cluster: c, manifests: manifests, options: o}
	r.record = receipt.Receipt{
		Action: action, Tool: receipt.Tool{Name: "mooring", Version: o.Version},
		StartedAt: o.now(), Notes: o.Notes,
	}
	for _, m := range manifests {
		r.record.Volumes = append(r.record.Volumes, receipt.Volume{
			Manifest: m.Object, FileDigest: m.FileDigest, Outcome: receipt.NotReached,
			Planned: receipt.Planned{
				Name: m.Name(), ManifestDigest: m.Digest, Action: Refuse.String(),
				Claim: claimIdentity(m, nil), Backends: texts(m.Locations),
			},
		})
	}
	return r
}

func texts(locations []Location) []string {
	list := make([]string, len(locations))
	for i, l := range locations {
		list[i] = l.String()
	}
	return list
}

// Preview reads the cluster and returns the receipt of what create would do,
// with the plan digest. It writes nothing. The error is an *Error if the run
// was refused; the receipt is whole in both cases.
func Preview(ctx context.Context, c Cluster, manifests []Manifest, o Options) (receipt.Receipt, error) {
	r := newRun("preview", c, manifests, o)
	err := r.plan(ctx)
	if err == nil {
		r.record.Outcome = r.outcomeOf(receipt.WouldCreate)
	}
	return r.finish(err)
}

// plan fills in everything up to and including the plan digest, and refuses
// unless every volume may be created or is there already.
func (r *run) plan(ctx context.Context) error {
	if len(r.manifests) == 0 {
		return refusef(Usage, "no manifests; expected at least one")
	}
	// 1. Who is asked, and who asks.
	var err error
	r.record.Cluster, r.record.Caller, err = observeCluster(ctx, r.cluster, r.options.Access)
	if err != nil {
		return err
	}
	// 2. The identity can do no harm.
	names := make([]string, len(r.manifests))
	for i, m := range r.manifests {
		names[i] = m.Name()
	}
	proof, err := provePermissions(ctx, r.cluster, names)
	if err != nil {
		return err
	}
	r.record.Permissions = proof.record(r.options.AllowExcess)
	if refused := proof.check(r.options.AllowExcess); refused != nil {
		return refused
	}
	// 3. The manifests fit each other.
	if err := CheckSet(r.manifests, r.options.AllowOverlap); err != nil {
		return err
	}
	// 4. Each volume's plan, and what the server would make of it.
	if err := r.planVolumes(ctx); err != nil {
		return err
	}
	r.record.PlanDigest = r.record.ComputePlanDigest()
	return r.firstRefusal()
}

func (r *run) planVolumes(ctx context.Context) error {
	neighbours, err := observeNeighbours(ctx, r.cluster)
	if err != nil {
		return err
	}
	neighbours = append(neighbours, r.planned(neighbours)...)
	for i := range r.manifests {
		if err := r.planVolume(ctx, i, neighbours); err != nil {
			return err
		}
	}
	return nil
}

// planned returns the run's own volumes that are not there yet: to each other
// they are neighbours, before the first of them is made as well as after.
func (r *run) planned(live []Neighbour) []Neighbour {
	var missing []Neighbour
	for _, m := range r.manifests {
		if !slices.ContainsFunc(live, func(n Neighbour) bool { return n.Name == m.Name() }) {
			missing = append(missing, NeighbourOf(m.Volume))
		}
	}
	return missing
}

// planVolume fills in the plan of one volume. A refusal is part of it; an error
// is something that could not be read.
func (r *run) planVolume(ctx context.Context, i int, neighbours []Neighbour) error {
	m, volume := r.manifests[i], &r.record.Volumes[i]
	facts, err := observe(ctx, r.cluster, m, neighbours)
	if err != nil {
		return err
	}
	facts.AllowOverlap = r.options.AllowOverlap
	plan := Decide(m, facts)
	if plan.Action == Create {
		refused, err := r.dryRun(ctx, m, &volume.Planned)
		if err != nil {
			return err
		}
		if refused != nil {
			plan.Action, plan.Reason, plan.Message = Refuse, refused.Reason, refused.Message
		}
	}
	if plan.Action == Keep {
		if err := r.mayCreate(ctx); err != nil {
			return err
		}
	}
	volume.Planned.Action, volume.Planned.Reason = plan.Action.String(), string(plan.Reason)
	volume.Planned.Claim = claimIdentity(m, facts.Claim)
	volume.Planned.LiveUID = string(plan.LiveUID)
	volume.Planned.Mirrors, volume.Planned.AllowedOverlaps = plan.Mirrors, plan.AllowedOverlaps
	volume.Live, volume.OtherMetadata = liveRecord(facts.Live), plan.OtherMetadata
	volume.Message = plan.Message
	volume.Outcome, volume.Reason = outcomeOfPlan(plan.Action), string(plan.Reason)
	return nil
}

func outcomeOfPlan(action Action) receipt.Outcome {
	switch action {
	case Create:
		return receipt.WouldCreate
	case Keep:
		return receipt.Unchanged
	default:
		return receipt.Refused
	}
}

// dryRun asks the server what it would store and refuses what is not exactly
// the manifest: what admission adds was not reviewed.
func (r *run) dryRun(ctx context.Context, m Manifest, planned *receipt.Planned) (*Error, error) {
	result, err := r.cluster.DryRunCreate(ctx, m.Object)
	code := statusCode(err)
	switch {
	case code == http.StatusForbidden:
		if err := r.mayCreate(ctx); err != nil {
			return nil, err
		}
		return refusef(DryRunRefused, "the server's dry run of volume %s was refused: %w", m.Name(), err), nil
	case apierrors.IsAlreadyExists(err):
		return refusef(AlreadyExists, "volume %s was created by somebody else while it was planned", m.Name()), nil
	case code >= 400 && code != http.StatusUnauthorized && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout:
		return refusef(DryRunRefused, "the server's dry run of volume %s was refused: %w", m.Name(), err), nil
	case err != nil:
		return nil, readError(fmt.Errorf("dry run of volume %s: %w", m.Name(), err), Right{Verb: "create", Resource: volumes})
	}
	planned.DryRunDigest = dryRunDigest(result)
	if differences, _ := compare(m, result, exactly); len(differences) > 0 {
		return refusef(DryRunChanged, "the server would not store volume %s as the manifest says:\n%s", m.Name(), describe(differences)), nil
	}
	return nil, nil
}

// mayCreate asks for the right that only a create would prove.
func (r *run) mayCreate(ctx context.Context) error {
	right := Right{Verb: "create", Resource: volumes}
	has, err := r.cluster.May(ctx, right)
	if err != nil {
		return readError(err, Right{Verb: "create", Resource: "selfsubjectaccessreviews"})
	}
	if !has {
		return refusef(PermissionMissing, "the identity may not %s", right)
	}
	return nil
}

// firstRefusal ends a run in which any volume is refused, and tells all.
func (r *run) firstRefusal() error {
	var first Reason
	var messages []string
	for _, v := range r.record.Volumes {
		if v.Outcome != receipt.Refused {
			continue
		}
		if first == "" {
			first = Reason(v.Reason)
		}
		messages = append(messages, v.Message)
	}
	if first == "" {
		return nil
	}
	return &Error{Reason: first, Message: strings.Join(messages, "\n")}
}

// outcomeOf returns unchanged if every volume is, and otherwise the given one.
func (r *run) outcomeOf(otherwise receipt.Outcome) receipt.Outcome {
	for _, v := range r.record.Volumes {
		if v.Outcome != receipt.Unchanged {
			return otherwise
		}
	}
	return receipt.Unchanged
}

// finish closes the record. An error without an outcome of its own is a refusal
// before any write.
func (r *run) finish(err error) (receipt.Receipt, error) {
	r.record.FinishedAt = r.options.now()
	if err == nil {
		return r.record, nil
	}
	if r.record.Outcome == "" {
		r.record.Outcome = receipt.Refused
	}
	r.record.Reason, r.record.Message = string(ReasonOf(err)), messageOf(err)
	for i := range r.record.Volumes {
		// A plan that nobody will act on is no promise.
		if v := &r.record.Volumes[i]; v.Outcome == receipt.WouldCreate {
			v.Outcome = receipt.NotReached
		}
	}
	return r.record, err
}

func messageOf(err error) string {
	var with *Error
	if errors.As(err, &with) && with.Message != "" {
		return with.Message
	}
	return err.Error()
}
