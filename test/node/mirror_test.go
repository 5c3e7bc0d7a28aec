//go:build linux

package node

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// placements are the nodes of the owner's and the guest's Pod.
var placements = map[string][2]string{"one node": {"n1", "n1"}, "two nodes": {"n1", "n2"}}

// Written here, read there, on one node and on two, in whichever order the Pods
// leave.
func TestTwoNamespacesShareData(t *testing.T) {
	for _, driver := range drivers {
		for placement, nodes := range placements {
			for _, originFirst := range []bool{true, false} {
				order := map[bool]string{true: "the origin's Pod leaves first", false: "the mirror's Pod leaves first"}[originFirst]
				t.Run(fmt.Sprintf("%s, %s, %s", driver.name, placement, order), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, driver, names.ReadWriteGrant())
					mirror := w.mirror("mirror", writeMany)
					w.handlesAre(driver, w.bound(mirror))
					a, b := w.pod(w.owner, "a", nodes[0], "origin"), w.pod(w.guest, "b", nodes[1], "mirror")
					a.runs().writes("/0/from-a", "written by the owner")
					b.runs().reads("/0/from-a", "written by the owner")
					b.writes("/0/from-b", "written by the guest")
					a.reads("/0/from-b", "written by the guest")
					first, second := a, b
					if !originFirst {
						first, second = b, a
					}
					first.leaves()
					second.writes("/0/later", "written alone")
					second.reads("/0/later", "written alone")
					second.leaves()
					w.nothingIsLeft()
					w.ends(mirror, "from-b")
				})
			}
		}
	}
}

// handlesAre checks what the kubelet will know the mirror by: what the recipe
// says, not what would happen to work.
func (w *world) handlesAre(driver testDriver, mirror *corev1.PersistentVolume) {
	w.Helper()
	isShared := mirror.Spec.CSI.VolumeHandle == w.handles[0]
	if want := driver.kind == unknown.kind; isShared != want {
		w.Errorf("handle of the mirror volume: %q, shared with the origin: %t, want %t", mirror.Spec.CSI.VolumeHandle, isShared, want)
	}
}

// A read-only mirror: the kernel refuses every change inside the container,
// whichever mount comes first, while the owner goes on writing.
func TestReadOnlyMirrorIsRefusedByTheKernel(t *testing.T) {
	for placement, nodes := range placements {
		for _, mirrorFirst := range []bool{false, true} {
			order := map[bool]string{true: "the mirror is mounted first", false: "the origin is mounted first"}[mirrorFirst]
			t.Run(placement+", "+order, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, nfs, names.ReadOnlyGrant())
				mirror := w.mirror("mirror", readMany)
				volume := w.bound(mirror)
				if !slices.Contains(volume.Spec.MountOptions, "ro") {
					t.Errorf("mount options of the mirror volume: %v", volume.Spec.MountOptions)
				}
				var a, b *pod
				if mirrorFirst {
					b = w.pod(w.guest, "b", nodes[1], "mirror").runs()
					a = w.pod(w.owner, "a", nodes[0], "origin").runs()
				} else {
					a = w.pod(w.owner, "a", nodes[0], "origin").runs()
					b = w.pod(w.guest, "b", nodes[1], "mirror").runs()
				}
				a.writes("/0/file", "one")
				b.reads("/0/file", "one")
				b.refused("/0", "file")
				a.writes("/0/file", "two")
				b.reads("/0/file", "two")
				b.leaves()
				a.writes("/0/file", "three")
				a.leaves()
				w.nothingIsLeft()
				w.ends(mirror, "file")
			})
		}
	}
}

// What read-only mirrors may not rest on, to see that the test above would
// notice: mounts that are remounted read-only, of a superblock that is not. The
// container's own mount of it can be written.
func TestReadOnlyBindMountsDoNotHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unknown, names.ReadWriteGrant(), "ro")
	a := w.pod(w.owner, "a", "n1", "origin").runs()
	a.writes("/0/file", "in spite of ro")
	a.reads("/0/file", "in spite of ro")
	a.leaves()
	w.nothingIsLeft()
}

// One Pod with two claims of one origin, where each mirror has a handle of its
// own: two mounts, each with its own access.
func TestOnePodWithTwoClaimsOfOneOrigin(t *testing.T) {
	for _, claims := range [][]string{{"writing", "reading"}, {"reading", "writing"}} {
		t.Run(claims[0]+" first", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nfs, names.ReadWriteGrant())
			w.bound(w.mirror("writing", writeMany))
			w.bound(w.mirror("reading", readMany))
			writing, reading := fmt.Sprintf("/%d", slices.Index(claims, "writing")), fmt.Sprintf("/%d", slices.Index(claims, "reading"))
			both := w.pod(w.guest, "both", "n1", claims...).runs()
			both.writes(writing+"/file", "through the one")
			both.reads(reading+"/file", "through the one")
			both.refused(reading, "file")
			both.writes(writing+"/file", "still")
			both.leaves()
			w.nothingIsLeft()
		})
	}
}

// Where the handle is shared, the kubelet would mount one of the two at both
// places: there is no second mirror in a namespace, and so no such Pod.
func TestNoSecondMirrorWhereTheHandleIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unknown, names.ReadWriteGrant())
	w.bound(w.mirror("first", writeMany))
	second := w.mirror("second", writeMany)
	waiting := w.pod(w.guest, "both", "n1", "first", "second")
	w.isTold(second, mirror.DuplicateMirror)
	w.until("the Pod is not scheduled", func(ctx context.Context) string {
		if err := w.Get(ctx, client.ObjectKeyFromObject(waiting.Pod), waiting.Pod); err != nil {
			return err.Error()
		}
		for _, condition := range waiting.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return ""
			}
		}
		return fmt.Sprintf("%s, conditions %v", waiting.Status.Phase, waiting.Status.Conditions)
	}, waiting.Pod)
	waiting.leaves()
	w.nothingIsLeft()
}
