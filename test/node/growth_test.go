//go:build linux

package node

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The origin grows, twice, and its mirror's size follows while Pods run; of a
// driver that the table does not know, the claim's only. The kubelet never asks
// the driver to grow anything for the mirror: in the same Pod it does so for a
// claim that has grown by itself, so that it would be seen.
func TestMirrorGrowsWithItsOrigin(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, driver, names.ReadWriteGrant())
			origin := w.volumeOf(w.origin)
			claim := w.mirror("mirror", writeMany)
			volume := w.bound(claim)
			own := w.claim(w.guest, "own", "static", writeMany)
			ownVolume := w.static(own, "own-of-"+w.guest)
			a, b := w.pod(w.owner, "a", "n1", "origin"), w.pod(w.guest, "b", "n2", "mirror", "own")
			a.runs().writes("/0/file", "before")
			b.runs().reads("/0/file", "before")
			for i, size := range []string{"2Gi", "3Gi"} {
				w.grow(origin, size)
				if driver.kind == nfs.kind { // it has nothing to grow on nodes
					w.sizesAre(claim, size, size)
				} else {
					w.sizesAre(claim, size, "1Gi")
					w.grow(ownVolume, size)
					b.expanded(ownVolume, i+1)
				}
				b.expanded(volume, 0)
			}
			a.writes("/0/file", "after")
			b.reads("/0/file", "after")
			w.pod(w.guest, "late", "n1", "mirror").runs().leaves()
			b.expanded(volume, 0)
			b.neverFailedToGrow()
			a.leaves()
			b.leaves()
			w.nothingIsLeft()
			w.ends(claim, "file")
		})
	}
}

func (w *world) volumeOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	w.Helper()
	volume := &corev1.PersistentVolume{}
	w.must(w.Get(w.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
	return volume
}

// grow does what a resizer does once the storage has grown.
func (w *world) grow(volume *corev1.PersistentVolume, size string) {
	w.Helper()
	patch := fmt.Sprintf(`{"spec": {"capacity": {"storage": %q}}}`, size)
	w.must(w.Patch(w.Context(), volume, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// sizesAre waits until a mirror claim and its volume have their sizes.
func (w *world) sizesAre(claim *corev1.PersistentVolumeClaim, claimSize, volumeSize string) {
	w.Helper()
	volume := &corev1.PersistentVolume{}
	w.until(fmt.Sprintf("the mirror claim has %s, its volume %s", claimSize, volumeSize), func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err.Error()
		}
		if err := w.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
			return err.Error()
		}
		ofClaim, ofVolume := claim.Status.Capacity.Storage(), volume.Spec.Capacity.Storage()
		if !ofClaim.Equal(resource.MustParse(claimSize)) || !ofVolume.Equal(resource.MustParse(volumeSize)) {
			return fmt.Sprintf("claim %s, volume %s", ofClaim, ofVolume)
		}
		return ""
	}, claim, volume)
}

// expanded waits until the kubelet has asked the driver so many times to grow a
// volume for the Pod, on its node. An annotation makes it look at the Pod again.
func (p *pod) expanded(volume *corev1.PersistentVolume, times int) {
	p.w.Helper()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"look": "%s %d"}}}`, volume.Name, times)
	p.w.must(p.w.Patch(p.w.Context(), p.Pod, client.RawPatch("application/merge-patch+json", []byte(patch))))
	call := fmt.Sprintf("expand /var/lib/kubelet/pods/%s/volumes/kubernetes.io~csi/%s/", p.UID, volume.Name)
	p.w.until(fmt.Sprintf("%d calls %q", times, call), func(context.Context) string {
		log := p.w.plane.LogTail(p.w.driver.process(p.Spec.NodeName), 10000)
		if got := strings.Count(log, call); got != times {
			return fmt.Sprintf("%d calls", got)
		}
		return ""
	})
}

func (p *pod) neverFailedToGrow() {
	p.w.Helper()
	list := &corev1.EventList{}
	p.w.must(p.w.List(p.w.Context(), list, client.InNamespace(p.Namespace)))
	for i := range list.Items {
		if strings.Contains(list.Items[i].Reason, "ResizeFailed") {
			p.w.Errorf("event: %s: %s", list.Items[i].Reason, list.Items[i].Message)
		}
	}
}
