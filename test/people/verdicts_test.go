package people_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// agrees waits until explain, typed by an administrator, gives the controller's
// own answer about a claim, and returns its reason; the controller has to have
// given one.
func (w *world) agrees(claim *corev1.PersistentVolumeClaim) mirror.Reason {
	w.Helper()
	var reason mirror.Reason
	w.until("explain agrees with the controller about "+claim.Name, func(ctx context.Context) string {
		w.must(w.Get(ctx, client.ObjectKeyFromObject(claim), claim), "get the claim")
		said := conditionOf(claim)
		if claim.Status.Phase != corev1.ClaimBound && said.Reason == "" {
			return "the controller has said nothing yet"
		}
		x, got := w.explained(w.admin, claim.Namespace, claim.Name)
		reason = x.Reason
		bound := claim.Status.Phase == corev1.ClaimBound
		switch {
		case said.Status == corev1.ConditionFalse && (string(x.Reason) != said.Reason || x.Message != said.Message || got.code == exitGood):
		case said.Status != corev1.ConditionFalse && (!bound || x.Outcome != string(mirror.StandsBound) || got.code != exitGood):
		default:
			return ""
		}
		return fmt.Sprintf("phase %s, condition %s %s %s; explain says\n%s", claim.Status.Phase, said.Status, said.Reason, said.Message, got)
	}, claim)
	return reason
}

// What becomes of a mirror after it was bound, and what explain says of it.
func TestExplainAfterBinding(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason mirror.Reason
		happen func(w *world, o origin, claim *corev1.PersistentVolumeClaim)
	}{
		{mirror.NotShared, func(w *world, o origin, _ *corev1.PersistentVolumeClaim) { w.grantTo(o.PersistentVolumeClaim, "-") }},
		{mirror.GrantReadOnly, func(w *world, o origin, _ *corev1.PersistentVolumeClaim) {
			w.merge(o.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:%q}}}`, names.ReadWriteGrant(), names.ReadOnlyGrant(), tenantsOnly))
		}},
		{mirror.OriginTerminating, func(w *world, o origin, _ *corev1.PersistentVolumeClaim) {
			w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
		}},
		{mirror.VolumeLost, func(w *world, _ origin, claim *corev1.PersistentVolumeClaim) {
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
			w.must(w.Delete(w.Context(), volume), "delete the mirror volume")
			if err := w.Patch(w.Context(), volume, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); !apierrors.IsNotFound(err) {
				w.must(err, "let it go")
			}
		}},
		{mirror.RecordBroken, func(w *world, _ origin, claim *corev1.PersistentVolumeClaim) {
			// What could put the record back is edited too: the claim's own reference.
			w.merge(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/another"}}}`, names.Origin()))
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
			w.merge(volume, fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/other",%q:"11111111-2222-3333-4444-555555555555"}}}`, names.OriginClaim(), names.OriginVolumeUID()))
		}},
		{mirror.OriginReplaced, func(w *world, o origin, _ *corev1.PersistentVolumeClaim) {
			w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
			w.merge(o.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"},"finalizers":null}}`, names.AllowDeletion()))
			w.until("the origin is gone", func(ctx context.Context) string {
				if err := w.Get(ctx, client.ObjectKeyFromObject(o), o.PersistentVolumeClaim); !apierrors.IsNotFound(err) {
					return "it is there"
				}
				return ""
			})
			w.origin(o.Namespace, o.Name, granting(tenantsOnly))
		}},
	} {
		t.Run(string(tc.reason), func(t *testing.T) {
			t.Parallel()
			w := gateOn.world(t)
			o := w.origin(w.ownerNS, "data", granting(tenantsOnly))
			claim := w.mirror(w.tenantNS, "m", o, annotating(names.Origin(), o.Namespace+"/"+o.Name), func(c *corev1.PersistentVolumeClaim) {
				c.Spec.DataSourceRef = nil // which nobody could edit
			})
			w.isBound(claim)
			tc.happen(w, o, claim)
			w.isSaid(claim, tc.reason)
			if got := w.agrees(claim); got != tc.reason {
				t.Errorf("explain says %s", got)
			}
		})
	}
}

func (w *world) merge(object client.Object, patch string) {
	w.Helper()
	w.must(w.Patch(w.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))), "patch %T %s", object, object.GetName())
}

const situations = 500

