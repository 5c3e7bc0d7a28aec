package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/controller/cleanup"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

const (
	theLease = "mooring.pmp.crownlabs.polito.it"
	// leasePeriod is after how long a candidate takes a lease that nobody renews.
	leasePeriod      = 15 * time.Second
	foreignFinalizer = "example.com/kept"
)

// uninstaller is the chart's hook as it would run in its Pod: with its own
// account, its arguments and its environment.
type uninstaller struct {
	*chart.Hook
	kubeconfig string
}

func (w *world) uninstaller(options chart.Options) *uninstaller {
	w.Helper()
	if options.Values == nil {
		options.Values = map[string]any{}
	}
	options.Values["image"] = map[string]any{"repository": "registry.invalid/mooring-controller"}
	hook, err := chart.Cleanup(options)
	w.must(err, "render the hook")
	w.must(hook.Apply(w.Context(), w.plane.Admin()), "apply the hook")
	account := hook.Job.Spec.Template.Spec.ServiceAccountName
	keep(w.T, w.plane, account, hook.Objects)
	identity, err := w.plane.ServiceAccount(w.Context(), hook.Job.Namespace, account)
	w.must(err, "get the hook's identity")
	u := &uninstaller{Hook: hook, kubeconfig: filepath.Join(w.plane.Dir(), hook.Job.Namespace+"-"+account+".kubeconfig")}
	w.must(identity.WriteKubeconfig(u.kubeconfig), "write the hook's kubeconfig")
	return u
}

// run runs a cleanup to its end.
func (u *uninstaller) run(w *world, extraArgs ...string) (code int, stdout, stderr string) {
	w.Helper()
	binary, err := controllerBinary()
	w.must(err, "the controller's binary")
	var out, errOut bytes.Buffer
	command := exec.CommandContext(w.Context(), binary, append(append(u.Args(), "--kubeconfig="+u.kubeconfig), extraArgs...)...)
	command.Env = append(os.Environ(), u.Env()...)
	command.Stdout, command.Stderr = &out, &errOut
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("run the cleanup: %v", err)
	}
	w.Logf("the cleanup ended with %d\n%s%s", command.ProcessState.ExitCode(), errOut.String(), out.String())
	if strings.Contains(errOut.String(), "DATA RACE") {
		w.Errorf("the cleanup has a data race")
	}
	return command.ProcessState.ExitCode(), out.String(), errOut.String()
}

// succeed runs a cleanup that is to succeed, and returns its report.
func (u *uninstaller) succeed(w *world, extraArgs ...string) cleanup.Report {
	w.Helper()
	code, out, _ := u.run(w, append(extraArgs, "--output=json")...)
	var report cleanup.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
		w.Fatalf("the cleanup ended with %d; its report: %v", code, err)
	}
	return report
}

// fail runs a cleanup that is to end with this code, and to say this.
func (u *uninstaller) fail(w *world, code int, said string, extraArgs ...string) {
	w.Helper()
	got, out, errOut := u.run(w, extraArgs...)
	if got != code || out != "" || !strings.Contains(errOut, said) {
		w.Errorf("the cleanup ended with %d, and said %q; want %d, and %q", got, errOut, code, said)
	}
}

// held returns the claims that have Mooring's finalizer.
func (w *world) held(ctx context.Context) []string {
	w.Helper()
	var all corev1.PersistentVolumeClaimList
	w.must(w.List(ctx, &all), "list claims")
	var held []string
	for i := range all.Items {
		if slices.Contains(all.Items[i].Finalizers, names.Finalizer()) {
			held = append(held, keyOf(&all.Items[i]).String())
		}
	}
	return held
}

func (w *world) areHeld(n int) {
	w.Helper()
	w.until(fmt.Sprintf("%d claims have the finalizer", n), func(ctx context.Context) string {
		held := w.held(ctx)
		return unless(len(held) == n, fmt.Sprintf("%v have it", held))
	})
}

// noneIsHeldFor watches all claims for a time: none has or gets Mooring's
// finalizer. What would make a leader put it there is done meanwhile.
func (w *world) noneIsHeldFor(d time.Duration, meanwhile func()) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	c, err := client.NewWithWatch(w.plane.Admin(), client.Options{})
	w.must(err, "connect to the cluster")
	changes, err := c.Watch(ctx, &corev1.PersistentVolumeClaimList{}) // begins with what there is
	w.must(err, "watch claims")
	defer changes.Stop()
	meanwhile()
	seen := 0
	for {
		select {
		case change, open := <-changes.ResultChan():
			claim, isClaim := change.Object.(*corev1.PersistentVolumeClaim)
			if !open && ctx.Err() == nil || open && !isClaim {
				w.Fatalf("the watch ended: %+v", change)
			}
			if !open {
				continue // until the time is over
			}
			seen++
			if change.Type != watch.Deleted && slices.Contains(claim.Finalizers, names.Finalizer()) {
				w.Fatalf("a claim got Mooring's finalizer after the cleanup:\n%s", w.show(claim))
			}
		case <-ctx.Done():
			if seen == 0 {
				w.Error("the watch saw no claim at all")
			}
			return
		}
	}
}

