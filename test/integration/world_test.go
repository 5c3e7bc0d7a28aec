package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// patience is how long a test waits for what should take a moment. It only
// matters when something is wrong.
const patience = 120 * time.Second

var names mooringapi.Names // the default provisioner name

// sharedWorld is a plane with a controller for all tests of the package.
type sharedWorld struct {
	gate  string
	plane *controlplane.Shared

	once    sync.Once
	install *installation
	replica *replica
}

func (s *sharedWorld) world(t *testing.T) *world {
	t.Helper()
	plane := s.plane.ForTest(t)
	s.once.Do(func() {
		s.install = install(t, plane, sharedOptions(t))
		s.replica = s.install.replica(t, "mooring-0")
		noError(t, s.replica.Start(context.Background()), "start the controller")
	})
	if s.replica == nil || s.replica.PID() == 0 {
		t.Fatal("the shared controller does not run")
	}
	t.Cleanup(func() {
		noRaces(t, s.replica.LogFile())
		if t.Failed() {
			t.Logf("the controller's log ends:\n%s", s.replica.LogTail(30))
		}
	})
	w := newWorld(t, plane, s.plane.Options.CrossNamespace)
	w.replica = s.replica
	return w
}

// world is what a test acts in: a cluster seen as its administrator, and
// namespaces that no other test has.
type world struct {
	*testing.T
	client.Client
	plane   *controlplane.ControlPlane
	gateOn  bool
	prefix  string
	replica *replica // the shared controller, if there is one
}

var worlds atomic.Int64

func newWorld(t *testing.T, plane *controlplane.ControlPlane, gateOn bool) *world {
	t.Helper()
	c, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	return &world{T: t, Client: c, plane: plane, gateOn: gateOn, prefix: fmt.Sprintf("t%d-%d", worlds.Add(1), time.Now().UnixMilli()%100000)}
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	sub := newWorld(t, w.plane, w.gateOn)
	sub.replica = w.replica
	return sub
}

func (w *world) must(err error, what string, args ...any) {
	w.Helper()
	noError(w.T, err, what, args...)
}

func noError(tb testing.TB, err error, what string, args ...any) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// until waits until a condition says "", and fails with what it said last and
// with the objects as they are.
func (w *world) until(what string, condition func(ctx context.Context) string, objects ...client.Object) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		w.Fatalf("%s: not within %v: %s\n%s", what, patience, last, w.show(objects...))
	}
}

// show returns objects as they are in the cluster, with their events.
func (w *world) show(objects ...client.Object) string {
	var text strings.Builder
	for _, object := range objects {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			fmt.Fprintf(&text, "---\n%T %s: %v\n", object, client.ObjectKeyFromObject(object), err)
			continue
		}
		object.SetManagedFields(nil)
		manifest, err := yaml.Marshal(object)
		fmt.Fprintf(&text, "---\n# %T\n%s", object, manifest)
		if err != nil {
			fmt.Fprintln(&text, err)
		}
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			for _, event := range w.events(claim) {
				fmt.Fprintf(&text, "# event %s %s: %s\n", event.Type, event.Reason, event.Note)
			}
		}
	}
	return text.String()
}

// events returns Mooring's events about a claim.
func (w *world) events(claim *corev1.PersistentVolumeClaim) []eventsv1.Event {
	var all eventsv1.EventList
	if err := w.List(context.Background(), &all, client.InNamespace(claim.Namespace)); err != nil {
		w.Errorf("list events: %v", err)
	}
	var about []eventsv1.Event
	for _, event := range all.Items {
		if event.Regarding.UID == claim.UID && event.ReportingController == "mooring-controller" {
			about = append(about, event)
		}
	}
	return about
}

// isBound waits until a claim is bound to its own mirror volume, and returns
// that volume.
func (w *world) isBound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	w.Helper()
	w.until("claim "+claim.Name+" bound", func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return "its phase is " + string(claim.Status.Phase)
		}
		return ""
	}, claim)
	if want := mirror.VolumeName(claim.UID); claim.Spec.VolumeName != want {
		w.Fatalf("claim %s is bound to %s, not to its own mirror volume %s", claim.Name, claim.Spec.VolumeName, want)
	}
	volume := &corev1.PersistentVolume{}
	w.must(w.Get(w.Context(), types.NamespacedName{Name: claim.Spec.VolumeName}, volume), "get the mirror volume")
	return volume
}

// isSaid waits until the condition of a claim has this reason, and returns it.
func (w *world) isSaid(claim *corev1.PersistentVolumeClaim, status corev1.ConditionStatus, reason mirror.Reason) corev1.PersistentVolumeClaimCondition {
	w.Helper()
	var found corev1.PersistentVolumeClaimCondition
	w.until(fmt.Sprintf("claim %s has the condition %s %s", claim.Name, status, reason), func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		found = conditionOf(claim)
		if found.Status != status || found.Reason != string(reason) {
			return fmt.Sprintf("its condition is %q %q: %s", found.Status, found.Reason, found.Message)
		}
		return ""
	}, claim)
	return found
}

// isRefused waits until a claim is refused for this reason: by condition, and
// by an event that says the same, and without a volume.
func (w *world) isRefused(claim *corev1.PersistentVolumeClaim, reason mirror.Reason) corev1.PersistentVolumeClaimCondition {
	w.Helper()
	condition := w.isSaid(claim, corev1.ConditionFalse, reason)
	w.until("an event says so", func(context.Context) string {
		for _, event := range w.events(claim) {
			if event.Reason == string(reason) && event.Note == condition.Message {
				return ""
			}
		}
		return "no event has reason " + string(reason) + " and the condition's text"
	}, claim)
	if claim.Status.Phase == corev1.ClaimBound {
		w.Errorf("claim %s is refused (%s) and bound", claim.Name, reason)
	}
	return condition
}

func conditionOf(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimCondition {
	for _, condition := range claim.Status.Conditions {
		if string(condition.Type) == names.Condition() {
			return condition
		}
	}
	return corev1.PersistentVolumeClaimCondition{}
}

// isGone waits until an object is no more.
func (w *world) isGone(object client.Object) {
	w.Helper()
	w.until(fmt.Sprintf("%T %s gone", object, object.GetName()), func(ctx context.Context) string {
		err := w.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		default:
			return "it exists"
		}
	}, object)
}
