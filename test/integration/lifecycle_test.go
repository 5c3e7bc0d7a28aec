package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func chartOptions(release string, values map[string]any) chart.Options {
	return chart.Options{ReleaseName: release, Namespace: release + "-system", Values: values}
}

// TestMirrorVolume looks at the volume that a granted claim gets, field by field.
func TestMirrorVolume(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		claim := w.mirror(tenant, "m", o)
		volume := w.isBound(claim)

		if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			w.Errorf("its policy is %s", volume.Spec.PersistentVolumeReclaimPolicy)
		}
		wantRecord := map[string]string{
			mooringapi.ProvisionedBy: names.Provisioner(),
			names.MirrorClaim():      tenant + "/m",
			names.MirrorClaimUID():   string(claim.UID),
			names.OriginClaim():      o.Namespace + "/data",
			names.OriginClaimUID():   string(o.UID),
			names.OriginVolume():     o.volume.Name,
			names.OriginVolumeUID():  string(o.volume.UID),
			names.GrantedBy():        fmt.Sprintf(`{"annotation":%q,"selector":%q,"access":"ReadWrite"}`, names.ReadWriteGrant(), tenantsOnly),
			names.ServedBy():         "mooring-system/mooring",
		}
		if diff := cmp.Diff(wantRecord, volume.Annotations); diff != "" {
			w.Errorf("its record (-want +got):\n%s", diff)
		}
		if got := volume.Spec.CSI.VolumeAttributes["share"]; got != o.volume.Spec.CSI.VolumeAttributes["share"] {
			w.Errorf("it reaches %q", got)
		}
		if capacity := claim.Status.Capacity[corev1.ResourceStorage]; capacity.String() != gibibytes {
			w.Errorf("the claim shows %s, the origin has %s", capacity.String(), gibibytes)
		}
		if condition := conditionOf(claim); condition.Type != "" {
			w.Errorf("a claim with which nothing was ever wrong has the condition %+v", condition)
		}
		w.until("one event", func(context.Context) string {
			if events := w.events(claim); len(events) != 1 || events[0].Reason != string(mirror.Mirrored) {
				return fmt.Sprintf("%d events", len(events))
			}
			return ""
		}, claim)
	})
}

// TestOriginIsLeftAlone follows an origin through the life of two mirrors: but
// for the finalizer, nothing of it changes.
func TestOriginIsLeftAlone(t *testing.T) {
	onEachGate(t, func(w *world) {
		for _, storage := range []volumeEdit{nfsCSI, inTreeNFS} {
			w := w.in(t)
			o := w.originOf(w.namespace("owner", nil), "data", storage, granting(tenantsOnly))
			claimBefore, volumeBefore := o.DeepCopy(), o.volume.DeepCopy()
			tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
			first, second := w.mirror(tenant, "first", o), w.mirror(tenant, "second", o)
			volumes := []*corev1.PersistentVolume{w.isBound(first), w.isBound(second)}

			w.must(w.Get(w.Context(), keyOf(o), o.PersistentVolumeClaim), "get the origin")
			if !slices.Contains(o.Finalizers, names.Finalizer()) {
				w.Fatalf("an origin with mirrors has no finalizer:\n%s", w.show(o.PersistentVolumeClaim))
			}
			w.must(w.Delete(w.Context(), first), "delete a mirror")
			w.isGone(volumes[0])
			w.must(w.Get(w.Context(), keyOf(o), o.PersistentVolumeClaim), "get the origin")
			if !slices.Contains(o.Finalizers, names.Finalizer()) {
				w.Fatalf("an origin with one mirror left has no finalizer:\n%s", w.show(o.PersistentVolumeClaim))
			}
			w.must(w.Delete(w.Context(), second), "delete the other mirror")
			w.isGone(volumes[1])
			w.until("the finalizer is off", func(ctx context.Context) string {
				w.must(w.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
				if slices.Contains(o.Finalizers, names.Finalizer()) {
					return "it is on"
				}
				return ""
			}, o.PersistentVolumeClaim)

			w.must(w.Get(w.Context(), keyOf(o.volume), o.volume), "get the origin's volume")
			if diff := cmp.Diff(withoutServerFields(claimBefore), withoutServerFields(o.PersistentVolumeClaim)); diff != "" {
				w.Errorf("the origin claim changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(withoutServerFields(volumeBefore), withoutServerFields(o.volume)); diff != "" {
				w.Errorf("the origin volume changed (-before +after):\n%s", diff)
			}
		}
	})
}

// withoutServerFields strips what every write changes, and the condition
// Unused, which Kubernetes 1.37 itself writes to bound claims.
func withoutServerFields(object client.Object) client.Object {
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == "Unused" })
		if len(claim.Status.Conditions) == 0 {
			claim.Status.Conditions = nil
		}
	}
	return object
}

