package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	t.Parallel()
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

// TestClearedWhileAway changes the claimRef of mirror volumes while no controller
// runs, and gives the binder all the time it wants. A claim of the class that
// was refused is not bound to them, nor is one that asks for them by name. What
// the binder does bind, by other ways, the controller takes from it as soon as
// it is back, and says so.
func TestClearedWhileAway(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant, strangers := w.namespace("tenant", map[string]string{"type": "tenant"}), w.namespace("strangers", nil)
	claims := map[string]*corev1.PersistentVolumeClaim{}
	volumes := map[string]*corev1.PersistentVolume{}
	for _, name := range []string{"bound", "cleared", "named", "taken", "namesake"} {
		claims[name] = w.mirror(tenant, name, o)
		volumes[name] = w.isBound(claims[name])
	}
	refused := w.mirror(strangers, "refused", o)
	w.isRefused(refused, mirror.NotShared)
	w.must(controller.Kill(), "kill the controller")

	for name, patch := range map[string]string{
		"bound":    `{"spec":{"claimRef":null}}`,
		"cleared":  `{"spec":{"claimRef":null}}`,
		"named":    `{"spec":{"claimRef":null}}`,
		"taken":    `{"spec":{"claimRef":null}}`,
		"namesake": `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`,
	} {
		if name != "bound" {
			w.must(w.Delete(w.Context(), claims[name]), "delete a mirror")
			w.isGone(claims[name])
			w.hasPhase(volumes[name], corev1.VolumeReleased)
		}
		w.merge(volumes[name], patch)
	}
	w.hasPhase(volumes["cleared"], corev1.VolumeAvailable)

	// Three that want what is not theirs.
	named := w.claimOf(strangers, "named", class)
	named.Spec.VolumeName = volumes["named"].Name
	taken := w.claimOf(strangers, "taken", class)
	taken.Spec.VolumeName = volumes["taken"].Name
	taken.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	namesake := w.claimOf(tenant, "namesake", "")
	for _, claim := range []*corev1.PersistentVolumeClaim{named, taken, namesake} {
		w.must(w.Create(w.Context(), claim), "create a thief")
	}
	for _, claim := range []*corev1.PersistentVolumeClaim{refused, named} {
		w.merge(claim, `{"metadata":{"labels":{"look":"again"}}}`) // the binder looks at it once more
		w.stillPending(claim)
	}

	w.must(controller.Start(t.Context()), "start the controller")
	for _, name := range []string{"cleared", "named", "taken", "namesake"} {
		w.isGone(volumes[name])
	}
	w.stillPending(refused)
	w.stillPending(named)
	for _, claim := range []*corev1.PersistentVolumeClaim{taken, namesake} {
		w.until("the thief has lost its volume, or never had it", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(claim), claim), "get the thief")
			return unless(claim.Status.Phase != corev1.ClaimBound, "it is Bound")
		}, claim)
	}
	if got := w.isBound(claims["bound"]); got.UID != volumes["bound"].UID {
		t.Error("the claim whose volume's claimRef was cleared under it has lost it")
	}
}

// TestMirrorOfAnother gives a claim a mirror volume that is bound to another
// claim, by writing the volume's claimRef: it is taken from it, which it is told.
func TestMirrorOfAnother(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
	volume := w.isBound(claim)
	w.must(controller.Kill(), "kill the controller")
	w.must(w.Delete(w.Context(), claim), "delete the mirror")
	w.isGone(claim)
	thief := w.claimOf(w.namespace("strangers", nil), "thief", "")
	thief.Spec.VolumeName = volume.Name
	w.must(w.Create(w.Context(), thief), "create the thief")
	w.merge(volume, fmt.Sprintf(`{"spec":{"claimRef":{"namespace":%q,"name":"thief","uid":%q,"resourceVersion":null}}}`, thief.Namespace, thief.UID))
	w.until("the thief is bound", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(thief), thief), "get the thief")
		return unless(thief.Status.Phase == corev1.ClaimBound, string(thief.Status.Phase))
	}, thief, volume)
	w.must(controller.Start(t.Context()), "start the controller")
	w.isSaid(thief, corev1.ConditionFalse, mirror.MirrorOfAnother)
	w.isGone(volume)
	w.until("the thief is Lost", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(thief), thief), "get the thief")
		return unless(thief.Status.Phase == corev1.ClaimLost, string(thief.Status.Phase))
	}, thief)
	w.until("explain has the controller's last word", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(thief), thief), "get the thief")
		return w.explainDiffers(thief, conditionOf(thief))
	}, thief)
}

