package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/model"
)

// pair are two replicas of which one leads.
type pair struct {
	t     *testing.T
	plane *controlplane.ControlPlane
	admin client.Client
	lease client.ObjectKey
	fleet
}

func startPair(t *testing.T) *pair {
	t.Helper()
	plane := ownPlane(t)
	own := install(t, plane)
	admin, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	p := &pair{t: t, plane: plane, admin: admin, lease: client.ObjectKey{Namespace: chart.Namespace(own.objects), Name: "mooring.pmp.crownlabs.polito.it"}}
	for i := range 2 {
		p.fleet = append(p.fleet, own.replica(t, fmt.Sprintf("mooring-%d", i)))
	}
	until(t, "one of two leads", func(ctx context.Context) string { return unless(p.holder(ctx) != "", "nobody does") })
	return p
}

func unless(holds bool, said string) string {
	if holds {
		return ""
	}
	return said
}

// holder returns who holds the lease, by the lease.
func (p *pair) holder(ctx context.Context) string {
	lease := &coordinationv1.Lease{}
	if err := p.admin.Get(ctx, p.lease, lease); err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// steal writes somebody else into the lease, who never renews it, and returns when
// that lease has run out and one of the two has led for a while.
func (p *pair) steal(int) error {
	const thief = "a thief"
	if err := p.write(thief); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.anotherLeads(ctx, thief)
}

// write writes a holder into the lease.
func (p *pair) write(holder string) error {
	lease := &coordinationv1.Lease{}
	for range 20 { // the leader writes it too
		if err := p.admin.Get(context.Background(), p.lease, lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To(holder), ptr.To(metav1.NowMicro())
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](15)
		if err := p.admin.Update(context.Background(), lease); err == nil {
			return nil
		}
	}
	return errors.New("the lease could not be written in 20 tries")
}

// anotherLeads waits until somebody else than a former holder has the lease, and
// has had it for a while.
func (p *pair) anotherLeads(ctx context.Context, former string) error {
	for now := p.holder(ctx); now == former || now == ""; now = p.holder(ctx) {
		select {
		case <-ctx.Done():
			return errors.New("nobody else took the lease")
		case <-time.After(100 * time.Millisecond):
		}
	}
	<-time.After(3 * time.Second) // it does what there is to be done
	return nil
}

// run runs the script; at a position of either replica's writes something is
// done, of which who is writing learns nothing.
func (p *pair) run(t *testing.T, at position, does func(who int) error) *trap {
	t.Helper()
	m := model.New(t, model.ScriptSize(model.Options{Plane: p.plane, Controller: p, Seed: chosen.seed}))
	failed := make(chan error, 1)
	set := &trap{at: at, does: func(who int) bool {
		failed <- does(who)
		return false
	}}
	for who, r := range p.fleet {
		r.proxy.SetHook(set.hook(who))
		defer r.proxy.SetHook(nil)
	}
	m.Script()
	if set.what() != "" {
		noError(t, <-failed, "at %s", at)
	}
	return set
}

// TestLeaseStolen takes the lease away from the leader at each of its writes, with
// the write on the way. The leader notices when it renews, and starts over; the
// write arrives when the stolen lease has run out and one of the two leads again.
func TestLeaseStolen(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	for _, at := range p.somePositions() {
		t.Run(at.String(), func(t *testing.T) {
			set := p.run(t, at, p.steal)
			t.Logf("stolen %s: %s", at.moment, set.what())
		})
	}
}

// TestLeaderStopped stops the leader's process at each of its writes for longer
// than its lease lasts, with the write on the way: it arrives when the other
// replica leads and has done all there was to be done. Then the process goes on,
// and finds that it does not lead any more.
func TestLeaderStopped(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	for _, at := range p.somePositions() {
		t.Run(at.String(), func(t *testing.T) {
			set := p.run(t, at, p.outlast)
			t.Logf("stopped %s: %s", at.moment, set.what())
		})
	}
}

// somePositions are those of about as many writes as the script needs.
func (p *pair) somePositions() []position { return positions(24, shortOr(1, 1000)) }

// outlast stops a replica until another holder of the lease has led for a while.
// It goes on only when the write that is on the way has had time to arrive.
func (p *pair) outlast(who int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before, stopped := p.holder(ctx), p.fleet[who].process
	if err := stopped.Pause(); err != nil {
		return err
	}
	if err := p.anotherLeads(ctx, before); err != nil {
		return err
	}
	time.AfterFunc(time.Second, func() { _ = stopped.Resume() })
	return nil
}