// TestOriginIsHeld sees the deletion of an origin held while mirrors exist, and
// go through when the last is gone.
func TestOriginIsHeld(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		volume := w.isBound(claim)
		w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
		w.until("held", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
			if !slices.Equal(o.Finalizers, []string{names.Finalizer()}) { // Kubernetes' own is off by now
				return strings.Join(o.Finalizers, " ")
			}
			return ""
		}, o.PersistentVolumeClaim)
		w.must(w.Delete(w.Context(), claim), "delete the mirror")
		w.isGone(volume)
		w.isGone(o.PersistentVolumeClaim)
	})
}

// TestFinalizerIsPutBack sees the finalizer that somebody took off return.
func TestFinalizerIsPutBack(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		w.isBound(w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o))
		w.merge(o.PersistentVolumeClaim, `{"metadata":{"finalizers":["kubernetes.io/pvc-protection"]}}`)
		w.until("the finalizer is on", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
			if !slices.Contains(o.Finalizers, names.Finalizer()) {
				return strings.Join(o.Finalizers, " ")
			}
			return ""
		}, o.PersistentVolumeClaim)
	})
}

// TestNamespacesCanBeDeleted sees a tenant's namespace go with its mirror.
func TestNamespacesCanBeDeleted(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		volume := w.isBound(w.mirror(tenant, "m", o))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}
		w.must(w.Delete(w.Context(), namespace), "delete the tenant's namespace")
		w.isGone(volume)
		w.isGone(namespace)
	})
}

// TestWaitForFirstConsumer sees a claim of such a class bound without any Pod.
func TestWaitForFirstConsumer(t *testing.T) {
	onEachGate(t, func(w *world) {
		class := w.class("wffc", func(c *storagev1.StorageClass) {
			mode := storagev1.VolumeBindingWaitForFirstConsumer
			c.VolumeBindingMode = &mode
		})
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		w.isBound(w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o, ofClass(class.Name)))
	})
}

// TestSizes sees a claim of exactly the origin's size bound, and one above it
// refused with both sizes in the message.
func TestSizes(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		w.isBound(w.mirror(tenant, "equal", o, ofSize(gibibytes)))
		said := w.isRefused(w.mirror(tenant, "larger", o, ofSize("11Gi")), mirror.TooLarge)
		if !contains(said.Message, "11Gi") || !contains(said.Message, gibibytes) {
			w.Errorf("both sizes are not in %q", said.Message)
		}
	})
}

// TestReadOnlyMirror sees a mirror that asks only to read get a volume whose
// mount is read-only by itself.
func TestReadOnlyMirror(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", annotating(names.ReadOnlyGrant(), tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		volume := w.isBound(w.mirror(tenant, "m", o, withModes(corev1.ReadOnlyMany)))
		if !slices.Contains(volume.Spec.MountOptions, "ro") {
			w.Errorf("its mount options are %v", volume.Spec.MountOptions)
		}
	})
}

// TestLongNames uses names as long as Kubernetes allows, everywhere.
func TestLongNames(t *testing.T) {
	onEachGate(t, func(w *world) {
		long := strings.Repeat("n", 253)
		owner := w.namespace(strings.Repeat("o", 63-len(w.prefix)-1), nil)
		tenant := w.namespace(strings.Repeat("t", 63-len(w.prefix)-1), map[string]string{"type": "tenant"})
		o := w.pendingOrigin(owner, long, granting(tenantsOnly))
		o.volume = w.volumeFor(o.PersistentVolumeClaim, func(v *corev1.PersistentVolume) {
			nfsCSI(v)
			v.Name = w.prefix + "-" + strings.Repeat("v", 253-len(w.prefix)-1)
		})
		claim := w.mirror(tenant, long, o)
		volume := w.isBound(claim)
		w.must(w.Delete(w.Context(), claim), "delete the mirror")
		w.isGone(volume)
	})
}

