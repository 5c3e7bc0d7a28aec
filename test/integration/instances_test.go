package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// The two instances, as they are recorded, and the label by which namespaces
// are theirs: of one, of two, or of both.
const (
	one    = "one-system/one"
	two    = "two-system/two"
	served = "served"
)

// instances are two installations of one provisioner name in one cluster.
type instances struct {
	*world
	replicas map[string]*replica

	mutex  sync.Mutex
	chairs map[string][]string // by volume, who looked after it, in order
}

func startInstances(t *testing.T) *instances {
	t.Helper()
	i := &instances{
		world:    newWorld(t, ownPlane(t, controlplane.Options{CrossNamespace: true}), true),
		replicas: map[string]*replica{}, chairs: map[string][]string{},
	}
	for _, name := range []string{"one", "two"} {
		own := install(t, i.plane, chartOptions(name, map[string]any{
			"namespaceSelector":  fmt.Sprintf("%s in (%s, both)", served, name),
			"class":              map[string]any{"create": name == "one"},
			"allowClaimDeletion": true,
			"maxRevocations":     "1000",
		}))
		i.replicas[name] = own.replica(t, name, "--leader-elect=false").start(t)
	}
	connection, err := client.NewWithWatch(i.plane.Admin(), client.Options{})
	i.must(err, "connect with watches")
	watching, err := connection.Watch(t.Context(), &corev1.PersistentVolumeList{})
	i.must(err, "watch volumes")
	go i.follow(watching)
	return i
}

func (i *instances) follow(watching watch.Interface) {
	for event := range watching.ResultChan() {
		volume, ok := event.Object.(*corev1.PersistentVolume)
		if !ok {
			continue
		}
		i.mutex.Lock()
		by, chairs := mirror.RecordOf(names, volume).ServedBy, i.chairs[volume.Name]
		if by != "" && (len(chairs) == 0 || chairs[len(chairs)-1] != by) {
			i.chairs[volume.Name] = append(chairs, by)
		}
		i.mutex.Unlock()
	}
}

func (i *instances) history(volume string) []string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Clone(i.chairs[volume])
}

// hand gives a namespace to an instance, to both, or, with "-", to none.
func (w *world) hand(namespace, to string) { w.label(namespace, served, to) }

// isServedBy waits until an instance looks after a mirror.
func (w *world) isServedBy(volume *corev1.PersistentVolume, instance string) {
	w.Helper()
	w.until("served by "+instance, func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(volume), volume), "get the mirror volume")
		by := mirror.RecordOf(names, volume).ServedBy
		return unless(by == instance, "it is served by "+by)
	}, volume)
}

// handovers are to whom a namespace of one's is given in turn, and who looks
// after its mirrors then: who is given nothing more keeps what it has.
var handovers = []struct{ to, by string }{
	{"two", two}, {"one", one}, {"-", one}, {"two", two}, {"-", two}, {"one", one},
}

// TestInstances hands namespaces from one instance to the other, back, and to
// nobody, with grants that end before, with, and after it.
func TestInstances(t *testing.T) {
	t.Parallel()
	i := startInstances(t)
	// A group, so that the instances run until the last of its tests has ended.
	t.Run("alive", func(t *testing.T) {
		for moment, hand := range map[string]func(w *world, namespace, to string, end func()){
			"the grant ends before": func(w *world, namespace, to string, end func()) { end(); w.hand(namespace, to) },
			"the grant ends after":  func(w *world, namespace, to string, end func()) { w.hand(namespace, to); end() },
		} {
			t.Run(moment, func(t *testing.T) {
				t.Parallel()
				i.isHandedOver(i.in(t), hand)
			})
			t.Run(moment+", and the claim is to be deleted", func(t *testing.T) {
				t.Parallel()
				i.isDeletedByEither(i.in(t), hand)
			})
		}
		t.Run("both select one namespace", func(t *testing.T) {
			t.Parallel()
			i.isNotFoughtOver(i.in(t))
		})
	})
	t.Run("one is dead", func(t *testing.T) { i.deadIsSucceeded(i.in(t)) })
	t.Run("a volume that is not bound yet", func(t *testing.T) { i.unboundIsWithdrawn(i.in(t)) })
}

// isHandedOver follows one mirror through all handovers.
func (i *instances) isHandedOver(w *world, hand func(w *world, namespace, to string, end func())) {
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant", served: "one"})
	claim := w.mirror(tenant, "m", o)
	volume := w.isBound(claim)
	want := []string{one}
	for step, handover := range handovers {
		hand(w, tenant, handover.to, func() { w.grantTo(o.PersistentVolumeClaim, "nobody=yes") })
		w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		w.isServedBy(volume, handover.by)
		w.grantTo(o.PersistentVolumeClaim, fmt.Sprintf("type in (tenant, x%d)", step))
		w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
		w.until("nothing is left of the revocation", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(volume), volume), "get the mirror volume")
			return unless(mirror.RecordOf(names, volume).RevokedAt.IsZero(), "it is recorded")
		}, volume)
		if want[len(want)-1] != handover.by {
			want = append(want, handover.by)
		}
	}
	w.until("it changed hands once for each change", func(context.Context) string {
		got := i.history(volume.Name)
		return unless(slices.Equal(got, want), fmt.Sprintf("it was looked after by %v, want %v", got, want))
	}, volume)
}

