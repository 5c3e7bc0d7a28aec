package people_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// listed is what mooring list -o json prints.
type listed struct {
	Namespace  string
	Mirrors    []struct{ Namespace, Name, Origin, Access, State, Reason, ServedBy string }
	NotVisible []string
}

// list runs mooring list as a person.
func (w *world) list(who person, args ...string) listed {
	w.Helper()
	got := w.mooring(who, append([]string{"list", "-o", "json"}, args...)...)
	w.says(got, 0)
	var document listed
	w.must(json.Unmarshal([]byte(got.out), &document), "read the list")
	return document
}

func (l listed) String() string {
	var all []string
	for _, m := range l.Mirrors {
		all = append(all, m.Name+" "+m.Access+" "+strings.TrimSuffix(m.State+" "+m.Reason, " "))
	}
	return strings.Join(all, "; ")
}

// Each person sees what it may, and nothing more.
func TestList(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	shared := w.origin(w.ownerNS, "data", granting(tenantsOnly))
	private := w.origin(w.ownerNS, "private")
	w.isBound(w.mirror(w.tenantNS, "a", shared, labelled("team", "a")))
	w.isSaid(w.mirror(w.tenantNS, "b", private), mirror.NotShared)
	late := w.origin(w.ownerNS, "late", granting(tenantsOnly))
	revoked := w.mirror(w.tenantNS, "c", late)
	w.isBound(revoked)
	w.grantTo(late.PersistentVolumeClaim, "-")
	w.isSaid(revoked, mirror.NotShared)
	const all = "a ReadWrite Bound; b ReadWrite Refused NotShared; c ReadWrite Revoked NotShared"

	for _, tc := range []struct {
		who  person
		args string
		want string
	}{
		{w.tenant, "-n " + w.tenantNS, all},
		{w.tenant, "-A -n " + w.tenantNS, all},
		{w.tenant, "-n " + w.tenantNS + " --denied", "b ReadWrite Refused NotShared"},
		{w.tenant, "-n " + w.tenantNS + " --revoked", "c ReadWrite Revoked NotShared"},
		{w.tenant, "-n " + w.tenantNS + " -l team=a", "a ReadWrite Bound"},
		{w.tenant, "-n " + w.tenantNS + " --field-selector metadata.name=c", "c ReadWrite Revoked NotShared"},
		{w.tenant, "-n " + w.tenantNS + " --origin " + w.ownerNS + "/data", "a ReadWrite Bound"},
		{w.tenant, "-n " + w.ownerNS, ""},
		{w.owner, "-A -n " + w.ownerNS, ""},
		{w.owner, "-n " + w.tenantNS, ""},
		{w.admin, "-n " + w.tenantNS, all},
		{w.admin, "-A --origin " + w.ownerNS + "/late", "c ReadWrite Revoked NotShared"},
	} {
		got := w.list(tc.who, strings.Fields(tc.args)...)
		if got.String() != tc.want {
			t.Errorf("%s: mooring list %s: got %s; want %s", tc.who.name, tc.args, got, tc.want)
		}
		if (len(got.NotVisible) == 0) != (tc.who == w.admin) {
			t.Errorf("%s: not visible: %v", tc.who.name, got.NotVisible)
		}
	}
	if got := w.list(w.admin, "-n", w.tenantNS); got.Mirrors[0].ServedBy == "" || got.Mirrors[0].Origin != w.ownerNS+"/data" {
		t.Errorf("the record is not read: %+v", got.Mirrors[0])
	}
	w.says(w.mooring(w.tenant, "list", "-n", w.tenantNS, "-o", "name"), 0, w.tenantNS+"/a\n"+w.tenantNS+"/b\n", "not visible to you")
	w.says(w.mooring(w.admin, "list", "-A", "--origin", w.ownerNS+"/data", "-o", "wide"), 0, "SERVED-BY", tenantsOnly)

	// What is not shared looks the same whether it exists or not.
	w.isSaid(w.mirror(w.tenantNS, "x", origin{PersistentVolumeClaim: named(w.ownerNS, "absent")}), mirror.NotShared)
	got := w.list(w.tenant, "-n", w.tenantNS)
	private2, absent := got.Mirrors[1], got.Mirrors[3]
	private2.Name, private2.Origin, absent.Name, absent.Origin = "", "", "", ""
	if private2 != absent {
		t.Errorf("a private origin: %v; an absent one: %v", private2, absent)
	}

	// The picture is of the same.
	for _, who := range []person{w.admin, w.tenant} {
		svg := w.mooring(who, "map", "-n", w.tenantNS)
		w.says(svg, 0, "<svg ", "namespace "+w.tenantNS, "read-write, Revoked: NotShared")
		w.says(w.mooring(who, "map", "-n", w.tenantNS, "-o", "dot"), 0, "digraph", "private")
		w.says(w.mooring(who, "map", "-n", w.tenantNS, "-o", "mermaid"), 0, "flowchart LR", w.ownerNS)
	}
	w.says(w.mooring(w.admin, "map", "--origin", w.ownerNS+"/late", "-o", "json"), 0, `"name": "late"`, `"state": "Revoked"`)
	w.says(w.mooring(w.owner, "map", "-n", w.ownerNS, "-o", "json"), 0, `"origins": []`, "not visible to you")
}

// What changes is told as it comes, and a signal ends it well.
func TestListWatches(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	shared := w.origin(w.ownerNS, "data", granting(tenantsOnly))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, errs := &buffer{}, &bytes.Buffer{}
	ended := make(chan int)
	go func() {
		ended <- cli.Run(ctx, []string{"list", "--watch", "-n", w.tenantNS, "--kubeconfig=" + w.tenant.kubeconfig}, cli.Env{Out: out, Err: errs, Version: "test"})
	}()
	claim := w.mirror(w.tenantNS, "m", shared)
	says := func(word string) {
		t.Helper()
		w.until("the watch says "+word, func(context.Context) string {
			if slices.Contains(strings.Fields(out.String()), word) {
				return ""
			}
			return "it has told:\n" + out.String()
		}, claim)
	}
	says("Bound")
	w.grantTo(shared.PersistentVolumeClaim, "-")
	says("Revoked")
	w.must(w.Delete(t.Context(), claim), "delete the mirror claim")
	says("Gone")
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	t.Logf("told:\n%s", out)
}

// buffer is a buffer that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func labelled(key, value string) claimEdit {
	return func(claim *corev1.PersistentVolumeClaim) { metav1.SetMetaDataLabel(&claim.ObjectMeta, key, value) }
}

func named(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
