package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/retain"
)

type result struct {
	code     int
	out, err string
}

func mooring(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), args, cli.Env{Out: &out, Err: &errs, Version: "v1.2.3", CommitDate: "2026-01-02T03:04:05Z"})
	return result{code, out.String(), errs.String()}
}

func exit(reason retain.Reason) int { return retain.InfoOf(reason).ExitCode }

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const (
	good     = "../../examples/retained-nfs.yaml"
	bad      = "../../examples/retained-bad.yaml"
	conflict = "../../examples/retained-conflict.yaml"
	policy   = "../../examples/retained-policy.yaml"
)

// What ends before a cluster is asked, with its exit code and what is said.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	narrow := write(t, "policy.yaml", "apiVersion: mooring-k8s.github.io/v1\nkind: RetainPolicy\nservers: []\ndrivers: []\nnamespaces: []\nstorageClasses: []\n")
	below := write(t, "below.yaml", strings.NewReplacer("name: projects\n", "name: below\n", "path: /export/projects", "path: /export/projects/below").Replace(string(read(t, good))))
	loose := write(t, "kubeconfig", "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: s3cr3t, exec: {command: x}}}]\n")
	for _, tc := range []struct {
		name string
		args []string
		want int
		says string // on the standard error output
	}{
		{"help", []string{"retain", "--help"}, 0, ""},
		{"nothing", []string{}, 0, ""},
		{"unknown command", []string{"reatin"}, exit(retain.Usage), "unknown command"},
		{"unknown flag", []string{"retain", "check", good, "--colour"}, exit(retain.Usage), "unknown flag"},
		{"bad value of a flag", []string{"retain", "preview", good, "--request-timeout", "soon"}, exit(retain.Usage), "invalid argument"},
		{"a missing file among bad ones", []string{"retain", "check", "no-such-file", bad}, exit(retain.ManifestInvalid), "spec.storageClassName"},
		{"no file", []string{"retain", "check"}, exit(retain.Usage), "at least 1 arg"},
		{"unknown format", []string{"retain", "check", good, "--format", "xml"}, exit(retain.Usage), "expected text or json"},
		{"good", []string{"retain", "check", good, conflict, "--policy", policy}, exit(retain.BackendShared), "reaches the same place"},
		{"one below the other", []string{"retain", "check", good, below, "--allow-overlap", "pv/projects"}, exit(retain.BackendNested), "--allow-overlap pv/below"},
		{"one below the other, named", []string{"retain", "check", good, below, "--allow-overlap", "pv/projects,pv/below"}, 0, ""},
		{"bad", []string{"retain", "check", good, bad}, exit(retain.ManifestInvalid), "spec.storageClassName"},
		{"no such file", []string{"retain", "check", "no-such-file"}, exit(retain.ManifestInvalid), "no-such-file"},
		{"outside the policy", []string{"retain", "check", good, "--policy", narrow}, exit(retain.PolicyDenied), "not allowed by the policy"},
		{"bad policy", []string{"retain", "check", good, "--policy", good}, exit(retain.PolicyInvalid), "no field of this name"},
		{"no such policy", []string{"retain", "check", good, "--policy", "no-such-file"}, exit(retain.PolicyInvalid), "no-such-file"},
		{"no kubeconfig", []string{"retain", "preview", good}, exit(retain.Usage), "--kubeconfig: missing"},
		{"loose kubeconfig", []string{"retain", "preview", good, "--kubeconfig", loose}, exit(retain.KubeconfigRefused), "users[0].user.exec"},
		{"no such kubeconfig", []string{"retain", "preview", good, "--kubeconfig", "no-such-file"}, exit(retain.KubeconfigRefused), "no-such-file"},
		{"no timeout", []string{"retain", "preview", good, "--kubeconfig", loose, "--request-timeout", "0s"}, exit(retain.Usage), "more than 0"},
		{"overlap without pv/", []string{"retain", "preview", good, "--allow-overlap", "x"}, exit(retain.Usage), "expected pv/NAME"},
		{"create without a receipt", []string{"retain", "create", good}, exit(retain.Usage), "--receipt: missing"},
		{"create without an approval", []string{"retain", "create", good, "-o", dir + "/r"}, exit(retain.ApprovalMissing), "--approved-plan"},
		{"create with two approvals", []string{"retain", "create", good, "-o", dir + "/r", "--approved-plan", "x", "--without-approval"}, exit(retain.Usage), "none of the others can be"},
		{"approval no receipt", []string{"retain", "create", good, "-o", dir + "/r", "--approved", good}, exit(retain.ReceiptInvalid), "retained-nfs.yaml"},
		{"verify no receipt", []string{"retain", "verify", good}, exit(retain.ReceiptInvalid), "no JSON"},
		{"verify nothing", []string{"retain", "verify", "no-such-file"}, exit(retain.ReceiptInvalid), "no-such-file"},
		{"export of a claim", []string{"retain", "export", "pvc/x", "--kubeconfig", loose}, exit(retain.Usage), "expected pv/NAME"},
		{"export of a path", []string{"retain", "export", "pv/x/../y", "--kubeconfig", loose}, exit(retain.Usage), "expected pv/NAME"},
		{"kubeconfig without a token", []string{"retain", "kubeconfig", "--server", "https://x", "--ca", good}, exit(retain.Usage), "--token-file: missing"},
		{"kubeconfig of no authority", []string{"retain", "kubeconfig", "--server", "https://x", "--ca", good, "--token-file", loose}, exit(retain.KubeconfigRefused), "no PEM certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := mooring(t, tc.args...)
			if r.code != tc.want || !strings.Contains(r.err, tc.says) {
				t.Fatalf("got %d; want %d and %q\n%s%s", r.code, tc.want, tc.says, r.out, r.err)
			}
			if r.code != 0 && !strings.Contains(r.err, "\nnext: ") {
				t.Errorf("nobody is told what to do: %s", r.err)
			}
			if strings.Contains(r.out+r.err, "s3cr3t") {
				t.Errorf("a secret is shown: %s%s", r.out, r.err)
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("a wrong command line left files: %v, %v", entries, err)
	}
}

func TestCheckForMachines(t *testing.T) {
	r := mooring(t, "retain", "check", good, bad, "--format", "json")
	var got struct {
		Files []struct {
			File, Name, ManifestDigest string
			OK                         bool
			Problems                   []struct{ Field, Detail string }
		}
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v\n%s", err, r.out)
	}
	if len(got.Files) != 2 || !got.Files[0].OK || got.Files[0].Name != "projects" || got.Files[1].OK || len(got.Files[1].Problems) != 6 {
		t.Fatalf("got %+v", got)
	}
}

// A result that could not be printed is none, but how a run was refused counts
// more.
func TestOutputIsCutOff(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want int
	}{
		{[]string{"retain", "check", good}, exit(retain.Unexpected)},
		{[]string{"retain", "check", good, "--format", "json"}, exit(retain.Unexpected)},
		{[]string{"retain", "check", bad}, exit(retain.ManifestInvalid)},
		{[]string{"version"}, exit(retain.Unexpected)},
		{[]string{"version", "-o", "json"}, exit(retain.Unexpected)},
		{[]string{"drivers"}, exit(retain.Unexpected)},
		{[]string{"drivers", "nfs.csi.k8s.io"}, exit(retain.Unexpected)},
		{[]string{"drivers", "-o", "json"}, exit(retain.Unexpected)},
		{[]string{"drivers", "-o", "yaml"}, exit(retain.Unexpected)},
	} {
		out, err := os.Open(os.DevNull) // for reading
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		if code := cli.Run(t.Context(), tc.args, cli.Env{Out: out, Err: &errs}); code != tc.want {
			t.Errorf("%q: got %d; want %d: %s", tc.args, code, tc.want, &errs)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestVersion(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"version"}, "version:     v1.2.3\ncommit date: 2026-01-02T03:04:05Z\nGo:          " + runtime.Version() + "\nplatform:    " + platform + "\n"},
		{[]string{"version", "-o", "json"}, "{\n  \"version\": \"v1.2.3\",\n  \"commitDate\": \"2026-01-02T03:04:05Z\",\n  \"goVersion\": \"" +
			runtime.Version() + "\",\n  \"platform\": \"" + platform + "\"\n}\n"},
	} {
		if r := mooring(t, tc.args...); r.out != tc.want {
			t.Errorf("%v: got %q, want %q", tc.args, r.out, tc.want)
		}
	}
	if r := mooring(t, "version", "-o", "xml"); r.code != exit(retain.Usage) {
		t.Errorf("-o xml ended with %d: %s", r.code, r.err)
	}
}

