package people_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The exit codes of docs/exit-codes.md that scripts rely on.
const (
	exitGood     = 0
	exitRefused  = 3
	exitWaiting  = 4
	exitRevoked  = 5
	exitUnclear  = 6
	exitNotFound = 7
	exitNotOurs  = 8
	exitIsMirror = 9
)

// explained runs explain as a person and reads its JSON.
func (w *world) explained(who person, namespace, name string) (cli.Explanation, result) {
	w.Helper()
	var x cli.Explanation
	got := w.mooring(who, "explain", namespace+"/"+name, "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &x); err != nil {
		w.Fatalf("explain %s/%s as %s: %v\n%s", namespace, name, who.name, err, got)
	}
	return x, got
}

// Each way a claim can stand, as administrator, owner and tenant.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	shared := w.origin(w.ownerNS, "data", granting(tenantsOnly))
	bound := w.mirror(w.tenantNS, "bound", shared)
	w.isBound(bound)
	w.isSaid(w.mirror(w.tenantNS, "refused", w.origin(w.ownerNS, "private")), mirror.NotShared)
	w.isSaid(w.mirror(w.tenantNS, "large", shared, ofSize("11Gi")), mirror.TooLarge)
	w.isSaid(w.mirror(w.tenantNS, "waiting", w.pendingOrigin(w.ownerNS, "pending", granting(tenantsOnly))), mirror.OriginPending)
	ended := w.origin(w.ownerNS, "ended", granting(tenantsOnly))
	revoked := w.mirror(w.tenantNS, "revoked", ended)
	w.isBound(revoked)
	w.grantTo(ended.PersistentVolumeClaim, "-")
	w.isSaid(revoked, mirror.NotShared)

	for _, tc := range []struct {
		claim   string
		outcome mirror.Outcome
		reason  mirror.Reason
		code    int
		rung    int // where it stops; 0 where it does not
	}{
		{"bound", mirror.StandsBound, mirror.Mirrored, exitGood, 0},
		{"refused", mirror.StandsRefused, mirror.NotShared, exitRefused, 3},
		{"large", mirror.StandsRefused, mirror.TooLarge, exitRefused, 7},
		{"waiting", mirror.StandsWaiting, mirror.OriginPending, exitWaiting, 4},
		{"revoked", mirror.StandsRevoked, mirror.NotShared, exitRevoked, 2},
	} {
		for _, who := range []person{w.admin, w.tenant} {
			x, got := w.explained(who, w.tenantNS, tc.claim)
			wantFrom := "rules"
			if who.name != w.admin.name {
				wantFrom = "controller"
			}
			if x.Outcome != string(tc.outcome) || x.Reason != tc.reason || got.code != tc.code || x.From != wantFrom || stoppedAt(x) != tc.rung {
				t.Errorf("explain %s as %s: want %s %s by the %s, at rung %d, exit code %d:\n%s", tc.claim, who.name, tc.outcome, tc.reason, wantFrom, tc.rung, tc.code, got)
			}
			if (len(x.NotVisible) > 0) != (who.name != w.admin.name) {
				t.Errorf("explain %s as %s says not visible: %v", tc.claim, who.name, x.NotVisible)
			}
			if text := w.mooring(who, "explain", w.tenantNS+"/"+tc.claim); text.code != tc.code || strings.TrimSpace(text.out) == "" {
				t.Errorf("explain %s as %s in words: %s", tc.claim, who.name, text)
			} else {
				t.Logf("explain %s as %s:\n%s", tc.claim, who.name, text)
			}
		}
		if got := w.mooring(w.owner, "explain", w.tenantNS+"/"+tc.claim); got.code != exitNotFound || got.out != "" {
			t.Errorf("explain %s as the owner, who may not read the tenant's claims: %s", tc.claim, got)
		}
	}
	if x, got := w.explained(w.admin, w.tenantNS, "bound"); x.Source == nil || x.Source.OriginVolume != shared.volume.Name || x.Source.Since == nil ||
		x.Source.GrantedBy != names.ReadWriteGrant()+": "+tenantsOnly || len(x.Source.Ends) == 0 || x.Source.Then == "" {
		t.Errorf("where the data come from: %s", got)
	}
	if got := w.mooring(w.owner, "explain", w.ownerNS+"/data"); got.code != exitNotOurs || !strings.Contains(got.err, "mooring access") {
		t.Errorf("explain of an origin: %s", got)
	}
	if got := w.mooring(w.tenant, "explain", w.tenantNS+"/missing"); got.code != exitNotFound {
		t.Errorf("explain of a claim that is missing: %s", got)
	}
}

// stoppedAt returns the number of the step that stopped, 0 if none did.
func stoppedAt(x cli.Explanation) int {
	for i, step := range x.Steps {
		if step.Outcome == mirror.Stopped {
			return i + 1
		}
	}
	return 0
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// What explain and access tell a tenant of claims that are not shared with it
// does not depend on whether they exist: byte for byte, names made equal.
func TestNoExistenceOracle(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	private := w.origin(w.ownerNS, "private") // exists
	absent := origin{PersistentVolumeClaim: &corev1.PersistentVolumeClaim{}}
	absent.Namespace, absent.Name = w.ownerNS, "missing" // as long as private
	elsewhere := origin{PersistentVolumeClaim: &corev1.PersistentVolumeClaim{}}
	elsewhere.Namespace, elsewhere.Name = w.ownerNS[:len(w.ownerNS)-1]+"x", "missing" // as long too: YAML folds lines
	broken := w.origin(w.ownerNS, "spoiled", granting("=!="))

	asks := map[string]origin{"mprivat": private, "mmissin": absent, "melsewh": elsewhere, "mspoile": broken}
	for name, of := range asks {
		claim := w.mirror(w.tenantNS, name, of)
		w.isSaid(claim, mirror.NotShared)
	}
	equal := func(r result, own string, of origin) string {
		text := strings.NewReplacer(w.tenantNS+"/"+own, "MIRROR", of.Namespace+"/"+of.Name, "ORIGIN", of.Namespace, "NAMESPACE").Replace(r.String())
		return times.ReplaceAllString(text, "TIME")
	}
	for _, args := range [][]string{{"explain", "MIRROR"}, {"explain", "MIRROR", "-o", "json"}, {"explain", "MIRROR", "-o", "yaml"},
		{"access", "ORIGIN"}, {"access", "ORIGIN", "-o", "json"}, {"access", "ORIGIN", "--as-of-selector", "type"}, {"explain", "ORIGIN"}, {"explain", "ORIGIN", "-o", "json"}} {
		answers := map[string][]string{}
		for name, of := range asks {
			asked := append([]string{}, args...)
			asked[1] = strings.NewReplacer("MIRROR", w.tenantNS+"/"+name, "ORIGIN", of.Namespace+"/"+of.Name).Replace(args[1])
			answer := equal(w.mooring(w.tenant, asked...), name, of)
			answers[answer] = append(answers[answer], of.Name)
		}
		if len(answers) != 1 {
			t.Errorf("mooring %s tells a tenant which claims exist: %q", strings.Join(args, " "), answers)
		}
	}
}
