package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
)

const (
	// formerLeader is how long a leader may go on acting after its lease was
	// taken. It looks again 2 s after its last renewal (RetryPeriod), and gives up
	// 10 s after that (RenewDeadline; client-go tools/leaderelection, renew, with
	// controller-runtime's defaults); the process is replaced then. What is left
	// of the 15 s is for requests that are under way.
	formerLeader = 15 * time.Second
	// duration is for how many seconds each renewal holds the lease, every
	// renewals. Should a cleanup die, a replica leads again after that long.
	duration int32 = 30
	renewals       = 5 * time.Second
	// held is for how many seconds the lease stays held after a cleanup that is
	// done. A candidate waits for what the holder recorded, from when it first saw
	// the record (tools/leaderelection, isLeaseValid).
	held int32 = 3600
	// holderPrefix is what every cleanup's identity starts with.
	holderPrefix = "mooring-controller-cleanup_"
)

// IsCleanup reports whether the holder of a lease is a cleanup, of this process
// or another.
func IsCleanup(holder string) bool { return strings.HasPrefix(holder, holderPrefix) }

// lostError says that somebody else took the lease.
type lostError struct{ holder, why string }

func (e lostError) Error() string {
	if e.why != "" {
		return "the lease was lost: " + e.why
	}
	return "the lease was lost to " + e.holder
}

// toCleanup reports whether it was another cleanup, which does the same.
func (e lostError) toCleanup() bool { return IsCleanup(e.holder) }

// former is who held the lease before, and for how long at a time.
type former struct {
	holder   string
	duration time.Duration
}

func (f former) String() string {
	if f.holder == "" {
		return "nobody"
	}
	return f.holder
}

// holder holds one lease.
type holder struct {
	api      API
	identity string
	lease    *coordinationv1.Lease
}

func newHolder(api API) *holder {
	return &holder{api: api, identity: holderPrefix + string(uuid.NewUUID())}
}

// take makes this process the holder, although somebody may hold and renew the
// lease; it is made if there is none.
func (h *holder) take(ctx context.Context) (former, error) {
	for {
		before, err := h.tryTake(ctx)
		switch {
		case err == nil:
			return before, nil
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			continue // the holder renewed it in between, or a candidate made it
		case ctx.Err() != nil:
			return former{}, context.Cause(ctx)
		default:
			return former{}, fmt.Errorf("take the lease %s: %w", h.api.LeaseName(), err)
		}
	}
}

func (h *holder) tryTake(ctx context.Context) (former, error) {
	now := ptr.To(metav1.NowMicro())
	lease, err := h.api.GetLease(ctx)
	if apierrors.IsNotFound(err) {
		h.lease, err = h.api.CreateLease(ctx, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &h.identity, LeaseDurationSeconds: ptr.To(duration), AcquireTime: now, RenewTime: now,
		}})
		return former{}, err
	}
	if err != nil {
		return former{}, err
	}
	before := former{
		holder:   ptr.Deref(lease.Spec.HolderIdentity, ""),
		duration: inSeconds(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)),
	}
	if IsCleanup(before.holder) {
		before.duration = 0 // it leads nobody; its hour need not be waited for
	}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &h.identity, LeaseDurationSeconds: ptr.To(duration), AcquireTime: now, RenewTime: now,
		LeaseTransitions: ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1),
	}
	h.lease, err = h.api.UpdateLease(ctx, lease)
	return before, err
}

// keep renews the lease until letGo is called. The context that it returns ends
// when the lease is lost, and says so: nothing may be done any more then.
func (h *holder) keep(ctx context.Context) (kept context.Context, letGo func()) {
	kept, lose := context.WithCancelCause(ctx)
	var renewer sync.WaitGroup
	renewer.Go(func() {
		last := time.Now()
		for sleep(kept, renewals) == nil {
			began := time.Now()
			err := h.renewSoon(kept)
			switch {
			case err == nil:
				last = began
			case errors.As(err, new(lostError)):
				lose(err)
			case time.Since(last) > inSeconds(duration)-renewals:
				lose(lostError{why: fmt.Sprintf("it could not be renewed: %v", err)})
			}
		}
	})
	return kept, func() {
		lose(context.Canceled)
		renewer.Wait()
	}
}

// renewSoon renews the lease for a while; a request that hangs is given up for
// the next one.
func (h *holder) renewSoon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewals)
	defer cancel()
	return h.renew(ctx, duration)
}

// hold is the last renewal: for long enough that whoever uninstalls can remove
// the replicas. It returns until when.
func (h *holder) hold(ctx context.Context) (time.Time, error) {
	if err := h.renew(ctx, held); err != nil {
		return time.Time{}, err
	}
	return h.lease.Spec.RenewTime.Add(inSeconds(held)), nil
}

// renew writes the lease again, for so many seconds, if it is still this
// process that holds it.
func (h *holder) renew(ctx context.Context, forSeconds int32) error {
	for {
		lease := h.lease.DeepCopy()
		lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &forSeconds, ptr.To(metav1.NowMicro())
		updated, err := h.api.UpdateLease(ctx, lease)
		switch {
		case err == nil:
			h.lease = updated
			return nil
		case apierrors.IsNotFound(err):
			return lostError{why: "somebody deleted it"}
		case !apierrors.IsConflict(err):
			return fmt.Errorf("renew the lease %s: %w", h.api.LeaseName(), err)
		}
		// Somebody wrote it: another holder, or only a label; or an update of this
		// process arrived whose answer did not.
		if h.lease, err = h.readOwn(ctx); err != nil {
			return err
		}
	}
}

// readOwn reads the lease, which is lost if it is another's by now.
func (h *holder) readOwn(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := h.api.GetLease(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return h.lease, lostError{why: "somebody deleted it"}
	case err != nil:
		return h.lease, fmt.Errorf("read the lease %s: %w", h.api.LeaseName(), err)
	case ptr.Deref(lease.Spec.HolderIdentity, "") != h.identity:
		return h.lease, lostError{holder: former{holder: ptr.Deref(lease.Spec.HolderIdentity, "")}.String()}
	}
	return lease, nil
}

func inSeconds(n int32) time.Duration { return time.Duration(n) * time.Second }
