package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

var names mooringapi.Names

var origin = types.NamespacedName{Namespace: "storage", Name: "projects"}

func class() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror"}, Provisioner: names.Provisioner()}
}

// bound is a bound mirror claim and its volume.
func bound(namespace, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	uid := types.UID(namespace + "-" + name)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, Annotations: map[string]string{names.Origin(): origin.String()}},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("pvc-mirror"), VolumeName: mirror.VolumeName(uid)},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: mirror.VolumeName(uid), Labels: map[string]string{names.OriginLabel(): mirror.OriginHash(origin)},
		Annotations: map[string]string{
			names.MirrorClaim(): namespace + "/" + name, names.MirrorClaimUID(): string(uid),
			names.OriginClaim(): origin.String(), names.ServedBy(): "mooring",
		},
	}}
	return claim, volume
}

func refused(namespace, name string, reason mirror.Reason) *corev1.PersistentVolumeClaim {
	claim, _ := bound(namespace, name)
	claim.Spec.VolumeName, claim.Status.Phase = "", corev1.ClaimPending
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: corev1.ConditionFalse, Reason: string(reason)}}
	return claim
}

// mayNot forbids a verb on a resource; with namespace "" of all namespaces only.
func mayNot(api *fake.Clientset, resource string, everywhere bool) {
	api.PrependReactor("*", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if everywhere && action.GetNamespace() != "" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	})
}

func rowsOf(rows []inventory.Row) string {
	var all []string
	for _, row := range rows {
		all = append(all, fmt.Sprintf("%s/%s of %s: %s", row.Namespace, row.Name, row.Origin, row.State))
	}
	return strings.Join(all, "; ")
}

func world() *fake.Clientset {
	a, volumeA := bound("team-a", "data")
	a.Annotations[names.Origin()] = "storage/edited-since"
	b, volumeB := bound("team-b", "data")
	plain := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "plain"}}
	return fake.NewClientset(class(), a, volumeA, b, volumeB, plain, refused("team-c", "data", mirror.NotShared))
}

func TestList(t *testing.T) {
	for _, tc := range []struct {
		name     string
		query    inventory.Query
		tenant   bool
		want     string
		requests int
	}{
		{"everywhere", inventory.Query{}, false,
			"team-a/data of storage/projects: Bound; team-b/data of storage/projects: Bound; team-c/data of storage/projects: Refused", 3},
		{"one namespace", inventory.Query{Namespace: "team-a"}, false, "team-a/data of storage/projects: Bound", 3},
		{"the record counts, not what the claim says now", inventory.Query{Origin: types.NamespacedName{Namespace: "storage", Name: "edited-since"}}, false, "", 4},
		{"of an origin", inventory.Query{Origin: origin}, false,
			"team-a/data of storage/projects: Bound; team-b/data of storage/projects: Bound; team-c/data of storage/projects: Refused", 3},
		{"denied", inventory.Query{States: []inventory.State{inventory.Refused}}, false, "team-c/data of storage/projects: Refused", 3},
		{"a tenant sees its own, by what it wrote", inventory.Query{Own: "team-a"}, true, "team-a/data of storage/edited-since: Bound", 4},
		{"a tenant learns nothing of others", inventory.Query{Own: "team-a", Origin: origin}, true, "", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			api := world()
			if tc.tenant {
				mayNot(api, "persistentvolumeclaims", true)
				mayNot(api, "persistentvolumes", false)
				mayNot(api, "storageclasses", false)
			}
			c := &inventory.Cluster{API: api, Names: names}
			listing, err := c.List(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			if got := rowsOf(listing.Rows); got != tc.want || len(api.Actions()) > tc.requests {
				t.Errorf("got %s in %d requests; want %s in %d", got, len(api.Actions()), tc.want, tc.requests)
			}
			if tc.tenant != (len(c.Hidden()) > 0) {
				t.Errorf("hidden: %v", c.Hidden())
			}
		})
	}
}

// A watch that the API server closes is taken up again; what happened in
// between is told, and nothing twice.
func TestWatchResumes(t *testing.T) {
	api := world()
	var watches atomic.Int32
	opened := make(chan *watch.RaceFreeFakeWatcher, 10)
	api.PrependWatchReactor("persistentvolumeclaims", func(clienttesting.Action) (bool, watch.Interface, error) {
		watches.Add(1)
		w := watch.NewRaceFreeFake()
		opened <- w
		return true, w, nil
	})
	c := &inventory.Cluster{API: api, Names: names}
	listing, err := c.List(t.Context(), inventory.Query{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	told, ended := make(chan inventory.Row, 10), make(chan error)
	go func() {
		ended <- c.Watch(ctx, listing, inventory.Changes{
			Row:     func(row inventory.Row) error { told <- row; return nil },
			Trouble: func(err error) { t.Logf("trouble: %v", err) },
		})
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case row := <-told:
			if got := rowsOf([]inventory.Row{row}); got != want {
				t.Fatalf("got %s; want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("nothing is told; want %s", want)
		}
	}
	first := <-opened
	unchanged, _ := bound("team-b", "data")
	unchanged.ResourceVersion, unchanged.Labels = "11", map[string]string{"team": "b"}
	first.Modify(unchanged)
	first.Add(refused("team-d", "new", mirror.NotShared))
	expect("team-d/new of storage/projects: Refused")
	first.Stop()
	second := <-opened
	waits := refused("team-d", "new", mirror.OriginPending)
	waits.ResourceVersion = "12"
	second.Modify(waits)
	expect("team-d/new of storage/projects: Waiting")
	second.Delete(waits)
	expect("team-d/new of storage/projects: Gone")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A watch ends when its output does, and says why.
func TestWatchEndsWithItsOutput(t *testing.T) {
	api := world()
	c := &inventory.Cluster{API: api, Names: names}
	listing, err := c.List(t.Context(), inventory.Query{States: []inventory.State{inventory.Refused}})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken pipe")
	if err := api.Tracker().Add(refused("team-d", "new", mirror.NotShared)); err != nil {
		t.Fatal(err)
	}
	err = c.Watch(t.Context(), listing, inventory.Changes{
		Row:     func(inventory.Row) error { return broken },
		Trouble: func(err error) { t.Error(err) },
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// A list whose place the API server has forgotten is read once more, and nothing
// of it counts twice.
func TestPagesThatExpire(t *testing.T) {
	t.Parallel()
	asked := 0
	api := fake.NewClientset()
	api.PrependReactor("list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: fmt.Sprint(asked)}}
		page := &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{claim}}
		switch asked {
		case 1, 3:
			page.Continue = "more"
		case 2:
			return true, nil, apierrors.NewResourceExpired("the continue parameter is too old")
		}
		return true, page, nil
	})
	cluster := &inventory.Cluster{API: api}
	claims, seen, err := cluster.Claims(t.Context(), "", metav1.ListOptions{})
	if err != nil || !seen || len(claims) != 2 || claims[0].Name != "3" || claims[1].Name != "4" {
		t.Errorf("%d claims, seen: %t, error %v: %+v", len(claims), seen, err, claims)
	}
}
