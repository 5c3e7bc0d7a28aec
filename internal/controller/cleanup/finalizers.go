package cleanup

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// pause is between two lists, so that a claim which others write all the time
	// does not make the cleanup read everything all the time.
	pause = 200 * time.Millisecond
	// writers is how many claims are written at once.
	writers = 8
)

// claimKey is a claim, and not another that gets its name later.
type claimKey struct {
	types.NamespacedName
	uid types.UID
}

func keyOf(claim *metav1.ObjectMeta) claimKey {
	return claimKey{types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, claim.UID}
}

// finalizers takes the finalizer off all claims, until a whole list of them
// finds none. Whoever wrote a claim meanwhile is a reason to read it again.
func (c *cleaner) finalizers(ctx context.Context) error {
	for {
		claims, err := c.api.ClaimsWith(ctx, c.report.Finalizer)
		if err != nil {
			return fmt.Errorf("list the claims: %w", err)
		}
		if len(claims) == 0 {
			c.tell("no claim has the finalizer %s", c.report.Finalizer)
			return nil
		}
		if err := c.cameBack(claims); err != nil {
			return err
		}
		removed, err := c.removeAll(ctx, claims)
		c.tell("removed the finalizer %s from %d of %d claims", c.report.Finalizer, removed, len(claims))
		if err != nil {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// cameBack finds a claim that had lost the finalizer already: somebody else
// works under this provisioner name, and will go on doing so.
func (c *cleaner) cameBack(claims []*metav1.ObjectMeta) error {
	for _, claim := range claims {
		if c.removed[keyOf(claim)] {
			return fmt.Errorf("claim %s/%s got the finalizer %s back after it was removed: a controller of this provisioner name "+
				"runs that this lease does not stop; stop it (another instance, or one without leader election) and repeat the cleanup",
				claim.Namespace, claim.Name, c.report.Finalizer)
		}
	}
	return nil
}

// removeAll writes the claims, several at once, and returns how many it wrote
// and the first error. Those that have changed or are gone are left for the
// next list.
func (c *cleaner) removeAll(ctx context.Context, claims []*metav1.ObjectMeta) (int, error) {
	var (
		all   sync.WaitGroup
		mutex sync.Mutex
		done  []*metav1.ObjectMeta
		first error
	)
	for worker := range writers {
		all.Go(func() {
			for i := worker; i < len(claims); i += writers {
				err := c.remove(ctx, claims[i])
				mutex.Lock()
				switch {
				case err == nil:
					done = append(done, claims[i])
				case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && first == nil:
					first = fmt.Errorf("remove the finalizer from claim %s/%s: %w", claims[i].Namespace, claims[i].Name, err)
				}
				failed := first != nil
				mutex.Unlock()
				if failed {
					return
				}
			}
		})
	}
	all.Wait()
	for _, claim := range done {
		c.removed[keyOf(claim)] = true
		c.report.Removed++
		if claim.DeletionTimestamp != nil {
			c.report.Deleting++
		}
	}
	return len(done), first
}

// remove takes Mooring's finalizer off a claim, and no other; it fails with a
// conflict if the claim has changed since it was read.
func (c *cleaner) remove(ctx context.Context, claim *metav1.ObjectMeta) error {
	if ctx.Err() != nil { // the lease may be lost
		return context.Cause(ctx)
	}
	rest := slices.DeleteFunc(slices.Clone(claim.Finalizers), func(f string) bool { return f == c.report.Finalizer })
	return c.api.SetFinalizers(ctx, claim, rest)
}