// Generated pages are what the code says.
func TestExitCodesPageIsFresh(t *testing.T) {
	page, err := os.ReadFile("../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != cli.ExitCodesPage() {
		t.Error("docs/exit-codes.md is stale: run go generate ./internal/cli")
	}
}

// The handbook names every command and every flag.
func TestHandbookIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/retained-volumes.md")
	if err != nil {
		t.Fatal(err)
	}
	retainCommand, _, err := cli.NewRoot(cli.Env{}).Find([]string{"retain"})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range retainCommand.Commands() {
		if !strings.Contains(string(page), "mooring retain "+command.Name()) {
			t.Errorf("the handbook does not name mooring retain %s", command.Name())
		}
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !strings.Contains(string(page), "--"+flag.Name) {
				t.Errorf("the handbook does not name --%s of %s", flag.Name, command.Name())
			}
		})
	}
}

// Every command has its page in docs/commands, and no page is of a command that
// is no more. Their content is verified by make verify-generated.
func TestEveryCommandHasAPage(t *testing.T) {
	t.Parallel()
	pages := cli.CommandPages()
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		file := strings.ReplaceAll(strings.TrimPrefix(command.CommandPath(), "mooring "), " ", "-") + ".md"
		if _, found := pages[file]; command.HasParent() && !found {
			t.Errorf("%s has no page", command.CommandPath())
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	root := cli.NewRoot(cli.Env{})
	root.InitDefaultCompletionCmd()
	visit(root)
	files, err := filepath.Glob("../../docs/commands/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if pages[filepath.Base(file)] == "" {
			t.Errorf("%s is the page of no command", file)
		}
	}
	if len(files) != len(pages) {
		t.Errorf("docs/commands has %d pages, and there are %d: go generate ./internal/cli", len(files), len(pages))
	}
}

// Every command says how it is called, by an example.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if command.HasParent() && command.Example == "" && !command.HasSubCommands() {
			t.Errorf("%s has no example", command.CommandPath())
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	visit(cli.NewRoot(cli.Env{}))
}

// A wrong command line is told where to read on, of the command that was meant;
// without a cluster, how to name one.
func TestNextStep(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, tc := range []struct{ args, want string }{
		{"share", "next: Read mooring share --help."},
		{"list --no-such-flag", "next: Read mooring list --help."},
		{"nonsense", "next: Read mooring --help."},
		{"explain a/b", "name a kubeconfig with --kubeconfig or $KUBECONFIG"},
		{"explain a/b --server=http://127.0.0.1:1", "read-failed: "},
	} {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), strings.Fields(tc.args), cli.Env{Out: &out, Err: &errs})
		if code == 0 || !strings.Contains(errs.String(), tc.want) {
			t.Errorf("mooring %s: exit code %d, want %q: %s", tc.args, code, tc.want, errs.String())
		}
	}
}
