package integration_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// grow lets an origin grow as a resizer does: its volume, then its claim.
func (w *world) grow(o origin, size string) {
	w.Helper()
	w.merge(o.volume, fmt.Sprintf(`{"spec":{"capacity":{"storage":%q}}}`, size))
	w.must(w.Status().Patch(w.Context(), o.PersistentVolumeClaim, jsonMerge(fmt.Sprintf(`{"status":{"capacity":{"storage":%q}}}`, size))), "write the origin's size")
}

// hasSize waits until a mirror claim and its volume have a size.
func (w *world) hasSize(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, size string) {
	w.Helper()
	want := resource.MustParse(size)
	w.until("claim and volume have "+size, func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(claim), claim), "get the claim")
		w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
		ofClaim, ofVolume := claim.Status.Capacity.Storage(), volume.Spec.Capacity.Storage()
		return unless(ofClaim.Equal(want) && ofVolume.Equal(want), fmt.Sprintf("the claim has %s, the volume %s", ofClaim, ofVolume))
	}, claim, volume)
}

// sizes are the sizes of a claim and its volume as they changed, in the order of
// the cluster's history.
type sizes struct {
	changes []sizeChange
	stop    func()
	done    chan struct{}
}

type sizeChange struct {
	at       int64
	ofVolume bool
	size     resource.Quantity
}

// watchSizes records how the sizes of a claim and its volume change from now on.
func (w *world) watchSizes(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *sizes {
	w.Helper()
	connection, err := client.NewWithWatch(w.plane.Admin(), client.Options{})
	w.must(err, "connect with watches")
	claims, err := connection.Watch(w.Context(), &corev1.PersistentVolumeClaimList{}, client.InNamespace(claim.Namespace), client.MatchingFields{"metadata.name": claim.Name})
	w.must(err, "watch the claim")
	volumes, err := connection.Watch(w.Context(), &corev1.PersistentVolumeList{}, client.MatchingFields{"metadata.name": volume.Name})
	w.must(err, "watch the volume")
	s := &sizes{done: make(chan struct{}), stop: func() { claims.Stop(); volumes.Stop() }}
	go func() {
		defer close(s.done)
		fromClaims, fromVolumes := claims.ResultChan(), volumes.ResultChan()
		for fromClaims != nil || fromVolumes != nil {
			select {
			case event, open := <-fromClaims:
				if !open {
					fromClaims = nil
				} else if seen, ok := event.Object.(*corev1.PersistentVolumeClaim); ok {
					s.add(seen.ResourceVersion, false, seen.Status.Capacity.Storage())
				}
			case event, open := <-fromVolumes:
				if !open {
					fromVolumes = nil
				} else if seen, ok := event.Object.(*corev1.PersistentVolume); ok {
					s.add(seen.ResourceVersion, true, seen.Spec.Capacity.Storage())
				}
			}
		}
	}()
	return s
}

func (s *sizes) add(version string, ofVolume bool, size *resource.Quantity) {
	at, _ := strconv.ParseInt(version, 10, 64)
	s.changes = append(s.changes, sizeChange{at, ofVolume, size.DeepCopy()})
}

// neverAbove ends the record and checks that the volume was never larger than
// the claim; it returns the history for people.
func (s *sizes) neverAbove(w *world) string {
	w.Helper()
	s.stop()
	<-s.done
	slices.SortStableFunc(s.changes, func(a, b sizeChange) int { return cmp.Compare(a.at, b.at) })
	var ofClaim, ofVolume resource.Quantity
	var history []string
	for _, change := range s.changes {
		if change.ofVolume {
			ofVolume = change.size
		} else {
			ofClaim = change.size
		}
		history = append(history, fmt.Sprintf("claim %s volume %s", &ofClaim, &ofVolume))
		if !ofClaim.IsZero() && ofVolume.Cmp(ofClaim) > 0 {
			w.Errorf("the volume was larger than the claim: %v", history)
		}
	}
	return strings.Join(slices.Compact(history), ", ")
}

// TestGrowth lets an origin grow twice: the mirror claim shows it, then its
// volume, never the other way round; the condition and those of others stay, and
// what is said later does not take the size away.
func TestGrowth(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data")
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		w.isRefused(claim, mirror.NotShared)
		w.grantTo(o.PersistentVolumeClaim, tenantsOnly)
		volume := w.isBound(claim)
		w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
		w.must(w.Status().Patch(w.Context(), claim, client.RawPatch("application/strategic-merge-patch+json",
			[]byte(`{"status":{"conditions":[{"type":"example.com/Theirs","status":"True"}]}}`))), "write somebody else's condition")
		theirs := func() {
			w.Helper()
			if !slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == "example.com/Theirs" }) {
				w.Errorf("somebody else's condition is gone:\n%s", w.show(claim))
			}
		}
		watched := w.watchSizes(claim, volume)
		for _, size := range []string{"20Gi", "30Gi"} {
			w.grow(o, size)
			w.hasSize(claim, volume, size)
			w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
			theirs()
		}
		w.Logf("the origin grew twice: %s", watched.neverAbove(w))
		w.ownsSize(claim)

		// What is said afterwards leaves the size, and the size what is said.
		w.grantTo(o.PersistentVolumeClaim, "nobody=yes")
		w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		w.hasSize(claim, volume, "30Gi")
		w.grow(o, "40Gi")
		w.hasSize(claim, volume, "40Gi")
		w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
		theirs()
	})
}

