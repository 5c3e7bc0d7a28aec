package integration_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestGrowthOfUnknownDrivers: a kubelet would take a mirror volume that has grown
// for a wish to expand it, and call a driver that can. Of drivers whose node
// service nobody has read, only what people see grows: the claim's size.
func TestGrowthOfUnknownDrivers(t *testing.T) {
	onEachGate(t, func(w *world) {
		driver := w.prefix + ".example.com"
		w.driver(driver, false)
		o := w.originOf(w.namespace("owner", nil), "data", csiOf(driver), granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		volume := w.isBound(claim)
		before := volume.Spec.Capacity.Storage().DeepCopy()
		for _, size := range []string{"20Gi", "30Gi"} {
			w.merge(o.volume, fmt.Sprintf(`{"spec": {"capacity": {"storage": %q}}}`, size))
			w.until("the claim shows "+size, func(ctx context.Context) string {
				w.must(w.Get(ctx, client.ObjectKeyFromObject(claim), claim), "get the claim")
				if got := claim.Status.Capacity[corev1.ResourceStorage]; !got.Equal(resource.MustParse(size)) {
					return "it shows " + got.String()
				}
				return ""
			}, claim)
			w.must(w.Get(w.Context(), client.ObjectKeyFromObject(volume), volume), "get the volume")
			if got := volume.Spec.Capacity.Storage(); !got.Equal(before) {
				w.Errorf("the volume's capacity was %s and is %s", before.String(), got)
			}
		}
	})
}
