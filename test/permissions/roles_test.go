package permissions

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mooring-k8s/mooring/test/chart"
)

// mainCases are the tests that a controller's whole life is made of: mirrors that
// are made, refused, changed by others, grown, revoked, restored, and gone.
const mainCases = "TestMirrorVolume|TestReadOnlyMirror|TestOriginIsHeld|TestFinalizerIsPutBack|TestReleasedVolumeGoes|TestOwnVolumeIsMet|" +
	"TestDriftIsRepaired|TestReferenceDrift|TestGrowth|TestOriginDeletionIsHeld|TestWakeups|TestRestoredNameIsNobodysKey|TestBrakeIsLiftedLater|TestToldAgain"

// listing has Kubernetes' clients list and then watch, as they do where the API server
// does not stream lists (before 1.34); else a watch is all.
const listing = "KUBE_FEATURE_WatchListClient=false"

// runs are the suite's main cases under roles of every shape: tests that share an
// installation have one with these values; others have their own.
var runs = []struct {
	name, tests, environment string
	values                   map[string]any
}{
	{"as it is installed", mainCases + "|TestEveryReason|TestLeaderKilled|TestOnlyServedNamespaces|TestTwoInstallations", "", nil},
	{"a class that deletes", "TestMirrorVolume|TestRevocation|TestOriginDeletionEndsMirrors|TestBrakeHoldsThousands|TestInstances", "", map[string]any{"class": map[string]any{"onRevoke": "Delete", "revokeAfter": "24h"}}},
	{"classes made elsewhere", mainCases, listing, map[string]any{"allowClaimDeletion": true}},
	{"without an election", mainCases, listing, map[string]any{"leaderElect": false, "replicas": 1}},
	{"every policy, some namespaces, known drivers", mainCases, listing, map[string]any{
		"namespaceSelector": "kubernetes.io/metadata.name", "unknownDrivers": "refuse", "adopt": "Off",
		"policies": map[string]any{"records": map[string]any{"enabled": true}},
	}},
	{"clean-up and adoption", "TestCleanup|TestCleanupIsInterrupted|TestCleanupRefuses|TestAdoption", "", nil},
}

// toggles are the values that a role depends on, or could: what each renders must
// have been run.
var toggles = map[string]map[string]any{
	"the defaults":            nil,
	"class.onRevoke":          {"class": map[string]any{"onRevoke": "Delete"}},
	"classes":                 {"classes": []any{map[string]any{"name": "d", "onRevoke": "Delete"}}},
	"class.create":            {"class": map[string]any{"create": false}},
	"allowClaimDeletion":      {"allowClaimDeletion": true},
	"leaderElect":             {"leaderElect": false, "replicas": 1},
	"namespaceSelector":       {"namespaceSelector": "a=b"},
	"provisionerName":         {"provisionerName": "mirror.example.com"},
	"adopt":                   {"adopt": "Enforce"},
	"adopt: Off":              {"adopt": "Off"},
	"unknownDrivers":          {"unknownDrivers": "refuse"},
	"cleanup.allInstances":    {"cleanup": map[string]any{"allInstances": true}},
	"metrics.enabled":         {"metrics": map[string]any{"enabled": false}},
	"metrics.service.create":  {"metrics": map[string]any{"service": map[string]any{"create": true}}},
	"fences.enabled":          {"fences": map[string]any{"enabled": false}},
	"replicas":                {"replicas": 1},
	"podDisruptionBudget":     {"podDisruptionBudget": map[string]any{"enabled": false}},
	"networkPolicy.enabled":   {"networkPolicy": map[string]any{"enabled": true}},
	"policies.records":        {"policies": map[string]any{"records": map[string]any{"enabled": true}}},
	"maxRevocations":          {"maxRevocations": 0},
	"cleanup without a lease": {"leaderElect": false, "replicas": 0},
}

// Under the role that the chart renders, whatever is chosen, Mooring lacks no right,
// and has none that it does not use.
func TestRoles(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "integration.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "./integration")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the integration suite: %v\n%s", err, out)
	}
	judged := shapes{}
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			kept := t.TempDir()
			values, err := json.Marshal(run.values)
			if err != nil {
				t.Fatal(err)
			}
			suite := exec.CommandContext(t.Context(), binary, "-test.run", "^("+run.tests+")$", "-test.v", "-test.parallel=16", "-test.timeout=15m",
				"-chart-values="+string(values), "-keep-in="+kept)
			suite.Dir, suite.Env = filepath.Join("..", "integration"), append(os.Environ(), run.environment)
			if out, err := suite.CombinedOutput(); err != nil {
				t.Fatalf("the suite fails: %v\n%s", err, failures(string(out)))
			}
			judged.judge(t, kept)
		})
	}
	if !t.Failed() {
		judged.expect(t)
	}
}