// ownsSize checks that the size was written by a field manager of its own.
func (w *world) ownsSize(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	for _, entry := range claim.ManagedFields {
		own := entry.Manager == "mooring-controller-size/"+names.Provisioner() && entry.Subresource == "status"
		if own && entry.FieldsV1 != nil && contains(entry.FieldsV1.GetRawString(), `"f:capacity"`) && !contains(entry.FieldsV1.GetRawString(), `"f:conditions"`) {
			return
		}
	}
	w.Errorf("the size has no field manager of its own: %+v", claim.ManagedFields)
}

// TestGrowthOfTwoInstallations has mirrors of one origin by two installations of
// different names: both follow, and neither writes what the other's are, nor
// takes for its own what has lost its record.
func TestGrowthOfTwoInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gateOn.plane.ForTest(t), true)
	release := w.prefix + "-grow"
	other := release + ".example.com"
	install(t, w.plane, chartOptions(release, map[string]any{
		"provisionerName": other,
		"class":           map[string]any{"name": release},
	})).replica(t, release+"-0").start(t)
	shared := gateOn.world(t)
	o := shared.origin(w.namespace("owner", nil), "data", granting(tenantsOnly), annotating(other+"/required-target-ns-labels", tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
	claims := []*corev1.PersistentVolumeClaim{w.mirror(tenant, "one", o), w.mirror(tenant, "two", o, ofClass(release))}
	volumes := []*corev1.PersistentVolume{w.isBound(claims[0]), w.isBound(claims[1])}
	for _, size := range []string{"20Gi", "30Gi"} {
		w.grow(o, size)
		for i := range claims {
			w.hasSize(claims[i], volumes[i], size)
		}
	}
	var written []string
	for i := range claims {
		managers := ""
		for _, entry := range claims[i].ManagedFields {
			if contains(entry.Manager, "mooring-controller") {
				managers += entry.Manager + " "
			}
		}
		written = append(written, managers)
	}
	if contains(written[0], other) || contains(written[1], names.Provisioner()) {
		t.Errorf("one wrote the other's claim: %v", written)
	}
	shared.barrier(o)
	for _, volume := range volumes {
		before := volume.DeepCopy()
		w.must(w.Get(w.Context(), keyOf(volume), volume), "get a volume")
		if volume.ResourceVersion != before.ResourceVersion {
			t.Errorf("written again and again:\n%s", w.show(volume))
		}
		w.merge(volume, `{"metadata":{"annotations":null,"labels":null}}`)
		w.until("it is put back", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(volume), volume), "get a volume")
			return gocmp.Diff(withoutServerFields(before.DeepCopy()), withoutServerFields(volume.DeepCopy()))
		}, volume)
	}
}
