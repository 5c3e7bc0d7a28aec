package retain_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/retain"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// A cluster of 5,000 volumes, and another cluster than that of the other tests.
func TestFiveThousandVolumes(t *testing.T) {
	w := newWorldOn(t, controlplane.ForTest(t, controlplane.Options{}))
	const n = 5000
	names := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range names {
				pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%04d", i)}, Spec: corev1.PersistentVolumeSpec{
					Capacity: corev1.ResourceList{"storage": *quantity("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
					PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "many.example.com", Path: fmt.Sprintf("/many/%04d", i)}},
				}}
				if _, err := w.admin.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		names <- i
	}
	close(names)
	group.Wait()

	begin := time.Now()
	record, r := w.preview(w.volume("v"), "-v")
	took := time.Since(begin)
	w.want(r, "")
	if !strings.Contains(r.err, "requests: 14, and 10 page(s)") {
		t.Fatal(r.err)
	}
	t.Logf("a preview among %d volumes took %s", n, took)
	// Far above what it takes, since other tests share the machine: this finds
	// work that grows with the square of the volumes.
	if took > time.Minute {
		t.Errorf("a preview among %d volumes took %s", n, took)
	}
	// The last of them is seen as well as the first.
	_, r = w.preview(w.volume("v", change{"spec/nfs": object{"server": "many.example.com", "path": fmt.Sprintf("/many/%04d", n-1)}}))
	w.want(r, retain.BackendShared)

	// A preview of this cluster approves nothing in another one.
	elsewhere := newWorld(t)
	elsewhere.id, elsewhere.namespace = w.id, w.namespace
	_, r = elsewhere.create(w.volume("v"), record.PlanDigest)
	elsewhere.want(r, retain.ApprovalDiffers)
	file := w.file("receipt.json")
	w.want(w.mooring("create", w.write(w.volume("v")), "-o", file, "--approved-plan", record.PlanDigest), "")
	elsewhere.want(elsewhere.mooring("verify", file), retain.ClusterDiffers)
}