func (w *world) lease() *coordinationv1.Lease {
	w.Helper()
	lease := &coordinationv1.Lease{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: chart.DefaultNamespace, Name: theLease}, lease), "get the lease")
	return lease
}

func (r *replica) leads(tb testing.TB) bool {
	tb.Helper()
	return strings.Contains(r.metrics(tb), `leader_election_master_status{name="`+theLease+`"} 1`)
}

// TestCleanup uninstalls while two replicas live and claims are being made:
// no finalizer of Mooring's is left, none comes back, and everything else is as
// it was. Once its lease is deleted, Mooring works again.
func TestCleanup(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	replicas := []*replica{own.replica(t, "mooring-0").start(t), own.replica(t, "mooring-1").start(t)}
	processes := []int{replicas[0].PID(), replicas[1].PID()}
	owner, tenant := w.namespace("owner", nil), w.namespace("tenant", map[string]string{"type": "tenant"})

	var origins []origin
	var mirrors []*corev1.PersistentVolumeClaim
	for i := range 5 {
		o := w.origin(owner, fmt.Sprintf("data%d", i), granting(tenantsOnly), withFinalizer(foreignFinalizer, i == 1))
		origins = append(origins, o)
		for j := range 3 {
			mirrors = append(mirrors, w.mirror(tenant, fmt.Sprintf("m%d-%d", i, j), o))
		}
	}
	for _, claim := range mirrors {
		w.isBound(claim)
	}
	w.areHeld(len(origins))
	leader := slices.IndexFunc(replicas, func(r *replica) bool { return r.leads(t) })
	deleted := origins[4]
	w.must(w.Delete(w.Context(), deleted.PersistentVolumeClaim), "delete an origin")

	// Claims are being made before, while and after the lease is taken.
	hook := w.uninstaller(chart.Options{})
	stopMaking := w.keepMaking(tenant, origins[0])
	report := hook.succeed(w)
	if made, bound := stopMaking(); made < 20 || bound == 0 || bound == made {
		t.Errorf("%d claims were made, of which %d were served: the cleanup was not between them", made, bound)
	}

	if held := w.held(t.Context()); len(held) > 0 {
		t.Fatalf("after the cleanup these claims have the finalizer: %v", held)
	}
	if report.Removed < len(origins) || report.Deleting != 1 || report.Mirrors.Count < len(mirrors) || len(report.Mirrors.NotRetain) > 0 {
		t.Errorf("the report says %+v", report)
	}
	if report.Mirrors.Count != w.mirrorVolumes(t.Context()) {
		t.Errorf("the report says %d mirror volumes, there are %d", report.Mirrors.Count, w.mirrorVolumes(t.Context()))
	}
	lease := w.lease()
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); !cleanup.IsCleanup(holder) || *lease.Spec.LeaseDurationSeconds != 3600 ||
		report.Lease != keyOf(lease).String() {
		t.Errorf("the lease %s is held by %q for %d s", report.Lease, holder, *lease.Spec.LeaseDurationSeconds)
	}
	w.isGone(deleted.PersistentVolumeClaim)

	// The replicas live on, with work to do, and do none of it.
	var late *corev1.PersistentVolumeClaim
	w.noneIsHeldFor(2*leasePeriod, func() {
		late = w.mirror(tenant, "late", origins[2])
		w.grantTo(origins[3].PersistentVolumeClaim, "type in (tenant, other)")
	})
	for i, r := range replicas {
		log, err := os.ReadFile(r.LogFile())
		w.must(err, "read a replica's log")
		if i == leader && !strings.Contains(string(log), "a cleanup holds the lease") {
			t.Errorf("the former leader does not say why it stands by:\n%s", r.LogTail(10))
		}
		if r.PID() != processes[i] || r.leads(t) {
			t.Errorf("replica %d: its process was %d and is %d; it leads: %v", i, processes[i], r.PID(), r.leads(t))
		}
	}
	w.must(w.Get(t.Context(), keyOf(late), late), "get the late claim")
	if late.Status.Phase != corev1.ClaimPending {
		t.Errorf("a claim was served after the cleanup:\n%s", w.show(late))
	}
	w.stayAsTheyWere(origins[:4], mirrors)

	// Started again.
	w.must(w.Delete(t.Context(), lease), "delete the lease")
	w.isBound(late)
	w.areHeld(4)
	for _, r := range replicas {
		noRaces(t, r.LogFile())
	}
}

