package chaos_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/test/chaos/proxy"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// keeping is a run of mooring retain create of two volumes, behind a proxy.
type keeping struct {
	*testing.T
	admin      client.Client
	kubeconfig string
	via        *proxy.Proxy
	names      []string
	manifests  []string
	dir        string
}

var keepings atomic.Int64

func keep(t *testing.T, plane *controlplane.ControlPlane, via *proxy.Proxy) *keeping {
	t.Helper()
	admin, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	k := &keeping{T: t, admin: admin, via: via, kubeconfig: tokenFile(t, plane, via, "mooring-retain/retain"), dir: t.TempDir()}
	number := keepings.Add(1)
	for _, part := range []string{"one", "two"} {
		name := fmt.Sprintf("kept-%d-%s", number, part)
		file := filepath.Join(k.dir, name+".yaml")
		manifest := fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata:
  name: %[1]s
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteMany]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: retained
  claimRef: {kind: PersistentVolumeClaim, namespace: default, name: %[1]s}
  nfs: {server: nas.example.com, path: /export/%[1]s}
`, name)
		noError(t, os.WriteFile(file, []byte(manifest), 0o600), "write a manifest")
		k.names, k.manifests = append(k.names, name), append(k.manifests, file)
	}
	return k
}

// create runs mooring retain create as a process, and returns its exit code, -1 if
// it was killed. begun is told of the process.
func (k *keeping) create(record string, begun func(*os.Process)) (int, string) {
	k.Helper()
	program, err := programs.program("mooring")
	noError(k, err, "the command")
	args := append([]string{"retain", "create"}, k.manifests...)
	command := exec.CommandContext(k.Context(), program, append(args, "-o", record, "--without-approval", "--kubeconfig", k.kubeconfig)...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	noError(k, command.Start(), "start the command")
	begun(command.Process)
	_ = command.Wait() // how it ended is its exit code
	return command.ProcessState.ExitCode(), output.String()
}

// live returns the volumes that are there, by name.
func (k *keeping) live() map[string]*corev1.PersistentVolume {
	k.Helper()
	found := map[string]*corev1.PersistentVolume{}
	for _, name := range k.names {
		volume := &corev1.PersistentVolume{}
		err := k.admin.Get(k.Context(), client.ObjectKey{Name: name}, volume)
		noError(k, client.IgnoreNotFound(err), "get a volume")
		if err == nil {
			found[name] = volume
		}
	}
	return found
}

// TestRetainCreateKilled kills mooring retain create before and after each of its
// requests that could write, one position in each run, and runs it again: a volume
// that is there is there once and as reviewed, and the second run ends what the
// first began.
func TestRetainCreateKilled(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	applyFile(t, plane, "../../examples/retain-rbac.yaml")
	via := newProxy(t, plane)
	undisturbed := &trap{}
	via.SetHook(undisturbed.hook(0))
	first := keep(t, plane, via)
	if code, output := first.create(filepath.Join(first.dir, "receipt.json"), func(*os.Process) {}); code != 0 {
		t.Fatalf("without a crash it ended with %d:\n%s", code, output)
	}
	t.Logf("%d requests that could write: %v", len(undisturbed.writes), undisturbed.writes)
	sprung := 0
	all := positions(len(undisturbed.writes), shortOr(6, 1000))
	for _, at := range all {
		t.Run(at.String(), func(t *testing.T) {
			if what := keep(t, plane, via).killedAt(at); what != "" {
				sprung++
				t.Logf("killed %s: %s", at.moment, what)
			}
		})
	}
	t.Logf("seed %d: killed at %d of %d positions", chosen.seed, sprung, len(all))
	if sprung != len(all) {
		t.Errorf("killed at %d of %d positions", sprung, len(all))
	}
}

// killedAt kills a run at a position, and returns what it was about to write or
// had written.
func (k *keeping) killedAt(at position) string {
	k.Helper()
	running := make(chan *os.Process, 1)
	set := &trap{at: at, does: func(int) bool {
		process := <-running
		if err := process.Kill(); err != nil {
			k.Errorf("kill the command: %v", err)
		}
		return true
	}}
	k.via.SetHook(set.hook(0))
	record := filepath.Join(k.dir, "receipt.json")
	code, output := k.create(record, func(p *os.Process) { running <- p })
	k.via.SetHook(nil)
	if set.what() == "" {
		return ""
	}
	if code != -1 {
		k.Fatalf("it was killed, and ended with %d:\n%s", code, output)
	}
	k.isIntended(record)
	before := k.live()
	if code, output := k.create(filepath.Join(k.dir, "again.json"), func(*os.Process) {}); code != 0 {
		k.Fatalf("run again, it ended with %d:\n%s", code, output)
	}
	after := k.live()
	if len(after) != len(k.names) {
		k.Errorf("%d volumes of %d are there", len(after), len(k.names))
	}
	for name, volume := range before {
		if after[name] == nil || after[name].UID != volume.UID {
			k.Errorf("volume %s was there, and is not the same any more", name)
		}
	}
	return set.what()
}

// isIntended checks the receipt that a killed run leaves: none yet, or an empty
// file, as long as nothing was written, or one that does not claim an end.
func (k *keeping) isIntended(file string) {
	k.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		k.Fatalf("read the receipt: %v", err)
	}
	if len(data) == 0 {
		if left := k.live(); len(left) > 0 {
			k.Errorf("there is no receipt, and %d volumes", len(left))
		}
		return
	}
	record, err := receipt.Decode(data)
	noError(k, err, "read the receipt")
	if record.Outcome != receipt.Intended {
		k.Errorf("the receipt of a killed run says %s", record.Outcome)
	}
}

// applyFile applies a file of the repository as it is.
func applyFile(t *testing.T, plane *controlplane.ControlPlane, file string) {
	t.Helper()
	admin, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	data, err := os.ReadFile(file)
	noError(t, err, "read %s", file)
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		noError(t, yaml.Unmarshal(document, &object.Object), "read %s", file)
		noError(t, admin.Create(t.Context(), object), "create %s %s", object.GetKind(), object.GetName())
	}
}