// isDeletedByEither ends the grant of a mirror that is to be deleted then, at
// each handover: whoever has it by then does it.
func (i *instances) isDeletedByEither(w *world, hand func(w *world, namespace, to string, end func())) {
	ended := w.class("deleting", deleting("1s"))
	owner := w.namespace("owner", nil)
	from := "one"
	for step, handover := range handovers {
		o := w.origin(owner, fmt.Sprintf("data%d", step), granting(tenantsOnly))
		tenant := w.namespace(fmt.Sprintf("tenant%d", step), map[string]string{"type": "tenant", served: strings.TrimPrefix(from, "-")})
		if from == "-" {
			w.hand(tenant, handovers[step-2].to) // made by who had it before it was nobody's
		}
		claim := w.mirror(tenant, "m", o, ofClass(ended.Name))
		volume := w.isBound(claim)
		w.hand(tenant, from)
		hand(w, tenant, handover.to, func() { w.grantTo(o.PersistentVolumeClaim, "nobody=yes") })
		w.isGone(claim)
		w.isGone(volume)
		w.isLetGo(o.PersistentVolumeClaim)
		from = handover.to
	}
}

// isNotFoughtOver lets both instances select a namespace: a mirror may go from
// the one that made it to the other, and not back.
func (i *instances) isNotFoughtOver(w *world) {
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant", served: "both"})
	claim := w.mirror(tenant, "m", o)
	volume := w.isBound(claim)
	for step := range 10 {
		w.grantTo(o.PersistentVolumeClaim, "nobody=yes")
		w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		w.grantTo(o.PersistentVolumeClaim, fmt.Sprintf("type in (tenant, x%d)", step))
		w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
	}
	if got := i.history(volume.Name); len(got) > 2 {
		w.Errorf("the mirror changed hands without end: %v", got)
	}
	// Who has it by then may lose it: the other one takes it, and only once.
	before := i.history(volume.Name)
	last := before[len(before)-1]
	other := map[string]string{one: "two", two: "one"}[last]
	w.hand(tenant, other)
	w.isServedBy(volume, map[string]string{"one": one, "two": two}[other])
	w.hand(tenant, "both")
	w.grantTo(o.PersistentVolumeClaim, "nobody=yes")
	w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
	w.origin(w.namespace("barrier", nil), "barrier")
	if got := i.history(volume.Name); len(got) > len(before)+2 {
		w.Errorf("the mirror changed hands without end: %v", got)
	}
}

// deadIsSucceeded kills an instance: its mirrors are counted as nobody's until
// the other instance selects their namespace, and then looked after by that.
func (i *instances) deadIsSucceeded(w *world) {
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant", served: "one"})
	claim := w.mirror(tenant, "m", o)
	volume := w.isBound(claim)
	w.must(i.replicas["one"].Kill(), "kill an instance")
	w.grantTo(o.PersistentVolumeClaim, "nobody=yes") // which nobody tells
	w.until("the other counts it", func(context.Context) string {
		return unless(strings.Contains(i.replicas["two"].metrics(w.T), fmt.Sprintf("mooring_mirrors_served{selected=\"false\",served_by=%q}", one)), "it does not")
	}, volume)
	if conditionOf(claim).Type != "" {
		w.Errorf("somebody told of a mirror that nobody looks after:\n%s", w.show(claim))
	}
	w.hand(tenant, "two")
	w.isServedBy(volume, two)
	w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
	w.until("it counts it as its own", func(context.Context) string {
		return unless(strings.Contains(i.replicas["two"].metrics(w.T), fmt.Sprintf("mooring_mirrors_served{selected=\"true\",served_by=%q}", two)), "it does not")
	}, volume)
	w.must(i.replicas["one"].Start(context.Background()), "start the instance again")
	w.grantTo(o.PersistentVolumeClaim, tenantsOnly)
	w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
	if got := i.history(volume.Name); !slices.Equal(got, []string{one, two}) {
		w.Errorf("it was looked after by %v", got)
	}
}

// unboundIsWithdrawn takes label and grant from a namespace between a volume and
// its binding, from which the binder is kept: who made the volume takes it back.
func (i *instances) unboundIsWithdrawn(w *world) {
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	w.must(w.plane.ControllerManager().Kill(), "stop the binder")
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, to := range []string{"null", `"two"`} {
		tenant := w.namespace("tenant"+strings.Trim(to, `"`), map[string]string{"type": "tenant", served: "one"})
		claims[to] = w.mirror(tenant, "m", o)
		made := mirrorVolume(claims[to])
		w.until("the volume is made", func(ctx context.Context) string {
			return unless(w.Get(ctx, keyOf(made), made) == nil, "it is not")
		}, claims[to])
		namespace := &corev1.Namespace{ObjectMeta: metaNamed(tenant)}
		w.merge(namespace, fmt.Sprintf(`{"metadata":{"labels":{"type":null,%q:%s}}}`, served, to))
		w.until("the volume is being deleted", func(ctx context.Context) string {
			err := w.Get(ctx, keyOf(made), made)
			return unless(apierrors.IsNotFound(err) || made.DeletionTimestamp != nil, "it is not")
		}, made, claims[to])
	}
	w.must(w.plane.ControllerManager().Start(w.Context()), "start the binder")
	for _, claim := range claims {
		w.isGone(mirrorVolume(claim))
		w.stillPending(claim)
		w.label(claim.Namespace, "type", "tenant")
		w.hand(claim.Namespace, "two")
		w.isServedBy(w.isBound(claim), two)
	}
}
