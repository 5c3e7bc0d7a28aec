package chaos_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/test/chaos/proxy"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/model"
)

// TestCommandsUnderFaults runs the people's commands that only read while their
// requests meet the faults of each schedule: what they say with exit code 0 is
// what they say without faults, and else they say what is wrong. Nothing is told
// as absent that could not be read.
func TestCommandsUnderFaults(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	controller := install(t, plane).replica(t, "mooring-0", "--leader-elect=false")
	m := model.New(t, model.Options{Plane: plane, Controller: controller, Origins: 4, Owners: 2, Claims: 8, Tenants: 4})
	m.Claims()
	m.Rest()
	m.EndGrant(1)
	m.Rest()
	via := newProxy(t, plane)
	kubeconfig := asAdministrator(t, plane, via)
	commands := [][]string{
		{"list", "-A", "-o", "json"},
		{"access", m.OriginName(0), "-o", "json"},
		{"explain", m.ClaimName(1), "-o", "json"},
		{"doctor", "-o", "json"},
	}
	truths := map[string]answer{}
	for _, command := range commands {
		truths[strings.Join(command, " ")] = mooring(t, kubeconfig, command)
	}
	told, refused := 0, 0
	for _, name := range proxy.Names() {
		schedule, err := proxy.Named(name, chosen.seed)
		noError(t, err, "the schedule")
		via.Disturb(schedule)
		for range shortOr(2, 25) {
			for _, command := range commands {
				what := strings.Join(command, " ")
				got := mooring(t, kubeconfig, command)
				switch truth := truths[what]; {
				case got.code == truth.code && got.out == truth.out:
					told++
				case got.code == truth.code:
					t.Errorf("schedule %s: mooring %s ended with %d and says\n%s%s\ninstead of\n%s", name, what, got.code, got.out, got.err, truth.out)
				case got.code == 0 || got.err == "" || strings.Contains(got.err, "panic"):
					t.Errorf("schedule %s: mooring %s ended with %d and says\n%s%s", name, what, got.code, got.out, got.err)
				default:
					refused++
				}
			}
		}
	}
	faults, which := via.Faults()
	t.Logf("%d answers were those without faults, %d commands said that they could not read; %d faults: %s", told, refused, faults, which)
}

// answer is how a command ended.
type answer struct {
	code     int
	out, err string
}

func mooring(t *testing.T, kubeconfig string, args []string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), append(args[:len(args):len(args)], "--kubeconfig", kubeconfig, "--request-timeout", "5s"),
		cli.Env{Out: &out, Err: &errs, Version: "test"})
	return answer{code, known(t, args[0], out.String()), errs.String()}
}

// known returns what a command says but for what doctor says that it could not
// ask.
func known(t *testing.T, command, said string) string {
	t.Helper()
	if command != "doctor" || said == "" {
		return said
	}
	var found map[string]any
	noError(t, json.Unmarshal([]byte(said), &found), "read what doctor says:\n%s", said)
	findings, _ := found["findings"].([]any)
	found["findings"] = slices.DeleteFunc(findings, func(f any) bool { return strings.Contains(fmt.Sprint(f), "could not be asked") })
	data, err := json.Marshal(found)
	noError(t, err, "write what doctor says")
	return string(data)
}

// asAdministrator returns a kubeconfig that leads through a proxy with a token
// that may do everything: a certificate would end at the proxy.
func asAdministrator(t *testing.T, plane *controlplane.ControlPlane, via *proxy.Proxy) string {
	t.Helper()
	admin, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	const name = "everything"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	noError(t, admin.Create(t.Context(), account), "create an account")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}},
	}
	noError(t, admin.Create(t.Context(), binding), "let it do everything")
	return tokenFile(t, plane, via, account.Namespace+"/"+name)
}

// tokenFile returns a kubeconfig that leads through a proxy, of an account.
func tokenFile(t *testing.T, plane *controlplane.ControlPlane, via *proxy.Proxy, account string) string {
	t.Helper()
	namespace, name, _ := strings.Cut(account, "/")
	identity, err := plane.ServiceAccount(t.Context(), namespace, name)
	noError(t, err, "ask for a token")
	data, err := via.Kubeconfig(identity.Config.BearerToken)
	noError(t, err, "make a kubeconfig")
	file := filepath.Join(t.TempDir(), fmt.Sprintf("%s.kubeconfig", name))
	noError(t, os.WriteFile(file, data, 0o600), "write a kubeconfig")
	return file
}
