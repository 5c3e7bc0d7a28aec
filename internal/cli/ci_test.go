package cli_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/cli"
)

// ciRun is a run of a workflow on a forge that a test plays.
type ciRun struct {
	*testing.T
	dir, summary, outputs, commit string
	owners, policy                string
	protected                     bool
}

func newCIRun(t *testing.T, files map[string]string) *ciRun {
	t.Helper()
	r := &ciRun{T: t, dir: t.TempDir(), owners: "alice\n", protected: true}
	r.summary, r.outputs = filepath.Join(t.TempDir(), "summary"), filepath.Join(t.TempDir(), "outputs")
	r.git("init", "-q", "-b", "main")
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.git("add", "-A")
	r.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "volumes")
	r.commit = r.git("rev-parse", "HEAD")
	server := httptest.NewServer(http.HandlerFunc(r.answer))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"GITHUB_API_URL": server.URL, "GITHUB_TOKEN": "job-token", "GITHUB_EVENT_NAME": "workflow_dispatch",
		"GITHUB_RUN_ATTEMPT": "1", "GITHUB_ACTOR": "alice", "GITHUB_TRIGGERING_ACTOR": "alice", "GITHUB_REF": "refs/heads/main",
		"GITHUB_SHA": r.commit, "GITHUB_REPOSITORY": "team/storage", "GITHUB_STEP_SUMMARY": r.summary, "GITHUB_OUTPUT": r.outputs,
	} {
		t.Setenv(name, value)
	}
	return r
}

func (r *ciRun) git(args ...string) string {
	r.Helper()
	out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
	if err != nil {
		r.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *ciRun) answer(w http.ResponseWriter, q *http.Request) {
	file := func(text string) {
		fmt.Fprintf(w, `{"type":"file","encoding":"base64","size":%d,"content":%q}`, len(text), base64.StdEncoding.EncodeToString([]byte(text)))
	}
	switch q.URL.Path {
	case "/repos/team/storage":
		fmt.Fprint(w, `{"full_name":"team/storage","fork":false,"default_branch":"main"}`)
	case "/repos/team/storage/branches/main":
		fmt.Fprintf(w, `{"name":"main","protected":%v,"commit":{"sha":%q}}`, r.protected, r.commit)
	case "/repos/team/storage/rules/branches/main":
		fmt.Fprint(w, `[]`)
	case "/repos/team/storage/contents/.mooring/owners":
		file(r.owners)
	case "/repos/team/storage/contents/policy.yaml":
		file(r.policy)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (r *ciRun) mooring(args ...string) (code int, out, errs string) {
	r.Helper()
	var o, e bytes.Buffer
	args = append([]string{"ci"}, append(args, "--forge", "github", "--checkout", r.dir)...)
	code = cli.Run(r.Context(), args, cli.Env{Out: &o, Err: &e, Version: "test"})
	return code, o.String(), e.String()
}

func (r *ciRun) read(file string) string {
	r.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	return string(data)
}

func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestGateOpens(t *testing.T) {
	r := newCIRun(t, map[string]string{"v.yaml": example(t, "retained-nfs.yaml")})
	r.policy = example(t, "retained-policy.yaml")
	code, out, errs := r.mooring("gate", "--manifest", "\n v.yaml \n", "--policy", "policy.yaml")
	if code != 0 || !strings.HasPrefix(out, "gate         open, team/storage at "+r.commit+", dispatched by alice\n") || errs != "" {
		t.Fatalf("got %d\n%s%s", code, out, errs)
	}
	if got := r.read(r.outputs); got != "gate=open\n" {
		t.Errorf("outputs %q", got)
	}
	if got := r.read(r.summary); !strings.Contains(got, "### Gate: open") || strings.Contains(got, "**no**") {
		t.Errorf("summary %s", got)
	}
	code, out, _ = r.mooring("gate", "--manifest", "v.yaml", "--format", "json")
	var verdict struct {
		Open       bool
		Conditions []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(out), &verdict); err != nil || code != 0 || !verdict.Open || len(verdict.Conditions) != 12 {
		t.Errorf("got %d, %v, %s", code, err, out)
	}
}

func TestGateStaysClosed(t *testing.T) {
	token := "ghp_" + (rand.Text() + rand.Text())[:36] // made here, so that none stands in the source
	r := newCIRun(t, map[string]string{"v.yaml": example(t, "retained-bad.yaml"), "notes.txt": "token = " + token + "\n"})
	r.owners, r.protected = "carol\n", false
	code, out, errs := r.mooring("gate", "--manifest", "v.yaml")
	if code != 91 || !strings.HasPrefix(errs, "gate-not-owner: protected branch: ") || !strings.Contains(errs, "\nnext: An owner dispatches") {
		t.Errorf("got %d\n%s%s", code, out, errs)
	}
	all := out + errs + r.read(r.summary)
	for _, want := range []string{
		`the branch "main" is not protected`, `"alice" is not among the owners`, "manifests: v.yaml: ",
		"found    notes.txt:1: looks like a secret (github-pat)", "| notes.txt:1 | github-pat |",
		"holds a PersistentVolume that is no acceptable retained volume",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not told in\n%s", want, all)
		}
	}
	if strings.Contains(all, token) {
		t.Errorf("the secret is told:\n%s", all)
	}
	if got := r.read(r.outputs); got != "gate=closed\n" {
		t.Errorf("outputs %q", got)
	}
}

// Before the gate is open nobody looks at the secret: one that is nonsense makes no
// difference. After that it is refused without being told.
func TestSecretAfterTheGate(t *testing.T) {
	for _, row := range []struct {
		owners, secret string
		code           int
		want           string
	}{
		{"carol\n", "nonsense-9f8e7d", 91, "gate-not-owner: "},
		{"alice\n", "nonsense-9f8e7d", 13, "kubeconfig-refused: $MOORING_KUBECONFIG: "},
		{"alice\n", "", 13, "kubeconfig-refused: $MOORING_KUBECONFIG: is empty; expected the kubeconfig, as a secret of the repository or environment"},
	} {
		for _, command := range [][]string{{"preview"}, {"create", "--approved-plan", "sha256:" + strings.Repeat("0", 64), "-o", filepath.Join(t.TempDir(), "r.json")}} {
			r := newCIRun(t, map[string]string{"v.yaml": example(t, "retained-nfs.yaml")})
			r.owners = row.owners
			t.Setenv("MOORING_KUBECONFIG", row.secret)
			code, out, errs := r.mooring(append(command, "--manifest", "v.yaml")...)
			if code != row.code || !strings.Contains(errs, row.want) {
				t.Errorf("%s: got %d\n%s%s", command[0], code, out, errs)
			}
			if row.secret != "" && strings.Contains(out+errs+r.read(r.summary), row.secret) {
				t.Errorf("%s: the secret is told: %s%s", command[0], out, errs)
			}
			if _, there := os.LookupEnv("MOORING_KUBECONFIG"); there {
				t.Errorf("%s: the secret stays in the environment", command[0])
			}
		}
	}
}

func TestCIUsage(t *testing.T) {
	r := newCIRun(t, map[string]string{"v.yaml": "x\n"})
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"create", "--manifest", "v.yaml", "--approved-plan", "sha256:0"}, "usage: --receipt: missing; a create without a record is none: name a new file with -o\n"},
		{[]string{"gate", "--manifest", "v.yaml", "--format", "xml"}, "usage: --format: is \"xml\"; expected text or json\n"},
	} {
		if code, _, errs := r.mooring(row.args...); code != 2 || !strings.HasPrefix(errs, row.want) {
			t.Errorf("%q: got %d, %s", row.args, code, errs)
		}
	}
	t.Setenv("GITHUB_TOKEN", "")
	if code, _, errs := r.mooring("gate", "--manifest", "v.yaml"); code != 2 || !strings.HasPrefix(errs, "usage: GITHUB_TOKEN is empty; expected the job's token") {
		t.Errorf("got %d, %s", code, errs)
	}
	r.policy = "nonsense: true\n"
	t.Setenv("GITHUB_TOKEN", "job-token")
	if code, _, errs := r.mooring("gate", "--manifest", "v.yaml", "--policy", "policy.yaml"); code != 11 || !strings.HasPrefix(errs, "policy-invalid: policy.yaml: ") {
		t.Errorf("got %d, %s", code, errs)
	}
}