// failures is what failed tests say, without the many that passed.
func failures(out string) string {
	const most = 20000
	if at := strings.Index(out, "--- FAIL"); at >= 0 {
		out = out[max(0, at-most/2):]
	}
	return out[:min(len(out), most)]
}

// shapes are the roles that were met: by shape, the rights that nothing has used yet.
type shapes map[string]map[string]bool

// judge reads what a run has kept.
func (s shapes) judge(t *testing.T, kept string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kept, "*.roles.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d installations were kept: %v", len(files), err)
	}
	requests := map[string]int{}
	for _, file := range files {
		var installed struct {
			Plane string
			Account
		}
		content, err := os.ReadFile(file)
		if err = errors.Join(err, json.Unmarshal(content, &installed)); err != nil {
			t.Fatal(err)
		}
		report := judgeFile(t, filepath.Join(kept, installed.Plane+".audit.log"), installed.Account)
		for _, refused := range report.Refused {
			t.Errorf("%s lacks a right: %s", installed.User(), refused)
		}
		for _, denied := range report.Denied {
			t.Errorf("%s is kept from it by admission: %s", installed.User(), denied)
		}
		requests[installed.User()] += report.Requests
		s.add(t, installed.Account, report)
	}
	for _, user := range slices.Sorted(maps.Keys(requests)) {
		t.Logf("%s made %d requests", user, requests[user])
	}
}

func judgeFile(t *testing.T, name string, account Account) Report {
	t.Helper()
	log, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	report, err := Judge(log, account)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (s shapes) add(t *testing.T, account Account, report Report) {
	t.Helper()
	shape, err := account.Shape()
	if err != nil {
		t.Fatal(err)
	}
	if s[shape] == nil {
		s[shape] = map[string]bool{}
		for right := range strings.Lines(shape) {
			s[shape][strings.TrimSpace(right)] = true
		}
	}
	for _, right := range report.Used {
		delete(s[shape], right)
	}
}

// expect sees each toggle's roles among those that were met, with all of their
// rights used.
func (s shapes) expect(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(toggles)) {
		for account, what := range accountsOf(t, toggles[name]) {
			shape, err := account.Shape()
			if err != nil {
				t.Fatal(err)
			}
			unused, met := s[shape]
			if !met {
				t.Errorf("%s: the %s has a role that no run had:\n%s", name, what, shape)
			}
			for _, right := range slices.Sorted(maps.Keys(unused)) {
				t.Errorf("%s: the %s has a right that nothing used: %s", name, what, right)
			}
		}
	}
}

// accountsOf are those that the chart renders with these values: the controller's
// and the clean-up's.
func accountsOf(t *testing.T, set map[string]any) map[*Account]string {
	t.Helper()
	options := chart.Options{Values: map[string]any{"image": map[string]any{"repository": "registry.invalid/mooring-controller"}}}
	maps.Copy(options.Values, set)
	objects, err := chart.Render(options)
	if err != nil {
		t.Fatal(err)
	}
	hook, err := chart.Cleanup(options)
	if err != nil {
		t.Fatal(err)
	}
	return map[*Account]string{accountOf(t, objects): "controller", accountOf(t, hook.Objects): "clean-up"}
}

func accountOf(t *testing.T, objects []*unstructured.Unstructured) *Account {
	t.Helper()
	account := &Account{}
	for _, object := range objects {
		var role rbacv1.ClusterRole // a Role has the same field
		switch object.GetKind() {
		case "ServiceAccount":
			account.Namespace, account.Name = object.GetNamespace(), object.GetName()
		case "ClusterRole", "Role":
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				t.Fatal(err)
			}
			if object.GetKind() == "Role" {
				account.Rules = append(account.Rules, role.Rules...)
			} else {
				account.ClusterRules = append(account.ClusterRules, role.Rules...)
			}
		}
	}
	if account.Name == "" || len(account.ClusterRules) == 0 {
		t.Fatalf("no account among %d objects", len(objects))
	}
	return account
}
