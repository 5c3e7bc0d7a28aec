package people_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/cli"
)

func (w *world) accessed(who person, args ...string) (cli.Access, result) {
	w.Helper()
	var a cli.Access
	got := w.mooring(who, append([]string{"access", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(got.out), &a); err != nil {
		w.Fatalf("access %v as %s: %v\n%s", args, who.name, err, got)
	}
	return a, got
}

// pod creates a Pod that uses a claim.
func (w *world) pod(namespace, name, claim string) {
	w.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/none"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	w.until("a Pod can be created", func(ctx context.Context) string { // once its service account is there
		if err := w.Create(ctx, pod); err != nil {
			return err.Error()
		}
		return ""
	})
}

// seen is a short form of what access says of namespaces, for comparing; other
// tests' namespaces are left out.
func (w *world) seen(a cli.Access) string {
	var all []string
	for _, space := range a.Namespaces {
		if !strings.HasPrefix(space.Namespace, w.prefix+"-") {
			continue
		}
		words := []string{strings.TrimPrefix(space.Namespace, w.prefix+"-"), space.Granted, space.GrantedNow}
		for _, m := range space.Mirrors {
			words = append(words, m.Name, m.Access, string(m.State), strings.Join(m.Pods, ","))
		}
		all = append(all, strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "))
	}
	return strings.Join(all, "; ")
}

// Who can reach the data, as each person sees it.
func TestAccess(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	own := "world=" + w.prefix
	readers := w.namespace("readers", map[string]string{"world": w.prefix, "tier": "b"})
	w.namespace("writers", map[string]string{"world": w.prefix, "tier": "a"})
	shared := w.origin(w.ownerNS, "data", granting(tenantsOnly+",kubernetes.io/metadata.name="+w.tenantNS), annotating(names.ReadOnlyGrant(), own))
	claim := w.mirror(w.tenantNS, "m", shared)
	w.isBound(claim)
	w.isBound(w.mirror(readers, "r", shared, withModes(corev1.ReadOnlyMany)))
	w.pod(w.tenantNS, "user", "m")
	w.pod(w.ownerNS, "own", "data")
	key := w.ownerNS + "/data"

	a, got := w.accessed(w.admin, key)
	if want := "readers ReadOnly r ReadOnly Bound; tenant ReadWrite m ReadWrite Bound user; writers ReadOnly"; w.seen(a) != want ||
		!slices.Equal(a.Pods, []string{"own"}) || len(a.Grants) != 2 || !a.Mirrored || a.Volume != shared.volume.Name || len(a.NotVisible) > 0 {
		t.Errorf("as administrator: %s\nwant %s\n%s", w.seen(a), want, got)
	}
	t.Logf("as administrator:\n%s", w.mooring(w.admin, "access", key))

	a, got = w.accessed(w.admin, key, "--as-of-selector", own+",tier=a", "--as-of-read-only-selector", "")
	if want := "readers None ReadOnly r ReadOnly Revoked; tenant None ReadWrite m ReadWrite Revoked user; writers ReadWrite ReadOnly"; w.seen(a) != want || !a.Tried || len(a.Grants) != 1 {
		t.Errorf("with other grants: %s\nwant %s\n%s", w.seen(a), want, got)
	}
	t.Logf("with other grants:\n%s", w.mooring(w.admin, "access", key, "--as-of-selector", own+",tier=a", "--as-of-read-only-selector", ""))
	if again, _ := w.accessed(w.admin, key); w.seen(again) != "readers ReadOnly r ReadOnly Bound; tenant ReadWrite m ReadWrite Bound user; writers ReadOnly" {
		t.Errorf("trying a grant changed something: %s", w.seen(again))
	}

	a, got = w.accessed(w.owner, key)
	if len(a.Namespaces) != 0 || !a.Mirrored || len(a.Grants) != 2 || !slices.Equal(a.Pods, []string{"own"}) || len(a.NotVisible) < 2 || got.code != exitGood {
		t.Errorf("as owner: %s", got)
	}
	t.Logf("as owner:\n%s", w.mooring(w.owner, "access", key))

	for _, tc := range []struct {
		who  person
		args []string
		code int
	}{
		{w.tenant, []string{key}, exitNotFound},
		{w.owner, []string{w.ownerNS + "/missing"}, exitNotFound},
		{w.admin, []string{w.ownerNS + "/missing"}, exitNotFound},
		{w.admin, []string{w.tenantNS + "/m"}, exitIsMirror},
		{w.admin, []string{key, "--as-of-selector", "!type"}, 2},
		{w.admin, []string{key, "-o", "xml"}, 2},
	} {
		if got := w.mooring(tc.who, append([]string{"access"}, tc.args...)...); got.code != tc.code || got.out != "" || got.err == "" {
			t.Errorf("access %v as %s, want exit code %d: %s", tc.args, tc.who.name, tc.code, got)
		}
	}
}
