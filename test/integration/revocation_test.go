package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// revocation is a mirror of each policy, of one origin, and what takes the grant
// from both.
type revocation struct {
	scene
	origin
	source           corev1.PersistentVolumeSource // of the origin that was mirrored
	class            *storagev1.StorageClass       // says Delete
	reported, doomed *corev1.PersistentVolumeClaim
	history          *history
}

// Classes delay by an hour until a test has seen what it waits for, and then by
// nothing: so nothing hangs on how fast a test runs.
const (
	never = "1h"
	soon  = "1s"
)

func (r *revocation) revokeAfter(delay string) {
	r.Helper()
	r.merge(r.class, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.RevokeAfter(), delay))
}

func deleting(delay string) edit[*storagev1.StorageClass] {
	return func(c *storagev1.StorageClass) {
		c.Annotations = map[string]string{names.OnRevoke(): "Delete", names.RevokeAfter(): delay}
	}
}

// annotate sets an annotation of the origin.
func (r *revocation) annotate(key, value string) {
	r.Helper()
	r.merge(r.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// remove removes an annotation of the origin.
func (r *revocation) remove(key string) {
	r.Helper()
	r.merge(r.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key))
}

// goAway lets the origin go although it has mirrors: by force.
func (r *revocation) goAway() {
	r.Helper()
	r.must(r.Delete(r.Context(), r.PersistentVolumeClaim), "delete the origin")
	r.until("the origin is gone", func(ctx context.Context) string {
		gone := &corev1.PersistentVolumeClaim{}
		if r.Get(ctx, keyOf(r.PersistentVolumeClaim), gone) != nil {
			return ""
		}
		_ = r.Patch(ctx, gone, jsonMerge(`{"metadata":{"finalizers":null}}`))
		return "it exists"
	})
	_ = r.Delete(r.Context(), r.volume)
	r.isGone(r.volume)
}

// comeBack creates an origin of the former one's name, with these data.
func (r *revocation) comeBack(source corev1.PersistentVolumeSource) {
	r.Helper()
	r.origin = r.originOf(r.owner, "data", func(v *corev1.PersistentVolume) {
		nfsCSI(v)
		if source.CSI != nil {
			v.Spec.PersistentVolumeSource = source
		}
	}, granting(tenantsOnly))
}

// revocationWorld is a plane whose controller may delete claims, and where no
// number of revocations is too many.
func revocationWorld(t *testing.T, options controlplane.Options) (*world, *installation, *history) {
	t.Helper()
	options.CrossNamespace = true
	plane := ownPlane(t, options)
	own := install(t, plane, chartOptions("mooring", map[string]any{"allowClaimDeletion": true, "maxRevocations": "100000"}))
	w := newWorld(t, plane, true)
	return w, own, w.watchHistory()
}

// TestRevocation takes grants away in every way there is, from a mirror whose
// class reports and from one whose class deletes.
func TestRevocation(t *testing.T) {
	t.Parallel()
	w, own, history := revocationWorld(t, controlplane.Options{})
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the controller's log ends:\n%s", controller.LogTail(30))
		}
	})
	t.Run("causes", func(t *testing.T) {
		for _, cause := range causes {
			if cause.grant != nil {
				t.Run(cause.name+"/granted again before the delay", func(t *testing.T) {
					t.Parallel()
					r := arrangeRevocation(w.in(t), history)
					r.isRevoked(cause)
					r.isWithdrawn(cause)
				})
			}
			t.Run(cause.name+"/not granted again before the delay", func(t *testing.T) {
				t.Parallel()
				r := arrangeRevocation(w.in(t), history)
				r.isRevoked(cause)
				r.isEnded(cause)
			})
		}
		t.Run("a read-only mirror stays", func(t *testing.T) {
			t.Parallel()
			arrangeRevocation(w.in(t), history).readOnlyStays()
		})
		for _, row := range reportsOnly {
			t.Run("reports only: "+row.name, func(t *testing.T) {
				t.Parallel()
				arrangeRevocation(w.in(t), history).isOnlyReported(row.change)
			})
		}
		t.Run("flapping", func(t *testing.T) {
			t.Parallel()
			arrangeRevocation(w.in(t), history).flap()
		})
	})
}

