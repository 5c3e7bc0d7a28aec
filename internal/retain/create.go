package retain

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// Recorder keeps the receipt of a run; *receipt.File is one.
type Recorder interface {
	// Write replaces the record as a whole, durably.
	Write(receipt.Receipt) error
}

// CreateVolumes previews again and, if the situation is the approved one,
// creates what is not there: each volume with one request that is never
// repeated. The recorder holds the receipt, with the outcome intended before
// the first write and the final one before CreateVolumes returns. The error is
// an *Error unless every volume was created as planned or is unchanged.
func CreateVolumes(ctx context.Context, c Cluster, manifests []Manifest, o CreateOptions) (receipt.Receipt, error) {
	r := &creation{run: newRun("create", c, manifests, o.Options), recorder: o.Recorder}
	r.record.Approval = o.Approval.record()
	err := r.carryOut(ctx, o.Approval)
	return r.close(err)
}

// CreateOptions say how a create goes.
type CreateOptions struct {
	Options
	Approval Approval
	Recorder Recorder
}

type creation struct {
	*run
	recorder Recorder
}

func (r *creation) carryOut(ctx context.Context, approval Approval) error {
	// 1. The approval can be right.
	if err := approval.Check(r.options.clock()); err != nil {
		return err
	}
	// 2. Nothing stands in the way of any volume.
	if err := r.plan(ctx); err != nil {
		return err
	}
	// 3. There is something to do, and it is what was approved.
	if r.outcomeOf(receipt.Created) == receipt.Unchanged {
		r.record.Outcome = receipt.Unchanged
		return nil
	}
	if refused := approval.covers(r.record.PlanDigest); refused != nil {
		return refused
	}
	// 4. One volume after the other; the first that fails ends the run.
	for i := range r.manifests {
		switch v := r.record.Volumes[i]; v.Outcome {
		case receipt.Unchanged:
		case receipt.WouldCreate:
			if err := r.create(ctx, i); err != nil {
				return err
			}
		default:
			return refusef(Unexpected, "volume %s was planned %s, which is no plan to act on", v.Planned.Name, v.Outcome)
		}
	}
	r.record.Outcome = receipt.Created
	return nil
}

// create makes one volume, and records the intent before and the outcome after.
func (r *creation) create(ctx context.Context, i int) error {
	volume := &r.record.Volumes[i]
	if ctx.Err() != nil {
		r.record.Outcome = receipt.Refused // not intended, as it was for the volume before
		return refusef(Interrupted, "interrupted before volume %s was sent", volume.Planned.Name)
	}
	// 1. Whoever finds the receipt of a killed run knows what may have happened.
	volume.Outcome, r.record.Outcome = receipt.Intended, receipt.Intended
	if err := r.recorder.Write(r.record); err != nil {
		volume.Outcome, r.record.Outcome = receipt.NotReached, receipt.Refused
		return refusef(ReceiptUnwritable, "the receipt could not be written, and volume %s was not sent: %w", volume.Planned.Name, err)
	}
	// 2. The only write of Mooring to a volume.
	made, err := r.cluster.CreateVolume(ctx, r.manifests[i].Object)
	// 3. What is known about it.
	failure := r.judgeAnswer(i, made, err)
	if failure == nil {
		failure = r.readBack(ctx, i, made)
	}
	if failure != nil {
		volume.Reason, volume.Message = string(failure.Reason), failure.Message
		r.record.Outcome = volume.Outcome
		return failure
	}
	volume.Outcome = receipt.Created
	return nil
}

// rejected are answers of an API server that did not store the volume. Every
// other error, and every answer of somebody in front of it, leaves it open: the
// request may have been carried out, or may still be.
var rejected = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusConflict, http.StatusRequestEntityTooLarge,
	http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
}

// judgeAnswer refuses every answer but one that says exactly what was planned.
func (r *creation) judgeAnswer(i int, made map[string]any, err error) *Error {
	m, volume := r.manifests[i], &r.record.Volumes[i]
	switch code := statusCode(err); {
	case err == nil && (made["kind"] != "PersistentVolume" || child(made, "metadata")["name"] != m.Name() || liveUID(made) == ""):
		volume.Outcome = receipt.Unknown
		return refusef(OutcomeUnknown, "the create of volume %s was answered with another object", m.Name())
	case err == nil:
		volume.Live = liveRecord(made)
		if differences, _ := compare(m, made, exactly); len(differences) > 0 {
			volume.Outcome = receipt.NeedsReview
			return refusef(CreatedNeedsReview, "volume %s was created, and the server stored something else than its dry run said:\n%s", m.Name(), describe(differences))
		}
		return nil
	case apierrors.IsAlreadyExists(err):
		volume.Outcome = receipt.Refused
		return refusef(AlreadyExists, "a volume %s came to be between plan and create; it was neither touched nor adopted", m.Name())
	case slices.Contains(rejected, code):
		volume.Outcome = receipt.Refused
		return refusef(CreateRefused, "the server refused to create volume %s; nothing was stored: %w", m.Name(), err)
	}
	volume.Outcome = receipt.Unknown
	return refusef(OutcomeUnknown, "the create of volume %s was sent once, and whether it was carried out cannot be known: %w", m.Name(), err)
}

