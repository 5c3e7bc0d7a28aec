package integration_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// No leftover is ever bindable: whoever comes by a mirror volume otherwise than
// by a decision ends up with nothing.

// TestPresetVolumeName is the claim that names a volume of its choice, so that
// the binder would strip the claimRef's UID from a volume made for it.
func TestPresetVolumeName(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data")
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})

		// Before the volume is made: refused.
		claim := w.mirror(tenant, "before", o, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = w.prefix + "-mine" })
		w.isRefused(claim, mirror.ClaimNamesVolume)
		w.absent(mirrorVolume(claim))

		// After the volume is made and before the binder binds it, which the
		// binder is kept from here: the volume goes.
		late := w.mirror(tenant, "after", o)
		w.isRefused(late, mirror.NotShared)
		w.merge(late, `{"spec":{"volumeName":"`+w.prefix+`-mine"}}`)
		made := w.mirrorVolumeOf(late, o)
		w.must(w.Create(w.Context(), made), "create the volume made before")
		w.isGone(made)
		w.isRefused(late, mirror.ClaimNamesVolume)
		w.nobodyIsBoundTo(made.Name)
	})
}

// TestOwnVolumeName is the claim that names the very volume that would be made
// for it; it is served like any other, and not before it is granted.
func TestOwnVolumeName(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data")
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		w.isRefused(claim, mirror.NotShared)
		w.merge(claim, `{"spec":{"volumeName":"`+mirror.VolumeName(claim.UID)+`"}}`)
		w.isRefused(claim, mirror.NotShared)
		w.grantTo(o.PersistentVolumeClaim, tenantsOnly)
		w.isBound(claim)
	})
}

// TestNamesake is the claim that is created anew under the name of a mirror
// claim, without reference and with class "", to be bound to its volume.
func TestNamesake(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		claim := w.mirror(tenant, "m", o)
		volume := w.isBound(claim)
		// The volume outlives the claim for a while: somebody holds it.
		w.merge(volume, `{"metadata":{"finalizers":["example.com/held"]}}`)
		w.grantTo(o.PersistentVolumeClaim, "nobody=yes")
		w.must(w.Delete(w.Context(), claim), "delete the mirror")
		w.isGone(claim)
		namesake := w.claimOf(tenant, "m", "")
		w.must(w.Create(w.Context(), namesake), "create the namesake")
		w.isTerminating(volume)
		w.merge(volume, `{"metadata":{"finalizers":null}}`)
		w.isGone(volume)
		w.stillPending(namesake)
	})
}

