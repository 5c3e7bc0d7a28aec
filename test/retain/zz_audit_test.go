package retain_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/retain"
	"github.com/mooring-k8s/mooring/test/permissions"
)

// auditEvent is what the test reads of audit.k8s.io/v1 Event.
type auditEvent struct {
	Stage, Verb, UserAgent, RequestURI string
	ObjectRef                          *struct{ Resource, Subresource, Name string }
	ResponseStatus                     struct{ Code int }
}

// The API server's own record of everything that mooring did in this package's
// tests, whatever their outcome. The file's name makes it the last; alone it
// judges the two runs of its own.
func TestAuditLogShowsCreatesOnly(t *testing.T) {
	w := newWorld(t)
	w.want(w.mooring("create", w.write(w.volume("v")), "-o", w.file("receipt.json"), "--without-approval"), "")
	w.want(w.mooring("create", w.write(w.volume("again", change{"spec/nfs/path": w.path("v")})), "-o", w.file("receipt.json"), "--without-approval"), retain.BackendShared)

	file, err := os.Open(w.plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	made := map[string]int{}
	verbs := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(event.UserAgent, "mooring/") || event.Stage != "ResponseComplete" || event.ObjectRef == nil {
			continue
		}
		what := event.Verb + " " + event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			what += "/" + event.ObjectRef.Subresource
		}
		verbs[what]++
		if what == "create persistentvolumes" && !strings.Contains(event.RequestURI, "dryRun=All") && event.ResponseStatus.Code == 201 {
			made[event.ObjectRef.Name]++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []string{
		"get persistentvolumes", "list persistentvolumes", "create persistentvolumes", "get persistentvolumeclaims", "get namespaces",
		"create selfsubjectreviews", "create selfsubjectaccessreviews", "create selfsubjectrulesreviews",
	} {
		if verbs[allowed] == 0 {
			t.Errorf("the audit log shows no %s; is it mooring's?", allowed)
		}
		delete(verbs, allowed)
	}
	if len(verbs) > 0 {
		t.Errorf("mooring did more than it may: %v", verbs)
	}
	for name, times := range made {
		if times != 1 || name == "" {
			t.Errorf("volume %s was made %d times", name, times)
		}
	}
	if len(made) == 0 {
		t.Error("the audit log shows no volume that was made")
	}
	t.Logf("volumes made: %d", len(made))
}

// The documented identity lacks no right, and has none that no run used.
func TestIdentityHasNoRightTooMany(t *testing.T) {
	w := newWorld(t)
	w.want(w.mooring("create", w.write(w.volume("v")), "-o", w.file("receipt.json"), "--without-approval"), "")
	role, err := w.admin.RbacV1().ClusterRoles().Get(t.Context(), "mooring-retain", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Open(w.plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	report, err := permissions.Judge(log, permissions.Account{Namespace: "mooring-retain", Name: "retain", ClusterRules: role.Rules})
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range report.Refused {
		t.Errorf("it lacks a right: %s", refused)
	}
	for _, unused := range report.Unused {
		t.Errorf("nothing used its right to %s", unused)
	}
	if report.Requests == 0 || len(report.Used) == 0 {
		t.Errorf("the audit log shows %d requests of it, and that it used %q", report.Requests, report.Used)
	}
}

// Every reason that needs a cluster was given by one. Only a run of the whole
// package can tell.
func TestEveryReasonWasSeen(t *testing.T) {
	if filter := flag.Lookup("test.run"); filter != nil && filter.Value.String() != "" {
		t.Logf("nothing to tell: only %s runs", filter.Value)
		return
	}
	for _, info := range retain.Reasons() {
		if _, given := seen.Load(info.Reason); !given && info.ExitCode >= retain.InfoOf(retain.ReceiptUnwritable).ExitCode {
			t.Errorf("no test of this package saw %s", info.Reason)
		}
	}
}