func arrangeRevocation(w *world, h *history) *revocation {
	w.Helper()
	r := &revocation{scene: scene{world: w, owner: w.namespace("owner", nil), tenant: w.namespace("tenant", map[string]string{"type": "tenant"})}, history: h}
	r.origin = r.scene.shared(nfsCSI)
	r.source = r.volume.Spec.PersistentVolumeSource
	report := w.class("report")
	r.class = w.class("delete", deleting(never))
	r.reported = w.mirror(r.tenant, "reported", r.origin, ofClass(report.Name))
	r.doomed = w.mirror(r.tenant, "doomed", r.origin, ofClass(r.class.Name))
	w.isBound(r.reported)
	w.isBound(r.doomed)
	return r
}

// both are the two mirrors.
func (r *revocation) both() []*corev1.PersistentVolumeClaim {
	return []*corev1.PersistentVolumeClaim{r.reported, r.doomed}
}

// isRevoked takes the grant away, and sees both sides told and the time
// recorded.
func (r *revocation) isRevoked(c cause) {
	r.Helper()
	began := time.Now()
	c.revoke(r)
	for _, claim := range r.both() {
		said := r.isSaid(claim, corev1.ConditionFalse, c.reason)
		r.isTold(claim, string(c.reason), said.Message)
		// The same words for an origin that is gone and for one that is not shared.
		wanted := fmt.Sprintf("%s/data does not exist any more or is not shared any more with namespace %s: ask its owner to share it", r.owner, r.tenant)
		if c.reason == mirror.NotShared && said.Message != wanted {
			r.Errorf("the asking side is told %q, want %q", said.Message, wanted)
		}
		if at := r.revokedAt(claim); at.Before(began.Add(-time.Millisecond)) || at.After(time.Now()) {
			r.Errorf("revoked at %v, which is not between %v and now", at, began)
		}
		if claim.Status.Phase != corev1.ClaimBound {
			r.Errorf("claim %s is %s", claim.Name, claim.Status.Phase)
		}
	}
	if c.why != "" {
		r.isTold(r.PersistentVolumeClaim, "AccessEnded", fmt.Sprintf("1 namespace lost access: %s (%s)", r.tenant, c.why))
	}
	if c.also != nil {
		c.also(r)
	}
}

// revokedAt waits until a mirror's volume says since when it is revoked.
func (w *world) revokedAt(claim *corev1.PersistentVolumeClaim) time.Time {
	w.Helper()
	volume, at := &corev1.PersistentVolume{ObjectMeta: metaNamed(claim.Spec.VolumeName)}, time.Time{}
	w.until("the volume of "+claim.Name+" says since when it is revoked", func(ctx context.Context) string {
		if err := w.Get(ctx, keyOf(volume), volume); err != nil {
			return err.Error()
		}
		var err error
		at, err = time.Parse(time.RFC3339Nano, volume.Annotations[names.RevokedAt()])
		if err != nil {
			return err.Error()
		}
		return ""
	}, volume)
	return at
}

// isWithdrawn grants again before the delay's end, and sees everything taken
// back, and the claims living past the delay.
func (r *revocation) isWithdrawn(c cause) {
	r.Helper()
	c.grant(r)
	for _, claim := range r.both() {
		said := r.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
		r.isNotMarked(claim)
		if c.reason != mirror.OriginReplaced && c.name != "origin gone" { // recorded anew, which is told
			r.isTold(claim, string(mirror.Mirrored), "the grant is there again: "+said.Message)
		} else {
			r.isTold(claim, "Rerecorded", "came back under another UID")
		}
	}
	r.delayPasses()
	for _, claim := range r.both() {
		r.lives(claim)
		r.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
		r.isNotMarked(claim)
	}
	if c.why != "" && c.reason != mirror.OriginReplaced {
		r.isTold(r.PersistentVolumeClaim, "AccessRegained", "1 namespace has again access: "+r.tenant) // 10 s after the last telling
	}
}