// after is a writer that acts once, when what is written says so.
type after struct {
	bytes.Buffer
	says string
	act  func()
}

func (a *after) Write(data []byte) (int, error) {
	if a.act != nil && bytes.Contains(data, []byte(a.says)) {
		a.act()
		a.act = nil
	}
	return a.Buffer.Write(data)
}

// What the gate compared is what is used: a manifest that changed when the gate was
// open is refused, before anybody looks at the secret.
func TestManifestChangedAfterTheGate(t *testing.T) {
	for name, change := range map[string]func(path, other string) error{
		"other bytes": func(path, _ string) error { return os.WriteFile(path, []byte("kind: PersistentVolume\n"), 0o600) },
		"a link":      func(path, other string) error { return errors.Join(os.Remove(path), os.Symlink(other, path)) },
	} {
		r := newCIRun(t, map[string]string{"v.yaml": example(t, "retained-nfs.yaml")})
		other := filepath.Join(t.TempDir(), "other.yaml")
		if err := os.WriteFile(other, []byte(strings.Replace(example(t, "retained-nfs.yaml"), "projects", "others", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"preview"}, {"create", "--approved-plan", "sha256:" + strings.Repeat("0", 64), "-o", filepath.Join(t.TempDir(), "r.json")}} {
			r.git("checkout", "-q", "--", ".")
			t.Setenv("MOORING_KUBECONFIG", "nonsense")
			var out bytes.Buffer
			errs := &after{says: "gate         open", act: func() {
				if err := change(filepath.Join(r.dir, "v.yaml"), other); err != nil {
					t.Error(err)
				}
			}}
			args := append(append([]string{"ci"}, command...), "--manifest", "v.yaml", "--forge", "github", "--checkout", r.dir)
			code := cli.Run(t.Context(), args, cli.Env{Out: &out, Err: errs, Version: "test"})
			if errs.act != nil || code != 10 || !strings.Contains(errs.String(), "manifest-invalid: v.yaml: changed after the gate looked at it; expected the file of the commit") {
				t.Errorf("%s, %s: got %d\n%s%s", name, command[0], code, out.String(), errs.String())
			}
		}
	}
}