// keepMaking makes mirror claims of an origin, ten a second, until it is told to
// stop; it returns how many it made, and how many were bound.
func (w *world) keepMaking(namespace string, o origin) (stop func() (made, bound int)) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	made := 0
	var making sync.WaitGroup
	making.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil; <-tick.C {
			if err := w.Create(w.Context(), w.mirrorClaim(namespace, fmt.Sprintf("making%d", made), o)); err != nil {
				w.Errorf("make a claim: %v", err)
				return
			}
			made++
		}
	})
	return func() (int, int) {
		cancel()
		making.Wait()
		bound := 0
		for i := range made {
			claim := &corev1.PersistentVolumeClaim{}
			w.must(w.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("making%d", i)}, claim), "get a claim")
			if claim.Spec.VolumeName != "" {
				bound++
			}
		}
		return made, bound
	}
}

func withFinalizer(finalizer string, really bool) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) {
		if really {
			claim.Finalizers = append(claim.Finalizers, finalizer)
		}
	}
}

// stayAsTheyWere checks what a cleanup must not touch.
func (w *world) stayAsTheyWere(origins []origin, mirrors []*corev1.PersistentVolumeClaim) {
	w.Helper()
	for i, o := range origins {
		w.must(w.Get(w.Context(), keyOf(o), o.PersistentVolumeClaim), "get an origin")
		if slices.Contains(o.Finalizers, foreignFinalizer) != (i == 1) || !slices.Contains(o.Finalizers, "kubernetes.io/pvc-protection") ||
			o.DeletionTimestamp != nil || o.Annotations[names.ReadWriteGrant()] == "" {
			w.Errorf("an origin is not as it was:\n%s", w.show(o.PersistentVolumeClaim))
		}
	}
	for _, claim := range mirrors {
		volume := w.isBound(claim)
		if volume.Status.Phase != corev1.VolumeBound || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain ||
			!mirror.RecordOf(names, volume).IsMirror() {
			w.Errorf("a mirror volume is not as it was:\n%s", w.show(volume))
		}
	}
}

// TestCleanupIsInterrupted lets a cleanup run out of time while it waits for
// the former leader: Mooring goes on as if it had not been.
func TestCleanupIsInterrupted(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
	w.isBound(w.mirror(tenant, "before", o))
	w.uninstaller(chart.Options{}).fail(w, 1, "the cleanup is not complete: not done within --timeout 2s: repeat it", "--timeout=2s")
	w.areHeld(1)
	w.until("the replica leads again", func(context.Context) string {
		holder := ptr.Deref(w.lease().Spec.HolderIdentity, "")
		return unless(!cleanup.IsCleanup(holder), "the lease is held by "+holder)
	}, w.lease())
	w.isBound(w.mirror(tenant, "after", o))
	w.areHeld(1)
}

// TestCleanupRefuses has a replica that elects no leader, and another instance
// beside it: nothing is promised that cannot be kept.
func TestCleanupRefuses(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t, controlplane.Options{CrossNamespace: true})
	w := newWorld(t, plane, true)
	alone := chart.Options{Values: map[string]any{"leaderElect": false, "replicas": 1}}
	own := install(t, plane, alone)
	only := own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
	w.isBound(claim)
	w.areHeld(1)

	// 1. A Pod runs that no lease stops.
	hook := w.uninstaller(alone)
	hook.fail(w, 2, "scale its Deployment to zero, and say so with --stopped")
	w.areHeld(1)
	// 2. Somebody says that it is stopped, which is not true.
	hook.fail(w, 1, "got the finalizer "+names.Finalizer()+" back after it was removed", "--stopped")
	w.areHeld(1)
	// 3. Another release of the same provisioner name is uninstalled.
	other := chart.Options{ReleaseName: "staging", Namespace: "mooring-staging", Values: map[string]any{"class": map[string]any{"create": false}}}
	install(t, plane, other)
	w.uninstaller(other).fail(w, 1, "served by other instances (mooring-system/mooring)")
	w.areHeld(1)
	// 4. The Pod is stopped in truth.
	w.must(only.Stop(t.Context()), "stop the controller")
	report := hook.succeed(w, "--stopped")
	if held := w.held(t.Context()); len(held) > 0 || report.Removed != 1 || report.Mirrors.Count != 1 || report.Lease != "" {
		t.Errorf("held: %v; the report says %+v", held, report)
	}
	w.isBound(claim)
	// 5. The other release goes, as the last one: no Pod of it ever led.
	other.Values = map[string]any{"class": map[string]any{"create": false}, "cleanup": map[string]any{"allInstances": true}}
	if report := w.uninstaller(other).succeed(w); report.Removed != 0 || report.Lease == "" {
		t.Errorf("the report of the other release says %+v", report)
	}
}