// TestGrantEndsBeforeBinding ends a grant after the volume was made and before
// the binder bound it: the volume is taken back.
func TestGrantEndsBeforeBinding(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	w.must(w.plane.ControllerManager().Kill(), "stop the binder")
	claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
	volume := mirrorVolume(claim)
	w.until("the volume is made", func(ctx context.Context) string {
		return unless(w.Get(ctx, keyOf(volume), volume) == nil, "it is not")
	}, claim)
	w.grantTo(o.PersistentVolumeClaim, "nobody=yes")
	w.until("the volume is being deleted", func(ctx context.Context) string {
		err := w.Get(ctx, keyOf(volume), volume)
		return unless(apierrors.IsNotFound(err) || volume.DeletionTimestamp != nil, "it is not")
	}, volume, claim)
	w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
	w.must(w.plane.ControllerManager().Start(t.Context()), "start the binder")
	w.isGone(volume)
	w.stillPending(claim)
	w.grantTo(o.PersistentVolumeClaim, tenantsOnly)
	w.isBound(claim)
}

// TestCopiedRecord is a volume to which somebody copied a mirror's annotations,
// as tools that restore or clone manifests do: it is nobody's to delete.
func TestCopiedRecord(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		model := w.isBound(claim)
		restored := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
			Name: w.prefix + "-restored", Annotations: model.Annotations, Labels: model.Labels}}
		inTreeNFS(restored)
		restored.Spec.AccessModes, restored.Spec.Capacity, restored.Spec.StorageClassName = model.Spec.AccessModes, model.Spec.Capacity, "somebody"
		w.must(w.Create(w.Context(), restored), "create a volume with a copied record")
		w.Cleanup(func() { _ = w.Delete(context.Background(), restored) })
		w.must(w.Delete(w.Context(), claim), "delete the mirror")
		w.isGone(model)
		w.must(w.Get(w.Context(), keyOf(restored), restored), "get the volume with the copied record")
		if restored.DeletionTimestamp != nil {
			w.Errorf("a volume that is not a mirror was deleted:\n%s", w.show(restored))
		}
		w.until("the origin is let go: a copy is no mirror", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
			return unless(!slices.Contains(o.Finalizers, names.Finalizer()), "it has the finalizer")
		}, o.PersistentVolumeClaim, restored)
	})
}

// TestTwoAtOnce creates two claims in one second for an origin whose handle is
// shared: one is served, whichever is looked at first.
func TestTwoAtOnce(t *testing.T) {
	onEachGate(t, func(w *world) {
		name := w.prefix + ".example.com"
		w.driver(name, false)
		for i := range 10 {
			o := w.originOf(w.namespace(fmt.Sprintf("owner%d", i), nil), "data", csiOf(name), granting(tenantsOnly))
			tenant := w.namespace(fmt.Sprintf("tenant%d", i), map[string]string{"type": "tenant"})
			twins := []*corev1.PersistentVolumeClaim{w.mirror(tenant, "a", o), w.mirror(tenant, "b", o)}
			w.until("one is bound and the other refused", func(ctx context.Context) string {
				bound, refused := 0, 0
				for _, twin := range twins {
					w.must(w.Get(ctx, keyOf(twin), twin), "get a claim")
					if twin.Status.Phase == corev1.ClaimBound {
						bound++
					}
					if conditionOf(twin).Reason == string(mirror.DuplicateMirror) {
						refused++
					}
				}
				return unless(bound == 1 && refused == 1, fmt.Sprintf("%d bound, %d refused", bound, refused))
			}, twins[0], twins[1])
		}
	})
}

