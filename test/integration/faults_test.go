package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// ownPlanes is how many planes of their own tests may have at once, besides the
// two that are shared: a machine of two cores does no more in time.
var ownPlanes = make(chan struct{}, 4)

// ownPlane starts a plane for one test, once there is room for it.
func ownPlane(t *testing.T, options controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	ownPlanes <- struct{}{}
	t.Cleanup(func() { <-ownPlanes }) // after the plane's own end
	return controlplane.ForTest(t, audited(options))
}

// ownWorld is a plane of the test's own, for what would disturb others.
func ownWorld(t *testing.T, options controlplane.Options) (*world, *installation) {
	t.Helper()
	options.CrossNamespace = true
	plane := ownPlane(t, options)
	return newWorld(t, plane, true), install(t, plane, chart.Options{})
}

// crowd is a number of claims of as many tenants, all of one origin.
type crowd struct {
	claims []*corev1.PersistentVolumeClaim
}

// tenants creates ten tenants' namespaces.
func (w *world) tenants() []string {
	w.Helper()
	var namespaces []string
	for i := range 10 {
		namespaces = append(namespaces, w.namespace(fmt.Sprintf("tenant%d", i), map[string]string{"type": "tenant"}))
	}
	return namespaces
}

// crowd creates n mirror claims of one origin, eight at a time, spread over
// namespaces. It goes on when the API server is away for a while.
func (w *world) crowd(o origin, n int, namespaces []string) *crowd {
	w.Helper()
	c := &crowd{claims: make([]*corev1.PersistentVolumeClaim, n)}
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := worker; i < n; i += 8 {
				c.claims[i] = w.mirrorClaim(namespaces[i%len(namespaces)], fmt.Sprintf("m%d", i), o)
				for w.Create(w.Context(), c.claims[i]) != nil && w.Context().Err() == nil {
					c.claims[i].ResourceVersion = "" // the API server may be away: try again
					<-time.After(50 * time.Millisecond)
				}
			}
		})
	}
	wait.Wait()
	return c
}

// areBound waits until all are bound, each to exactly one volume of its own.
func (c *crowd) areBound(w *world) {
	w.Helper()
	for _, claim := range c.claims {
		w.isBound(claim)
	}
	var volumes corev1.PersistentVolumeList
	w.must(w.List(w.Context(), &volumes), "list volumes")
	made := map[string]int{}
	for i := range volumes.Items {
		if record := mirror.RecordOf(names, &volumes.Items[i]); record.IsMirror() {
			made[string(record.ClaimUID)]++
		}
	}
	for _, claim := range c.claims {
		if made[string(claim.UID)] != 1 {
			w.Errorf("claim %s has %d mirror volumes", claim.Name, made[string(claim.UID)])
		}
	}
	if len(made) != len(c.claims) {
		w.Errorf("%d mirror volumes for %d claims", len(made), len(c.claims))
	}
}

// boundAtLeast waits until so many mirror claims are bound.
func (c *crowd) boundAtLeast(w *world, n int) {
	w.Helper()
	w.until(fmt.Sprintf("%d claims bound", n), func(ctx context.Context) string {
		bound := 0
		var all corev1.PersistentVolumeClaimList
		w.must(w.List(ctx, &all), "list claims")
		for _, claim := range all.Items {
			if strings.HasPrefix(claim.Spec.VolumeName, "pvc-") && claim.Status.Phase == corev1.ClaimBound {
				bound++
			}
		}
		if bound < n {
			return fmt.Sprintf("%d are", bound)
		}
		return ""
	})
}

// TestManyAtOnce binds 300 claims that are created at once.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	w.crowd(o, 300, w.tenants()).areBound(w)
}

// TestLeaderKilled runs two replicas, kills the one that leads without warning
// in the middle of 200 claims, and sees the other finish them.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	leader := own.replica(t, "mooring-0").start(t)
	follower := own.replica(t, "mooring-1").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	w.until("the first leads", func(context.Context) string {
		return unless(strings.Contains(leader.metrics(t), `leader_election_master_status{name="mooring.pmp.crownlabs.polito.it"} 1`), "it does not")
	})
	if strings.Contains(follower.metrics(t), `leader_election_master_status{name="mooring.pmp.crownlabs.polito.it"} 1`) {
		t.Fatal("both lead")
	}
	tenants := w.tenants()
	var claims *crowd
	var wait sync.WaitGroup
	wait.Go(func() { claims = w.crowd(o, 200, tenants) })
	w.until("a mirror volume made", func(ctx context.Context) string { return unless(w.mirrorVolumes(ctx) > 0, "there is none") })
	w.must(leader.Kill(), "kill the leader")
	made := w.mirrorVolumes(t.Context())
	wait.Wait()
	claims.areBound(w)
	if made >= 200 {
		t.Errorf("the leader had made all %d volumes when it was killed: nothing was left for the other", made)
	}
}

