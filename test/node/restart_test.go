//go:build linux

package node

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A kubelet that is killed and started again finds the volumes of running Pods
// by what is mounted: they go on, and nothing is left when they leave, also if
// one was deleted while there was no kubelet.
func TestKubeletIsRestartedInBetween(t *testing.T) {
	for _, driver := range drivers {
		for _, originFirst := range []bool{true, false} {
			for _, meanwhile := range []bool{false, true} {
				order := map[bool]string{true: "the origin's Pod leaves first", false: "the mirror's Pod leaves first"}[originFirst]
				when := map[bool]string{true: "while it is away", false: "afterwards"}[meanwhile]
				t.Run(fmt.Sprintf("%s, %s, %s", driver.name, order, when), func(t *testing.T) {
					w := newWorld(t, driver, names.ReadWriteGrant())
					mirror := w.mirror("mirror", writeMany)
					w.bound(mirror)
					a, b := w.pod(w.owner, "a", "n1", "origin"), w.pod(w.guest, "b", "n1", "mirror")
					a.runs().writes("/0/file", "before")
					b.runs().reads("/0/file", "before")
					first, second := a, b
					if !originFirst {
						first, second = b, a
					}
					kubelet := w.nodes[0].kubelet
					w.must(kubelet.Kill())
					a.writes("/0/file", "without a kubelet")
					b.reads("/0/file", "without a kubelet")
					if meanwhile {
						w.must(w.Delete(t.Context(), first.Pod))
					}
					w.must(kubelet.Start(t.Context()))
					if meanwhile {
						first.gone()
					} else {
						w.sameContainers(a, b)
						first.leaves()
					}
					second.writes("/0/later", "after")
					second.reads("/0/later", "after")
					second.leaves()
					w.nothingIsLeft()
					w.ends(mirror, "later")
				})
			}
		}
	}
}

// sameContainers checks that the Pods run as they did.
func (w *world) sameContainers(pods ...*pod) {
	w.Helper()
	for _, p := range pods {
		before := p.Status.ContainerStatuses[0].ContainerID
		w.must(w.Get(w.Context(), client.ObjectKeyFromObject(p.Pod), p.Pod))
		if after := p.Status.ContainerStatuses[0]; after.ContainerID != before || after.RestartCount != 0 {
			w.Errorf("Pod %s: container %s became %s after %d restarts", p.Name, before, after.ContainerID, after.RestartCount)
		}
	}
}