// readBack reads a volume that was just created, and its claim, until a binding
// that is under way is over. It goes on when the caller is interrupted: the
// record of a write must be finished.
func (r *creation) readBack(ctx context.Context, i int, made map[string]any) *Error {
	settle := r.options.Settle
	if settle == 0 {
		settle = 15 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settle+30*time.Second)
	defer cancel()
	m, volume := r.manifests[i], &r.record.Volumes[i]
	deadline := time.Now().Add(settle)
	for {
		live, claim, err := r.readBoth(ctx, m)
		if err != nil {
			volume.Outcome = receipt.NeedsReview
			return refusef(CreatedNeedsReview, "volume %s was created, and could not be read back: %w", m.Name(), err)
		}
		if live != nil {
			volume.Live = liveRecord(live)
		}
		refused, others := judgeReadBack(m, made, live, claim)
		volume.OtherMetadata = others
		if refused == nil {
			refused = r.lookAround(ctx, m, live, claim)
		}
		if refused == nil {
			return nil
		}
		if refused.Reason != BoundUnproven || time.Now().After(deadline) {
			volume.Outcome = receipt.NeedsReview
			return refusef(CreatedNeedsReview, "volume %s was created, and the read-back shows something that was not planned: %s", m.Name(), refused)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// lookAround lists all volumes once more: two runs that each saw no other volume
// on one backend can both have created one, and nothing in Kubernetes keeps them
// from it. Then at least the later one says so.
func (r *creation) lookAround(ctx context.Context, m Manifest, live map[string]any, claim *corev1.PersistentVolumeClaim) *Error {
	all, err := observeNeighbours(ctx, r.cluster)
	if err != nil {
		return refusef(ReadFailed, "the other volumes could not be read: %w", err)
	}
	plan := Decide(m, Facts{Live: live, Claim: claim, Neighbours: without(all, m.Name()), AllowOverlap: r.options.AllowOverlap})
	if plan.Action != Keep {
		return &Error{Reason: plan.Reason, Message: plan.Message}
	}
	return nil
}

func (r *creation) readBoth(ctx context.Context, m Manifest) (map[string]any, *corev1.PersistentVolumeClaim, error) {
	live, err := r.cluster.Volume(ctx, m.Name())
	if err != nil {
		return nil, nil, fmt.Errorf("read the volume: %w", err)
	}
	claim, err := observeClaim(ctx, r.cluster, m)
	if err != nil {
		return nil, nil, err
	}
	return live, claim, nil
}

// judgeReadBack refuses a volume that is not the one that was made, or that is
// bound without proof.
func judgeReadBack(m Manifest, made, live map[string]any, claim *corev1.PersistentVolumeClaim) (*Error, []string) {
	if live == nil {
		return refusef(VolumeMissing, "it is gone"), nil
	}
	if liveUID(live) != liveUID(made) {
		return refusef(VolumeDiffers, "it has the UID %s; created was %s", liveUID(live), liveUID(made)), nil
	}
	var plan Plan
	if err := plan.checkLive(m, Facts{Live: live, Claim: claim}); err != nil {
		return err, nil
	}
	return nil, plan.OtherMetadata
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// close finishes the record and writes it: a run has not succeeded before its
// receipt says so.
func (r *creation) close(err error) (receipt.Receipt, error) {
	record, err := r.finish(err)
	writeErr := r.recorder.Write(record)
	if writeErr == nil {
		return record, err
	}
	reason := ReceiptUnwritable
	if slices.ContainsFunc(record.Volumes, func(v receipt.Volume) bool { return v.Outcome.Wrote() }) {
		reason = ReceiptUnfinished
	}
	return record, &Error{
		Reason:  reason,
		Message: fmt.Sprintf("the run ended %s, and its receipt could not be written: %v", summary(record), writeErr),
		Cause:   writeErr,
	}
}

// summary tells a whole run in one line, for when its receipt cannot.
func summary(record receipt.Receipt) string {
	text := string(record.Outcome)
	for _, v := range record.Volumes {
		text += fmt.Sprintf("; volume %s %s", v.Planned.Name, v.Outcome)
		if v.Live != nil {
			text += " with UID " + v.Live.UID
		}
	}
	return text
}
