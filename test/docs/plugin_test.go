package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/test/demo/kubectl"
)

// kubectl finds the command under the name of a plugin, and its help says how it
// was called.
func TestKubectlPlugin(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "kubectl-mooring"), "./cmd/mooring")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, output)
	}
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("no kubectl is installed: kubectl's own code, of this program, stands in")
		if path, err = kubectl.Install(dir); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), path, "mooring", "--help")
	command.Args[0] = kubectl.Name
	command.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "kubectl mooring [command]") {
		t.Errorf("kubectl mooring --help: %v\n%s", err, output)
	}
}
