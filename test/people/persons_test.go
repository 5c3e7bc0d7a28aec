package people_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The persons have the rights that the tests say they have, and the controller
// serves and refuses.
func TestPersons(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	shared := w.origin(w.ownerNS, "data", granting(tenantsOnly))
	w.isBound(w.mirror(w.tenantNS, "m", shared))
	w.isSaid(w.mirror(w.tenantNS, "refused", w.origin(w.ownerNS, "private")), mirror.NotShared)
	w.isSaid(w.mirror(w.tenantNS, "classless", shared, ofClass(w.prefix+"-missing"), annotating(names.Origin(), w.ownerNS+"/data")), mirror.ClassNotFound)
	w.isSaid(w.mirror(w.tenantNS, "exclusive", shared, withModes(corev1.ReadWriteOnce)), mirror.AccessModeUnsupported)
	w.isSaid(w.mirror(w.tenantNS, "large", shared, ofSize("11Gi")), mirror.TooLarge)
	late := w.origin(w.ownerNS, "late")
	revoked := w.mirror(w.tenantNS, "late", late)
	w.isSaid(revoked, mirror.NotShared)
	w.grantTo(late.PersistentVolumeClaim, tenantsOnly)
	w.isBound(revoked)
	w.grantTo(late.PersistentVolumeClaim, "-")
	w.isSaid(revoked, mirror.NotShared)

	for _, tc := range []struct {
		who                              person
		owners, tenants, volumes, spaces bool
	}{
		{w.admin, true, true, true, true},
		{w.owner, true, false, false, false},
		{w.tenant, false, true, false, false},
	} {
		config, err := clientcmd.BuildConfigFromFlags("", tc.who.kubeconfig)
		w.must(err, "read the kubeconfig")
		c, err := client.New(config, client.Options{})
		w.must(err, "connect as %s", tc.who.name)
		for what, got := range map[string]struct {
			want bool
			err  error
		}{
			"claims of the owner":  {tc.owners, c.List(t.Context(), &corev1.PersistentVolumeClaimList{}, client.InNamespace(w.ownerNS))},
			"claims of the tenant": {tc.tenants, c.List(t.Context(), &corev1.PersistentVolumeClaimList{}, client.InNamespace(w.tenantNS))},
			"volumes":              {tc.volumes, c.List(t.Context(), &corev1.PersistentVolumeList{})},
			"namespaces":           {tc.spaces, c.List(t.Context(), &corev1.NamespaceList{})},
		} {
			if (got.err == nil) != got.want {
				t.Errorf("%s lists %s: %v, want it allowed: %t", tc.who.name, what, got.err, got.want)
			}
		}
	}
	if got := w.mooring(w.tenant, "no-such-command"); got.code == 0 {
		t.Errorf("mooring no-such-command: %s", got)
	}
}