// mirrorVolumes counts the mirror volumes in the cluster.
func (w *world) mirrorVolumes(ctx context.Context) int {
	w.Helper()
	var volumes corev1.PersistentVolumeList
	w.must(w.List(ctx, &volumes), "list volumes")
	count := 0
	for i := range volumes.Items {
		if mirror.RecordOf(names, &volumes.Items[i]).IsMirror() {
			count++
		}
	}
	return count
}

// TestControllerKilled kills the only replica in the middle of 200 claims and
// starts it again.
func TestControllerKilled(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	only := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenants := w.tenants()
	var claims *crowd
	var wait sync.WaitGroup
	wait.Go(func() { claims = w.crowd(o, 200, tenants) })
	for range 3 {
		w.until("a mirror volume made", func(ctx context.Context) string { return unless(w.mirrorVolumes(ctx) > 0, "there is none") })
		w.must(only.Kill(), "kill the controller")
		w.must(only.Start(t.Context()), "start the controller again")
	}
	wait.Wait()
	claims.areBound(w)
}

// TestAPIServerRestarted kills the API server in the middle of 200 claims and
// starts it again.
func TestAPIServerRestarted(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	first, second := w.tenants(), w.in(t).tenants()
	claims := w.crowd(o, 100, first)
	claims.boundAtLeast(w, 1)
	var wait sync.WaitGroup
	var more *crowd
	wait.Go(func() { more = w.crowd(o, 100, second) })
	w.must(w.plane.APIServer().Kill(), "kill the API server")
	w.must(w.plane.APIServer().Start(t.Context()), "start the API server again")
	wait.Wait()
	claims.claims = append(claims.claims, more.claims...)
	claims.areBound(w)
}

// TestStartsWithoutAnything starts the controller on a cluster that has no
// class of its own, and sees it serve the class that is made later.
func TestStartsWithoutAnything(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t, controlplane.Options{CrossNamespace: true})
	w := newWorld(t, plane, true)
	own := install(t, plane, chart.Options{Values: map[string]any{"class": map[string]any{"create": false}}})
	own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
	w.must(w.Create(w.Context(), &storagev1.StorageClass{ObjectMeta: metaNamed(class), Provisioner: "somebody.example.com"}), "create a wrong class")
	w.origin(w.namespace("barrier", nil), "barrier")
	w.must(w.Delete(w.Context(), &storagev1.StorageClass{ObjectMeta: metaNamed(class)}), "delete the wrong class")
	w.must(w.Create(w.Context(), w.chartClass()), "create the class")
	w.isBound(claim)
}

// TestWrites counts in the API server's audit log what the controller writes:
// for a mirror that is granted at once its volume and one event, once for each
// origin the finalizer; and when idle, nothing but its lease.
func TestWrites(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{Audit: controlplane.AuditMetadata})
	own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	const mirrors = 20
	w.crowd(o, mirrors, w.tenants()).areBound(w)
	want := map[string]int{
		"create persistentvolumes":                mirrors,
		"create events":                           mirrors,
		"patch persistentvolumeclaims":            1,
		"create persistentvolumeclaims (dry run)": 1,
	}
	w.until("the writes are as told", func(context.Context) string {
		got := own.writes(t)
		for what, n := range want {
			if got[what] != n {
				return fmt.Sprintf("%s: %d, want %d; all: %v", what, got[what], n, got)
			}
		}
		return ""
	})

	// Idle: the lease is renewed three times, and nothing else is written.
	before := own.writes(t)
	renewals := before["update leases"]
	w.until("the lease is renewed", func(context.Context) string {
		return unless(own.writes(t)["update leases"] >= renewals+3, "not yet")
	})
	after := own.writes(t)
	delete(before, "update leases")
	delete(after, "update leases")
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("an idle controller wrote: before %v, after %v", before, after)
	}
	for what := range after {
		if _, expected := want[what]; !expected && !slices.Contains([]string{"create leases", "create events (leases)"}, what) {
			t.Errorf("it wrote %s: %v", what, after)
		}
	}
}