// isNotMarked waits until a mirror's volume does not say that it is revoked.
func (w *world) isNotMarked(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metaNamed(claim.Spec.VolumeName)}
	w.until("the volume is not marked as revoked", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(volume), volume), "get the mirror volume")
		return volume.Annotations[names.RevokedAt()]
	}, volume)
}

// delayPasses lets the delay end for every mirror of the scene's class: one more
// of that class, revoked last, is gone.
func (r *revocation) delayPasses() {
	r.Helper()
	other := r.scene.world.originOf(r.namespace("elsewhere", nil), "data", nfsCSI, granting(tenantsOnly))
	last := r.mirror(r.namespace("last", map[string]string{"type": "tenant"}), "last", other, ofClass(r.class.Name))
	r.isBound(last)
	r.merge(other.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, names.ReadWriteGrant()))
	r.isSaid(last, corev1.ConditionFalse, mirror.NotShared)
	r.revokedAt(last)
	r.revokeAfter(soon)
	r.isGone(last)
}

// lives checks that a claim is bound and nobody has begun to delete it.
func (w *world) lives(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	if err := w.Get(w.Context(), keyOf(claim), claim); err != nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound {
		w.Errorf("claim %s does not live (%v):\n%s", claim.Name, err, w.show(claim))
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metaNamed(claim.Spec.VolumeName)}
	if err := w.Get(w.Context(), keyOf(volume), volume); err != nil || volume.DeletionTimestamp != nil {
		w.Errorf("the volume of claim %s does not live (%v):\n%s", claim.Name, err, w.show(volume))
	}
}

// isEnded lets the delay end: the claim whose class deletes goes, not before its
// time, and its volume with it; the other one stays, and is as before once it is
// granted again.
func (r *revocation) isEnded(c cause) {
	r.Helper()
	volume := r.isBound(r.doomed)
	r.revokeAfter("2s")
	r.isGone(r.doomed)
	r.isGone(volume)
	r.history.endedInTime(r.world, r.doomed, 2*time.Second)
	r.isTold(r.doomed, "ClaimDeleted", "its class deletes claims 2s after that")
	r.lives(r.reported)
	r.isSaid(r.reported, corev1.ConditionFalse, c.reason)
	if c.grant != nil {
		c.grant(r)
		r.isSaid(r.reported, corev1.ConditionTrue, mirror.Mirrored)
		r.isNotMarked(r.reported)
		r.absent(volume)
	}
	r.must(r.Delete(r.Context(), r.reported), "delete the mirror that was reported")
	r.isGone(mirrorVolume(r.reported))
	if c.grant == nil {
		r.isGone(r.PersistentVolumeClaim) // nothing holds its deletion any more
		return
	}
	r.until("the origin has no finalizer", func(ctx context.Context) string {
		r.must(r.Get(ctx, keyOf(r.PersistentVolumeClaim), r.PersistentVolumeClaim), "get the origin")
		return unless(!slices.Contains(r.PersistentVolumeClaim.Finalizers, names.Finalizer()), "it has")
	}, r.PersistentVolumeClaim)
}

// isTold waits for an event about an object with this reason and text.
func (w *world) isTold(about *corev1.PersistentVolumeClaim, reason, text string) {
	w.Helper()
	w.until(fmt.Sprintf("an event %s about %s says %q", reason, about.Name, text), func(context.Context) string {
		for _, event := range w.events(about) {
			if event.Reason == reason && contains(event.Note, text) {
				return ""
			}
		}
		return "there is none"
	}, about)
}