// TestOwnVolumeIsMet starts the controller on a claim whose volume was made
// before, by another leader or before a crash, and not bound yet: it says
// nothing, changes nothing, and makes no second one.
func TestOwnVolumeIsMet(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	w.must(w.plane.ControllerManager().Kill(), "stop the binder")
	claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
	made := w.mirrorVolumeOf(claim, o)
	w.must(w.Create(w.Context(), made), "create the volume that was made before")
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	// The controller has looked at it when it has put the finalizer on.
	w.until("the origin is held", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
		return unless(slices.Contains(o.Finalizers, names.Finalizer()), "it is not")
	}, o.PersistentVolumeClaim)
	w.must(w.plane.ControllerManager().Start(t.Context()), "start the binder")
	if got := w.isBound(claim); got.UID != made.UID {
		t.Errorf("bound to another volume than the one that was there")
	}
	if condition := conditionOf(claim); condition.Type != "" {
		t.Errorf("it was told %+v", condition)
	}
	if events := w.events(claim); len(events) != 0 {
		t.Errorf("it was told by %d events:\n%s", len(events), w.show(claim))
	}
	if n := w.mirrorVolumes(t.Context()); n != 1 {
		t.Errorf("there are %d mirror volumes:\n%s", n, controller.LogTail(20))
	}
}

// absent fails if an object exists.
func (w *world) absent(object client.Object) {
	w.Helper()
	if err := w.Get(w.Context(), keyOf(object), object); !apierrors.IsNotFound(err) {
		w.Errorf("%T %s exists (%v):\n%s", object, object.GetName(), err, w.show(object))
	}
}

// TestNodeAffinity sees a mirror volume reachable from where its origin is: the
// affinity is copied, followed where the API allows it, and told where not.
func TestNodeAffinity(t *testing.T) {
	onEachGate(t, func(w *world) {
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		owner := w.namespace("owner", nil)

		there := w.originOf(owner, "there", func(v *corev1.PersistentVolume) {
			nfsCSI(v)
			v.Spec.NodeAffinity = inZone("a")
		}, granting(tenantsOnly))
		if diff := cmp.Diff(inZone("a"), w.isBound(w.mirror(tenant, "copied", there)).Spec.NodeAffinity); diff != "" {
			w.Errorf("copied (-want +got):\n%s", diff)
		}

		later := w.origin(owner, "later", granting(tenantsOnly))
		volume := w.isBound(w.mirror(tenant, "followed", later))
		w.merge(later.volume, `{"spec":{"nodeAffinity":`+zoneJSON("a")+`}}`)
		w.until("the mirror volume follows", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(volume), volume), "get the mirror volume")
			return cmp.Diff(inZone("a"), volume.Spec.NodeAffinity)
		}, volume)

		astray := w.origin(owner, "astray", granting(tenantsOnly))
		volume = w.isBound(w.mirror(tenant, "astray", astray))
		w.merge(volume, `{"spec":{"nodeAffinity":`+zoneJSON("b")+`}}`) // by hand; it cannot be changed any more
		w.merge(astray.volume, `{"spec":{"nodeAffinity":`+zoneJSON("a")+`}}`)
		w.until("an event says that it cannot follow", func(ctx context.Context) string {
			var events eventsv1.EventList
			w.must(w.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)), "list events")
			said := slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Name == volume.Name && e.Reason == "AffinityDiffers"
			})
			return unless(said, "there is none")
		}, volume, astray.volume)
	})
}

func inZone(zone string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
}

func zoneJSON(zone string) string {
	return fmt.Sprintf(`{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":%q,"operator":"In","values":[%q]}]}]}}`, corev1.LabelTopologyZone, zone)
}
