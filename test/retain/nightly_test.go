package retain_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script for cron says nothing while all is as the manifests say, and names what
// is not.
func TestNightlyExample(t *testing.T) {
	w := newWorld(t)
	script, err := filepath.Abs("../../examples/ci/nightly.sh")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs, checkout := t.TempDir(), t.TempDir()
	if err := os.Symlink(self, filepath.Join(programs, "mooring")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(checkout, "volumes"), 0o750); err != nil {
		t.Fatal(err)
	}
	manifest := w.volume("nightly")
	data, err := os.ReadFile(w.write(manifest))
	if err != nil {
		t.Fatal(err)
	}
	w.save(filepath.Join(checkout, "volumes", "nightly.yaml"), data)
	run := func(wantCode int, want string) {
		t.Helper()
		cmd := exec.Command(script, checkout, w.kubeconfig)
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), asCommand+"=true")
		out, _ := cmd.CombinedOutput() // its exit code is looked at
		w.noSecrets(string(out))
		if code := cmd.ProcessState.ExitCode(); code != wantCode || !strings.Contains(string(out), want) || want == "" && len(out) > 0 {
			t.Errorf("got exit code %d; want %d with %q\n%s", code, wantCode, want, out)
		}
	}
	run(1, "nightly.yaml: is not there yet")
	preview, _ := w.preview(manifest)
	_, created := w.create(manifest, preview.PlanDigest)
	w.want(created, "")
	run(0, "")
	w.make(w.volume("other", change{"spec/nfs/path": "/export/" + w.id + "/nightly"}))
	run(40, "nightly.yaml: exit code 40\n")
}