// TestServedClaimKeepsItsPlace stops the binder between a claim's volume and its
// binding, and lets a twin ask in the same moment: the one that is served stays
// so, however often it is looked at, and the twin gets its place when it goes.
func TestServedClaimKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0").start(t)
	name := w.prefix + ".example.com"
	w.driver(name, false)
	owner, tenant := w.namespace("owner", nil), w.namespace("tenant", map[string]string{"type": "tenant"})
	var origins []origin
	for i := range 8 { // about half of the twins have the lesser UID
		origins = append(origins, w.originOf(owner, fmt.Sprintf("data%d", i), csiOf(name), granting(tenantsOnly)))
	}
	w.must(w.plane.ControllerManager().Kill(), "stop the binder")
	for i, o := range origins {
		first := w.mirror(tenant, fmt.Sprintf("first%d", i), o)
		made := mirrorVolume(first)
		w.until("the volume is made", func(ctx context.Context) string {
			return unless(w.Get(ctx, keyOf(made), made) == nil, "it is not")
		}, first)
		twin := w.mirror(tenant, fmt.Sprintf("twin%d", i), o)
		w.isRefused(twin, mirror.DuplicateMirror)
		for range 3 {
			w.merge(first, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, names.Provisioner()+"/look", worlds.Add(1)))
			w.merge(o.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"type in (tenant,x%d)"}}}`, names.ReadWriteGrant(), worlds.Add(1)))
		}
		if i%2 == 1 {
			continue
		}
		// The asking side turns to something else while nothing is bound: its
		// volume is taken back, and the twin comes next.
		w.merge(first, fmt.Sprintf(`{"metadata":{"annotations":{%q:"nowhere/else"}}}`, names.Origin()))
		w.isRefused(first, mirror.OriginAmbiguous)
		w.isTerminating(made)
		w.merge(made, `{"metadata":{"finalizers":null}}`) // what the stopped controller manager would do
		w.until("the twin's volume is made", func(ctx context.Context) string {
			return unless(w.Get(ctx, keyOf(mirrorVolume(twin)), mirrorVolume(twin)) == nil, "it is not")
		}, first, twin)
	}
	w.must(w.plane.ControllerManager().Start(t.Context()), "start the binder")
	for i := range origins {
		bound, left := "first", "twin"
		if i%2 == 0 {
			bound, left = left, bound
		}
		w.isBound(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: fmt.Sprintf("%s%d", bound, i)}})
		w.stillPending(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: fmt.Sprintf("%s%d", left, i)}})
	}
}

// TestForeignVolumeIsNoMirror is a claim that asks for a mirror with another
// provisioner's class, which makes a volume under the very name that a mirror
// volume would have: nobody calls that a mirror.
func TestForeignVolumeIsNoMirror(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		foreign := w.class("foreign", func(c *storagev1.StorageClass) { c.Provisioner = "somebody.example.com" })
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o, ofClass(foreign.Name), byAnnotation(o))
		w.isRefused(claim, mirror.ClassNotFound)
		empty := mirrorVolume(claim)
		inTreeNFS(empty)
		empty.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "somebody.example.com"}
		empty.Spec.StorageClassName, empty.Spec.AccessModes = foreign.Name, claim.Spec.AccessModes
		empty.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: o.volume.Spec.Capacity[corev1.ResourceStorage]}
		empty.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		w.must(w.Create(w.Context(), empty), "create another provisioner's volume")
		w.Cleanup(func() { _ = w.Delete(context.Background(), empty) })
		w.isBound(claim)
		w.isBound(w.mirror(claim.Namespace, "barrier", o)) // so the controller has seen the other
		w.isSaid(claim, corev1.ConditionFalse, mirror.ClassNotFound)
	})
}

// hasPhase waits until a volume is in a phase.
func (w *world) hasPhase(volume *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	w.Helper()
	w.until("volume is "+string(phase), func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(volume), volume), "get the volume")
		return unless(volume.Status.Phase == phase, string(volume.Status.Phase))
	}, volume)
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
