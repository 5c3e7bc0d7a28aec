package forge_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// hub is a caller's repository, GitHub's API about it, and a place that serves the
// program: what the workflow file of GitHub meets, run by act without containers.
// Instead of actions/checkout and upload-artifact, which a test can fetch from
// nowhere, small actions of the same inputs check out and keep files.
type hub struct {
	*checkout
	server     *httptest.Server
	kubeconfig string
	standIns   string
	owners     atomic.Value // what the API says
	digest     string       // of the program
	more       []string     // arguments of act
}

const checkoutStandIn = `name: check out
inputs:
  ref: {required: true}
  persist-credentials: {required: true}
runs:
  using: composite
  steps:
    - shell: bash
      env: {REF: "${{ inputs.ref }}"}
      run: |
        git init -q .
        git fetch -q "$SOURCE" "$REF"
        git -c advice.detachedHead=false checkout -q FETCH_HEAD
`

const uploadStandIn = `name: keep a file
inputs:
  name: {required: true}
  path: {required: true}
  if-no-files-found: {required: true}
runs:
  using: composite
  steps:
    - shell: bash
      env: {NAME: "${{ inputs.name }}", FILE: "${{ inputs.path }}"}
      run: |
        if [ -e "$FILE" ]; then mkdir -p "$ARTIFACTS" && cp "$FILE" "$ARTIFACTS/$NAME.json"; fi
`

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{standIns: t.TempDir()}
	h.owners.Store("alice\n")
	h.server = httptest.NewTLSServer(http.HandlerFunc(h.answer))
	t.Cleanup(h.server.Close)
	program, err := os.ReadFile(built(t, "bin/mooring"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	h.digest = hex.EncodeToString(sum[:])
	caller := strings.NewReplacer(
		"https://downloads.example.com/mooring-linux-amd64", h.server.URL+"/mooring",
		strings.Repeat("0", 64), h.digest,
	).Replace(example(t, "ci/github.yml"))
	h.checkout = newCheckout(t, map[string]string{
		".github/workflows/volumes.yml": caller, "volumes/projects.yaml": example(t, "retained-nfs.yaml"),
		".mooring/owners": "alice\n", ".mooring/policy.yaml": example(t, "retained-policy.yaml"),
	})
	h.git("remote", "add", "origin", "https://github.com/team/storage.git")
	for name, text := range map[string]string{"checkout": checkoutStandIn, "upload": uploadStandIn} {
		dir := filepath.Join(h.standIns, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "action.yml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(h.standIns, "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	h.kubeconfig = identity(t)
	return h
}

// answer is GitHub's API about the repository, and the place of the program.
func (h *hub) answer(w http.ResponseWriter, r *http.Request) {
	file := func(text string) {
		fmt.Fprintf(w, `{"type":"file","encoding":"base64","size":%d,"content":%q}`, len(text), base64.StdEncoding.EncodeToString([]byte(text)))
	}
	switch r.URL.Path {
	case "/mooring":
		http.ServeFile(w, r, root+"/bin/mooring")
	case "/repos/team/storage":
		fmt.Fprint(w, `{"full_name":"team/storage","fork":false,"default_branch":"main"}`)
	case "/repos/team/storage/branches/main":
		fmt.Fprintf(w, `{"name":"main","protected":true,"commit":{"sha":%q}}`, h.head())
	case "/repos/team/storage/contents/.mooring/owners":
		file(fmt.Sprint(h.owners.Load()))
	case "/repos/team/storage/contents/.mooring/policy.yaml":
		file(example(h.T, "retained-policy.yaml"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// identity applies examples/retain-rbac.yaml and returns the kubeconfig of its account.
func identity(t *testing.T) string {
	t.Helper()
	cp := plane.ForTest(t)
	api, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(example(t, "retain-rbac.yaml"), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), &object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	account, err := cp.ServiceAccount(t.Context(), "mooring-retain", "retain")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := account.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// dispatch runs the caller's workflow, and returns what was told and the receipts.
func (h *hub) dispatch(actor string, inputs map[string]string) (result, map[string]receipt.Receipt) {
	h.Helper()
	event, err := json.Marshal(map[string]any{"inputs": inputs})
	if err != nil {
		h.Fatal(err)
	}
	home := h.TempDir()
	eventFile, artifacts := filepath.Join(home, "event.json"), filepath.Join(home, "artifacts")
	if err := os.WriteFile(eventFile, event, 0o600); err != nil {
		h.Fatal(err)
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		h.Fatal(err)
	}
	ca := filepath.Join(h.standIns, "ca.pem")
	args := []string{
		"workflow_dispatch", "-C", h.dir, "-e", eventFile, "-a", actor, "-P", "ubuntu-latest=-self-hosted",
		"--no-skip-checkout", "--no-cache-server", "--container-daemon-socket", "-", "--use-new-action-cache",
		"--action-cache-path", filepath.Join(home, "cache"),
		"--local-repository", "mooring-k8s/mooring@" + strings.Repeat("0", 40) + "=" + absolute,
		// The other forges' files pin another version of it.
		"--local-repository", "actions/checkout@34e114876b0b11c390a56381ad16ebd13914f8d5=" + filepath.Join(h.standIns, "checkout"),
		"--local-repository", action("checkout") + "=" + filepath.Join(h.standIns, "checkout"),
		"--local-repository", action("upload-artifact") + "=" + filepath.Join(h.standIns, "upload"),
		"--env", "GITHUB_API_URL=" + h.server.URL, "--env", "SSL_CERT_FILE=" + ca, "--env", "CURL_CA_BUNDLE=" + ca,
		"--env", "SOURCE=" + h.dir, "--env", "ARTIFACTS=" + artifacts, "-s", "GITHUB_TOKEN=job-token-1234", "-s", "KUBECONFIG",
	}
	got := run(h.Context(), home, []string{"KUBECONFIG=" + h.kubeconfig, "XDG_CACHE_HOME=" + home}, built(h.T, ".cache/forge/act"), append(args, h.more...)...)
	h.noSecret(got.text)
	receipts := map[string]receipt.Receipt{}
	files, err := filepath.Glob(filepath.Join(artifacts, "*.json"))
	if err != nil {
		h.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			h.Fatal(err)
		}
		h.noSecret(string(data))
		record, err := receipt.Decode(data)
		if err != nil {
			h.Fatal(err)
		}
		receipts[record.Action] = record
	}
	return got, receipts
}

// noSecret fails if the account's token stands in text.
func (h *hub) noSecret(text string) {
	h.Helper()
	for _, token := range regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`).FindAllString(h.kubeconfig, -1) {
		if strings.Contains(text, token) || strings.Contains(text, token[len(token)-40:]) {
			h.Errorf("the token is told:\n%s", text)
		}
	}
}

var pins = regexp.MustCompile(`uses: (actions/([\w-]+)@[0-9a-f]{40})`)

// action returns an action as the workflow file pins it.
func action(name string) string {
	data, err := os.ReadFile(root + "/.github/workflows/retained-volume.yml")
	if err != nil {
		return err.Error()
	}
	for _, match := range pins.FindAllStringSubmatch(string(data), -1) {
		if match[2] == name {
			return match[1]
		}
	}
	return "no action " + name
}

// volumes returns how many the cluster has.
func volumes(t *testing.T) int {
	t.Helper()
	list, err := kubernetes.NewForConfigOrDie(plane.ForTest(t).Admin()).CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// The GitHub file from its caller in examples/ to a volume: preview, a digest that
// nobody approved, approval, create, and again, when nothing is left to do.
func TestGitHubWorkflow(t *testing.T) {
	h := newHub(t)
	before := volumes(t)
	preview, receipts := h.dispatch("alice", map[string]string{"mode": "preview", "approved-plan": ""})
	seen := receipts["preview"]
	if preview.code != 0 || seen.Outcome != receipt.WouldCreate || len(receipts) != 1 || volumes(t) != before {
		t.Fatalf("preview: exit code %d, %d volume(s), receipts %+v\n%s", preview.code, volumes(t), receipts, preview.text)
	}
	if !strings.Contains(preview.text, "gate         open") || !strings.Contains(preview.text, seen.PlanDigest) {
		t.Errorf("preview: gate or digest is not told\n%s", preview.text)
	}
	for name, plan := range map[string]string{"another digest": "sha256:" + strings.Repeat("1", 64), "none": ""} {
		refused, receipts := h.dispatch("alice", map[string]string{"mode": "create", "approved-plan": plan})
		if refused.code == 0 || volumes(t) != before || receipts["create"].Outcome == receipt.Created {
			t.Fatalf("%s: exit code %d, %d volume(s)\n%s", name, refused.code, volumes(t), refused.text)
		}
	}
	created, receipts := h.dispatch("alice", map[string]string{"mode": "create", "approved-plan": seen.PlanDigest})
	if created.code != 0 || receipts["create"].Outcome != receipt.Created || receipts["create"].Approval.PlanDigest != seen.PlanDigest || volumes(t) != before+1 {
		t.Fatalf("create: exit code %d, %d volume(s), receipts %+v\n%s", created.code, volumes(t), receipts, created.text)
	}
	again, receipts := h.dispatch("alice", map[string]string{"mode": "create", "approved-plan": seen.PlanDigest})
	if again.code != 0 || receipts["create"].Outcome != receipt.Unchanged || receipts["preview"].Outcome != receipt.Unchanged || volumes(t) != before+1 {
		t.Fatalf("again: exit code %d, receipts %+v\n%s", again.code, receipts, again.text)
	}
	usedExactly(t)
}

// Where the gate is closed no later job runs, and nobody reads the secret.
func TestGitHubWorkflowRefuses(t *testing.T) {
	h := newHub(t)
	h.kubeconfig = "nobody may look at this"
	for _, row := range []struct {
		name, actor string
		inputs      map[string]string
		change      func()
		want        string
	}{
		{"stranger", "mallory", map[string]string{"mode": "preview"}, func() {}, `"mallory" is not among the owners`},
		{"owner no more", "alice", map[string]string{"mode": "create", "approved-plan": "sha256:" + strings.Repeat("1", 64)}, func() { h.owners.Store("bob\n") }, `"alice" is not among the owners`},
		{"another mode", "alice", map[string]string{"mode": "delete"}, func() { h.owners.Store("alice\n") }, "mode: is 'delete'; expected preview or create"},
		{"secret in the repository", "alice", map[string]string{"mode": "preview"}, func() {
			h.write(map[string]string{"notes.txt": "token = ghp_" + letters(36) + "\n"})
			h.commit()
		}, "notes.txt:1: looks like a secret (github-pat)"},
	} {
		row.change()
		got, receipts := h.dispatch(row.actor, row.inputs)
		if got.code == 0 || !strings.Contains(got.text, row.want) || len(receipts) > 0 ||
			strings.Contains(got.text, "kubeconfig-refused") || strings.Contains(got.text, "ci preview") {
			t.Errorf("%s: exit code %d, receipts %+v\n%s", row.name, got.code, receipts, got.text)
		}
	}
}

// A program that is not the one of the digest is never run.
func TestGitHubWorkflowOtherProgram(t *testing.T) {
	h := newHub(t)
	caller := filepath.Join(h.dir, ".github/workflows/volumes.yml")
	text, err := os.ReadFile(caller)
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`mooring-sha256: "[0-9a-f]{64}"`).ReplaceAllString(string(text), `mooring-sha256: "`+strings.Repeat("2", 64)+`"`)
	h.write(map[string]string{".github/workflows/volumes.yml": other})
	h.commit()
	got, receipts := h.dispatch("alice", map[string]string{"mode": "preview"})
	if got.code == 0 || len(receipts) > 0 || strings.Contains(got.text, "gate         ") || !strings.Contains(got.text, "FAILED") {
		t.Errorf("exit code %d, receipts %+v\n%s", got.code, receipts, got.text)
	}
}