// writes counts the controller's writes in the audit log, by verb and resource.
func (i *installation) writes(t *testing.T) map[string]int {
	t.Helper()
	return i.audited(t, func(*auditv1.Event) bool { return true })
}

// done are the writes that the API server did not refuse, for instance because
// the object had changed.
func (i *installation) done(t *testing.T) map[string]int {
	t.Helper()
	return i.audited(t, func(event *auditv1.Event) bool { return event.ResponseStatus == nil || event.ResponseStatus.Code < 300 })
}

func (i *installation) audited(t *testing.T, counts func(*auditv1.Event) bool) map[string]int {
	t.Helper()
	file, err := os.Open(i.plane.AuditLog())
	noError(t, err, "open the audit log")
	defer func() { _ = file.Close() }()
	account := "system:serviceaccount:" + chart.Namespace(i.objects) + ":" + chart.ServiceAccountName(i.objects)
	counted := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil { // the last line may be half written
			continue
		}
		if event.User.Username != account || event.Stage != auditv1.StageResponseComplete || event.ObjectRef == nil ||
			slices.Contains([]string{"get", "list", "watch"}, event.Verb) {
			continue
		}
		if counts(&event) {
			counted[describe(&event)]++
		}
	}
	noError(t, lines.Err(), "read the audit log")
	return counted
}

func describe(event *auditv1.Event) string {
	what := event.Verb + " " + event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		what += "/" + event.ObjectRef.Subresource
	}
	if strings.Contains(event.RequestURI, "dryRun=All") {
		what += " (dry run)"
	}
	if event.ObjectRef.Resource == "events" && event.ObjectRef.Namespace == chart.DefaultNamespace {
		what += " (leases)" // the election's own, in the controller's namespace
	}
	return what
}

func unless(holds bool, said string) string {
	if holds {
		return ""
	}
	return said
}

// TestAPIServerAway takes the API server away for longer than the lease lasts:
// the controller loses its lease, starts over in the same process, and serves
// again. A replica that is started meanwhile waits.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	leader := own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
	w.isBound(w.mirror(tenant, "before", o))
	process := leader.PID()
	w.must(w.plane.APIServer().Kill(), "kill the API server")
	started := make(chan error, 1)
	late := own.replica(t, "mooring-1")
	go func() { started <- late.Start(t.Context()) }()
	w.until("the leader starts over", func(context.Context) string {
		log, err := os.ReadFile(leader.LogFile())
		w.must(err, "read the controller's log")
		return unless(strings.Contains(string(log), "starting over"), "it does not")
	})
	w.must(w.plane.APIServer().Start(t.Context()), "start the API server again")
	w.must(<-started, "start a replica while the API server is away")
	w.isBound(w.mirror(tenant, "after", o))
	if leader.PID() != process {
		t.Errorf("the controller's process was %d and is %d", process, leader.PID())
	}
	noRaces(t, late.LogFile())
}

// TestGracefulStop stops the leader by a signal: it ends with 0 and gives its
// lease away, so that the other replica need not wait for it to run out.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	leader := own.replica(t, "mooring-0").start(t)
	lease := &coordinationv1.Lease{}
	holder := func(ctx context.Context) string {
		w.must(client.IgnoreNotFound(w.Get(ctx, client.ObjectKey{Namespace: chart.DefaultNamespace, Name: "mooring.pmp.crownlabs.polito.it"}, lease)), "get the lease")
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	w.until("it holds the lease", func(ctx context.Context) string { return unless(holder(ctx) != "", "nobody does") })
	first := holder(t.Context())
	own.replica(t, "mooring-1").start(t)
	stopped := make(chan error, 1)
	go func() { stopped <- leader.Stop(t.Context()) }()
	code, err := leader.Wait(t.Context())
	w.must(err, "wait for the leader's end")
	w.must(<-stopped, "stop the leader")
	if code != 0 {
		t.Errorf("it ended with %d:\n%s", code, leader.LogTail(20))
	}
	w.until("the other holds the lease", func(ctx context.Context) string {
		now := holder(ctx)
		return unless(now != "" && now != first, "held by "+now)
	})
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	w.isBound(w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o))
}
