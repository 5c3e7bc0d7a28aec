//go:build linux

package node

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// A class that says Delete: when the grant has ended, the scheduler lets no new
// Pod have the mirror, the one that runs goes on reading and writing, and with
// it the volume goes, not the data.
func TestRevokedMirrorGoesWithItsLastPod(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, driver, names.ReadWriteGrant())
			claim := w.mirrorOfClass(endingClass, "mirror", writeMany)
			w.bound(claim)
			owner, running := w.pod(w.owner, "owner", "n1", "origin").runs(), w.pod(w.guest, "running", "n2", "mirror").runs()
			running.writes("/0/file", "granted")
			w.revoke()
			w.beingDeleted(claim)
			late := w.pod(w.guest, "late", "n2", "mirror")
			late.notScheduled(`0/2 nodes are available: persistentvolumeclaim "mirror" is being deleted`)
			running.writes("/0/file", "revoked, and running")
			owner.reads("/0/file", "revoked, and running")
			owner.writes("/0/file", "the owner's")
			running.reads("/0/file", "the owner's")
			late.leaves()
			running.evicted()
			w.ended(claim, "file")
			owner.reads("/0/file", "the owner's")
			owner.leaves()
			w.nothingIsLeft()
		})
	}
}

// What goes past the scheduler, by spec.nodeName, goes past what it refuses: as
// long as another Pod holds the claim, the kubelet starts it, and then it holds
// the claim in its turn. The documentation must say so.
func TestPodsPastTheSchedulerStartWhileAnotherRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nfs, names.ReadWriteGrant())
	claim := w.mirrorOfClass(endingClass, "mirror", writeMany)
	w.bound(claim)
	first := w.pod(w.guest, "first", "n2", "mirror").runs()
	first.writes("/0/file", "granted")
	w.revoke()
	w.beingDeleted(claim)
	second := w.podPastScheduler(w.guest, "second", "n2", "mirror").runs()
	first.evicted()
	second.reads("/0/file", "granted")
	second.evicted()
	w.ended(claim, "file")
	w.nothingIsLeft()
}

// A class that only reports: the claim says that the grant has ended, and
// everything works on, new Pods included.
func TestReportedMirrorWorksOn(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, driver, names.ReadWriteGrant())
			claim := w.mirror("mirror", writeMany)
			w.bound(claim)
			running := w.pod(w.guest, "running", "n1", "mirror").runs()
			running.writes("/0/file", "granted")
			w.revoke()
			w.isTold(claim, mirror.NotShared)
			running.writes("/0/file", "reported")
			late := w.pod(w.guest, "late", "n2", "mirror").runs()
			late.reads("/0/file", "reported")
			late.writes("/0/file", "by a new Pod")
			running.reads("/0/file", "by a new Pod")
			running.leaves()
			late.leaves()
			w.nothingIsLeft()
			w.ends(claim, "file")
		})
	}
}

// A kubelet that is started again finds the running Pod's volume, though its
// claim is being deleted.
func TestRevokedMirrorOutlivesTheKubelet(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver.name, func(t *testing.T) {
			w := newWorld(t, driver, names.ReadWriteGrant())
			claim := w.mirrorOfClass(endingClass, "mirror", writeMany)
			w.bound(claim)
			running := w.pod(w.guest, "running", "n1", "mirror").runs()
			w.revoke()
			w.beingDeleted(claim)
			kubelet := w.nodes[0].kubelet
			w.must(kubelet.Kill())
			running.writes("/0/file", "without a kubelet")
			w.must(kubelet.Start(t.Context()))
			running.reads("/0/file", "without a kubelet")
			w.sameContainers(running)
			running.evicted()
			w.ended(claim, "file")
			w.nothingIsLeft()
		})
	}
}

// revoke takes the origin's grant away.
func (w *world) revoke() {
	w.Helper()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, names.ReadWriteGrant())
	w.must(w.Patch(w.Context(), w.origin, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (w *world) beingDeleted(claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	w.until("claim "+claim.Name+" being deleted", func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		if claim.DeletionTimestamp == nil {
			return fmt.Sprintf("conditions %v", claim.Status.Conditions)
		}
		return ""
	}, claim)
}

// isTold waits until the claim's condition gives a reason why it is not mirrored.
func (w *world) isTold(claim *corev1.PersistentVolumeClaim, reason mirror.Reason) {
	w.Helper()
	w.until("claim "+claim.Name+": "+string(reason), func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		for _, condition := range claim.Status.Conditions {
			if string(condition.Type) == names.Condition() && condition.Status == corev1.ConditionFalse && condition.Reason == string(reason) {
				return ""
			}
		}
		return fmt.Sprintf("%s, conditions %v", claim.Status.Phase, claim.Status.Conditions)
	}, claim)
}

// notScheduled waits until the scheduler tells why the Pod has to wait.
func (p *pod) notScheduled(why string) {
	p.w.Helper()
	list := &corev1.EventList{}
	about := client.MatchingFields{"involvedObject.name": p.Name, "reason": "FailedScheduling"}
	p.w.until("Pod "+p.Name+" is not scheduled: "+why, func(ctx context.Context) string {
		if err := p.w.List(ctx, list, client.InNamespace(p.Namespace), about); err != nil {
			return err.Error()
		}
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Message, why) {
				return ""
			}
		}
		return fmt.Sprintf("its events: %v", list.Items)
	}, p.Pod)
}

// evicted ends the Pod as an administrator does who heeds disruption budgets.
func (p *pod) evicted() {
	p.w.Helper()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	p.w.must(p.w.SubResource("eviction").Create(p.w.Context(), p.Pod, eviction))
	p.gone()
}