// TestClearedClaimRef is somebody clearing the claimRef of a mirror volume whose
// claim is gone, so that any claim of its class could take it.
func TestClearedClaimRef(t *testing.T) {
	for name, patch := range map[string]string{
		"the whole claimRef": `{"spec":{"claimRef":null}}`,
		"its UID":            `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`,
		"another's name":     `{"spec":{"claimRef":{"uid":null,"name":"thief","resourceVersion":null}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			onEachGate(t, func(w *world) {
				o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
				tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
				claim := w.mirror(tenant, "m", o)
				volume := w.isBound(claim)
				thief := w.claimOf(tenant, "thief", class)
				thief.Spec.VolumeName = volume.Name
				w.must(w.Create(w.Context(), thief), "create the thief")
				w.merge(volume, `{"metadata":{"finalizers":["example.com/held"]}}`)
				w.must(w.Delete(w.Context(), claim), "delete the mirror")
				w.isGone(claim)
				w.isTerminating(volume)
				w.merge(volume, patch)
				w.merge(volume, `{"metadata":{"finalizers":null}}`)
				w.isGone(volume)
				w.stillPending(thief)
			})
		})
	}
}

// TestReleasedVolumeGoes clears the claimRef as fast as it can after the claim
// is gone, without holding the volume: a race that the thief must not win.
func TestReleasedVolumeGoes(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		for i := range 10 {
			claim := w.mirror(tenant, fmt.Sprintf("m%d", i), o)
			volume := w.isBound(claim)
			w.must(w.Delete(w.Context(), claim), "delete the mirror")
			w.isGone(claim)
			// Fails where the volume is gone already.
			_ = w.Patch(w.Context(), volume, jsonMerge(`{"spec":{"claimRef":null}}`))
			w.isGone(volume)
			w.nobodyIsBoundTo(volume.Name)
		}
	})
}

// TestClearedWhileAway clears the claimRef of mirror volumes, one bound and one
// Released, while no controller runs, and gives the binder all the time it
// wants: a claim of the class that was refused is still not bound to them, nor
// is one that asks for them by name.
func TestClearedWhileAway(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant, strangers := w.namespace("tenant", map[string]string{"type": "tenant"}), w.namespace("strangers", nil)
	bound, released := w.mirror(tenant, "bound", o), w.mirror(tenant, "released", o)
	volumes := []*corev1.PersistentVolume{w.isBound(bound), w.isBound(released)}
	refused := w.mirror(strangers, "refused", o)
	w.isRefused(refused, mirror.NotShared)
	w.must(controller.Kill(), "kill the controller")

	w.must(w.Delete(w.Context(), released), "delete a mirror")
	w.isGone(released)
	for _, volume := range volumes {
		w.merge(volume, `{"spec":{"claimRef":null}}`)
	}
	byName := w.claimOf(strangers, "by-name", class)
	byName.Spec.VolumeName = volumes[1].Name
	w.must(w.Create(w.Context(), byName), "create a claim that asks for the volume by name")
	w.until("the Released one is Available", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(volumes[1]), volumes[1]), "get the volume")
		return unless(volumes[1].Status.Phase == corev1.VolumeAvailable, string(volumes[1].Status.Phase))
	}, volumes[1])
	for _, claim := range []*corev1.PersistentVolumeClaim{refused, byName} {
		w.merge(claim, `{"metadata":{"labels":{"look":"again"}}}`) // the binder looks at it once more
		w.stillPending(claim)
	}
	w.must(controller.Start(t.Context()), "start the controller")
	w.isGone(volumes[1])
	w.stillPending(refused)
	w.stillPending(byName)
}

// TestSameText compares what a tenant can read for an origin that does not
// exist, one that is not shared, one whose grant is broken, and one that is
// being deleted without being shared: nothing tells them apart.
func TestSameText(t *testing.T) {
	onEachGate(t, func(w *world) {
		owner, tenant := w.namespace("owner", nil), w.namespace("tenant", nil)
		origins := map[string]origin{
			"absent":     {PersistentVolumeClaim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: owner, Name: "secret"}}},
			"not shared": w.origin(w.namespace("owner2", nil), "secret"),
			"broken":     w.origin(w.namespace("owner3", nil), "secret", granting("((")),
			"blank":      w.origin(w.namespace("owner4", nil), "secret", granting("")),
			"pending":    w.pendingOrigin(w.namespace("owner5", nil), "secret"),
			"others'":    w.origin(w.namespace("owner6", nil), "secret", granting(tenantsOnly)),
			"block":      w.origin(w.namespace("owner7", nil), "secret", inBlockMode),
		}
		for name, o := range origins {
			claim := w.mirror(tenant, "m-"+fmt.Sprint(len(name))+"-"+o.Namespace, o, ofSize("1Ti"))
			condition := w.isRefused(claim, mirror.NotShared)
			want := fmt.Sprintf("%s/secret does not exist or is not shared with namespace %s: ask its owner to share it", o.Namespace, tenant)
			if condition.Message != want {
				w.Errorf("%s: the tenant reads %q, want %q", name, condition.Message, want)
			}
			for _, event := range w.events(claim) {
				if event.Note != want {
					w.Errorf("%s: the tenant reads the event %q, want %q", name, event.Note, want)
				}
			}
		}
	})
}

// claimOf returns a claim that asks for no mirror.
func (w *world) claimOf(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        requesting("1"),
		},
	}
}

// mirrorVolumeOf returns the volume that Mooring would make for a claim.
func (w *world) mirrorVolumeOf(claim *corev1.PersistentVolumeClaim, o origin) *corev1.PersistentVolume {
	allowed := claim.DeepCopy()
	allowed.Spec.VolumeName = ""
	granted := o.PersistentVolumeClaim.DeepCopy()
	granting(tenantsOnly)(granted)
	decision := mirror.Decide(mirror.Facts{
		Claim: allowed, Class: w.chartClass(), NamespaceLabels: map[string]string{"type": "tenant"},
		Origin: granted, OriginVolume: o.volume,
	})
	if decision.Volume == nil {
		w.Fatalf("no volume would be made: %s", decision.Message)
	}
	return decision.Volume
}

// isTerminating waits until an object is being deleted.
func (w *world) isTerminating(volume *corev1.PersistentVolume) {
	w.Helper()
	w.until("volume being deleted", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
		if volume.DeletionTimestamp == nil {
			return "it is not"
		}
		return ""
	}, volume)
}

// stillPending makes the binder look at everything once more, by binding some
// other claim, and then expects a claim not to be bound.
func (w *world) stillPending(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	w.origin(w.namespace(fmt.Sprintf("barrier%d", worlds.Add(1)), nil), "barrier")
	w.must(w.Get(w.Context(), keyOf(claim), claim), "get the claim")
	if claim.Status.Phase == corev1.ClaimBound {
		w.Errorf("bound without a grant:\n%s", w.show(claim))
	}
}

func (w *world) nobodyIsBoundTo(volume string) {
	w.Helper()
	var claims corev1.PersistentVolumeClaimList
	w.must(w.List(w.Context(), &claims), "list claims")
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.VolumeName == volume && claim.Status.Phase == corev1.ClaimBound && mirror.VolumeName(claim.UID) != volume {
			w.Errorf("bound without a grant:\n%s", w.show(claim))
		}
	}
}
