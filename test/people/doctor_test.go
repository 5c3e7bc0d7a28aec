package people_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/doctor"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// endedWithProblems is doctor's exit code where something is wrong.
const endedWithProblems = 19

// What doctor finds is there, with its remedy, and what it may not see is said.
// The plane is shared, so that only what this test made is looked for.
func TestDoctor(t *testing.T) {
	t.Parallel()
	w := gateOff.world(t)
	o := w.origin(w.ownerNS, "data", granting(tenantsOnly))
	bound := w.mirror(w.tenantNS, "bound", o)
	w.isBound(bound)
	revoked := w.mirror(w.tenantNS, "revoked", w.origin(w.ownerNS, "lost", granting(tenantsOnly)))
	w.isBound(revoked)
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.ownerNS, Name: "lost"}, o.PersistentVolumeClaim), "get an origin")
	w.grantTo(o.PersistentVolumeClaim, "-")
	w.isSaid(revoked, mirror.NotShared)

	got := w.mooring(w.admin, "doctor", "-o", "json")
	var found struct {
		Provisioner string           `json:"provisioner"`
		Findings    []doctor.Finding `json:"findings"`
	}
	w.says(got, endedWithProblems)
	w.must(json.Unmarshal([]byte(got.out), &found), "read the findings: %s", got)
	by := map[string]doctor.Finding{}
	for _, finding := range found.Findings {
		by[finding.Check+" "+finding.Object] = finding
	}
	if finding := by["mirrors pvc/"+w.tenantNS+"/revoked"]; finding.Level != doctor.Problem || finding.Remedy != "mooring explain "+w.tenantNS+"/revoked" {
		t.Errorf("the revoked mirror: %+v", finding)
	}
	if _, sick := by["mirrors pvc/"+w.tenantNS+"/bound"]; sick {
		t.Errorf("a healthy mirror is a finding: %s", got)
	}
	if finding := by["references "]; finding.Level != doctor.Note {
		t.Errorf("that references are dropped: %+v", finding)
	}
	w.says(w.mooring(w.admin, "doctor"), endedWithProblems, "problem mirrors: pvc/"+w.tenantNS+"/revoked", "→ mooring explain", "ok      handles")

	// A tenant sees little, is told so, and gets no error for it.
	asTenant := w.mooring(w.tenant, "doctor", "-n", w.tenantNS)
	if asTenant.code != 0 && asTenant.code != endedWithProblems {
		t.Errorf("as tenant: %s", asTenant)
	}
	w.says(asTenant, asTenant.code, "note: not visible to you: persistentvolumeclaims of all namespaces, persistentvolumes")

	dir := t.TempDir()
	w.says(w.mooring(w.admin, "doctor", "--receipts", dir), 2, "holds no file *.json")
	w.must(os.WriteFile(filepath.Join(dir, "r.json"), []byte("{}"), 0o600), "write a receipt")
	w.says(w.mooring(w.admin, "doctor", "--receipts", dir), endedWithProblems, "receipts: "+filepath.Join(dir, "r.json"))
}