// For claims, origins, grants and classes as chance makes them, explain says
// what the controller says, word for word.
func TestExplainAgreesByChance(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := gateOn.world(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	stage := w.stage(chance)
	claims := make([]*corev1.PersistentVolumeClaim, situations)
	for i := range claims {
		claims[i] = stage.claim(chance, i)
	}
	found := map[mirror.Reason]int{}
	var mu sync.Mutex
	inParallel(claims, func(claim *corev1.PersistentVolumeClaim) {
		reason := w.agrees(claim)
		mu.Lock()
		defer mu.Unlock()
		found[reason]++
	})
	t.Logf("%d situations in %v:", situations, time.Since(began).Round(time.Millisecond))
	for _, reason := range slices.Sorted(maps.Keys(found)) {
		t.Logf("%5d %s", found[reason], reason)
	}
	if len(found) < 10 {
		t.Errorf("only %d reasons came up", len(found))
	}
}

// inParallel calls a function for each of many, a few at a time.
func inParallel[T any](all []T, do func(T)) {
	few := make(chan struct{}, 8)
	var wait sync.WaitGroup
	for _, one := range all {
		wait.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			do(one)
		})
	}
	wait.Wait()
}

// stage is what the claims of TestExplainAgreesByChance choose from.
type stage struct {
	*world
	origins []origin
	tenants []string
	classes []string
}

func pick[T any](chance *rand.Rand, from ...T) T { return from[chance.IntN(len(from))] }

func (w *world) stage(chance *rand.Rand) *stage {
	w.Helper()
	s := &stage{world: w}
	sharing := w.prefix + ".example.com" // a driver that the table does not know
	w.must(w.Create(w.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: sharing}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}), "create a CSIDriver")
	for i := range 8 {
		s.tenants = append(s.tenants, w.namespace(fmt.Sprintf("space-%d", i), map[string]string{"type": pick(chance, "tenant", "tenant", "other"), "tier": pick(chance, "a", "b")}))
	}
	s.classes = []string{class, w.prefix + "-reading", w.prefix + "-growing", w.prefix + "-odd", w.prefix + "-missing"}
	for i, edit := range []func(*storagev1.StorageClass){
		func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"access": "ReadOnly"} },
		func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = ptr.To(true) },
		func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"colour": "blue"} },
	} {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: s.classes[i+1]}, Provisioner: names.Provisioner()}
		edit(c)
		w.must(w.Create(w.Context(), c), "create a class")
	}
	storages := []volumeEdit{nfsCSI, nfsCSI, csiOf(sharing), csiOf(w.prefix + ".example.org"), func(v *corev1.PersistentVolume) {
		v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/srv"}
	}, func(v *corev1.PersistentVolume) {
		v.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/export/" + v.Name}
	}}
	for i := range 30 {
		name := fmt.Sprintf("o%d", i)
		grants := []claimEdit{
			granting(pick(chance, "type=tenant", "type", "tier in (a)", "type=nobody", "", "=!=", "!type")),
			annotating(pick(chance, names.ReadOnlyGrant(), names.ReadOnlyGrant(), "example.com/nothing"), pick(chance, "tier=a", "type=tenant")),
			annotating(pick(chance, names.GrantExpires(), "example.com/none", "example.com/none", "example.com/none"), pick(chance, "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "soon")),
			withModes(pick(chance, corev1.ReadWriteMany, corev1.ReadWriteMany, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOncePod)),
		}
		if i%10 == 9 {
			s.origins = append(s.origins, w.pendingOrigin(w.ownerNS, name, grants...))
			continue
		}
		s.origins = append(s.origins, w.originOf(w.ownerNS, name, storages[i%len(storages)], grants...))
	}
	missing := origin{PersistentVolumeClaim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.ownerNS, Name: "missing"}}}
	s.origins = append(s.origins, missing)
	return s
}

// claim creates a mirror claim that is fit or is not, in one way or several.
func (s *stage) claim(chance *rand.Rand, i int) *corev1.PersistentVolumeClaim {
	s.Helper()
	edits := []claimEdit{
		withModes(pick(chance, corev1.ReadWriteMany, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadOnlyMany, corev1.ReadWriteOnce)),
		ofSize(pick(chance, "1", "1", "1", "10Gi", "11Gi")),
	}
	of := pick(chance, s.origins...)
	if chance.IntN(5) == 0 {
		edits = append(edits, ofClass(pick(chance, s.classes...)), annotating(names.Origin(), of.Namespace+"/"+of.Name))
	}
	switch chance.IntN(15) {
	case 0:
		edits = append(edits, annotating(names.Origin(), pick(chance, "nonsense", s.ownerNS+"/another", of.Namespace+"/"+of.Name)))
	case 1:
		edits = append(edits, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		})
	case 2:
		edits = append(edits, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) })
	}
	return s.mirror(pick(chance, append(s.tenants, s.ownerNS)...), fmt.Sprintf("c%d", i), of, edits...)
}
