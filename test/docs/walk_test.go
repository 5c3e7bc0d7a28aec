package docs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/demo/installation"
	"github.com/mooring-k8s/mooring/test/demo/kubectl"
)

// A reader who follows a page from its first line to its last gets what it
// says: the chart is installed with the page's own command, every manifest is
// applied, its claims become Bound, and every kubectl command runs.
func TestFollowThePages(t *testing.T) {
	skipOnExistingCluster(t)
	for _, page := range []string{"README.md", "docs/installing.md", "docs/revocation.md", migrating, operating, security, policies, alerts} {
		t.Run(page, func(t *testing.T) {
			t.Parallel() // an uninstallation waits 15 seconds for a leader to notice
			w := newWalk(t, page)
			if page == migrating {
				w.formerProvisioner()
			}
			if page == security || page == policies || page == alerts {
				w.hasInstalled()
			}
			if page == alerts {
				w.hasMirror()
			}
			for _, block := range blocks(t, page) {
				w.follow(block)
			}
			if w.installed == 0 || w.bound == 0 && page != security && page != policies {
				t.Errorf("%s: expected it to install the chart and to bind claims", page)
			}
		})
	}
}

// walk is a reader with a cluster of his own.
type walk struct {
	*testing.T
	plane     *controlplane.ControlPlane
	api       kubernetes.Interface
	kubectl   kubectl.Kubectl
	root      string
	installed int
	mooringOf *installation.Installation // nil when it is not installed
	former    []map[string]any           // the values before each upgrade
	backup    snapshot
	bound     int
	claim     *metav1.ObjectMeta // the latest mirror claim
	adopted   string             // the volume that is to be adopted
}

// newWalk gives the reader what the pages take for granted: that namespace
// team-a has a bound claim, and that there is a team-b.
func newWalk(t *testing.T, page string) *walk {
	t.Helper()
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	cp := controlplane.ForTest(t, controlplane.Options{CrossNamespace: true})
	api, err := kubernetes.NewForConfig(cp.Admin())
	if err != nil {
		t.Fatal(err)
	}
	w := &walk{T: t, plane: cp, api: api, root: checkout, kubectl: kubectl.Kubectl{
		Kubeconfig: cp.AdminKubeconfigFile(), Dir: checkout, Cache: t.TempDir(),
	}}
	w.apply(page, `
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
---
apiVersion: v1
kind: Namespace
metadata: {name: velero}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  storageClassName: nfs-csi
  claimRef: {namespace: team-a, name: data}
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteMany]
  csi: {driver: nfs.csi.k8s.io, volumeHandle: data, volumeAttributes: {server: nfs.example.com, share: /data}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: team-a}
spec:
  storageClassName: nfs-csi
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 10Gi}}
`)
	w.waitBound("team-a", "data")
	return w
}

// migrating is the page whose reader has a mirror of another provisioner.
const migrating = "docs/migrating-from-crownlabs.md"

// operating is the page whose reader upgrades, restores and removes.
const operating = "docs/operating.md"

// security and policies are the pages whose reader has installed already.
const (
	security = "docs/security.md"
	policies = "docs/policies.md"
)

// alerts is the page whose reader looks, for each alert, at an installation that
// runs.
const alerts = "docs/alerts.md"

// operatorKinds are kinds of the Prometheus operator, as far as it matters here:
// test/observe holds the chart's objects against the real ones.
const operatorKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podmonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: podmonitors, singular: podmonitor, kind: PodMonitor, listKind: PodMonitorList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: prometheusrules, singular: prometheusrule, kind: PrometheusRule, listKind: PrometheusRuleList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// hasMirror mirrors the claim data of team-a as shared of team-b.
func (w *walk) hasMirror() {
	w.Helper()
	begin := block{page: alerts}
	w.apply(alerts, operatorKinds)
	for _, kind := range []string{"podmonitors", "prometheusrules"} {
		if _, err := w.kubectl.RunInput(w.Context(), "", "wait", "--for=condition=Established", "--timeout=60s", "crd", kind+".monitoring.coreos.com"); err != nil {
			w.Fatal(err)
		}
	}
	w.mooring(begin, []string{"share", "team-a/data", "--with", "kubernetes.io/metadata.name=team-b", "--yes"})
	w.mooring(begin, []string{"mirror", "team-a/data", "--into", "team-b", "--name", "shared"})
	w.waitBound("team-b", "shared")
}

// hasInstalled does what docs/installing.md says.
func (w *walk) hasInstalled() {
	w.Helper()
	for _, block := range blocks(w.T, "docs/installing.md") {
		parsed, err := commands(block.text)
		if block.lang != "sh" || err != nil || w.mooringOf != nil {
			continue
		}
		for _, command := range parsed {
			if len(command.words) > 2 && command.words[0] == "helm" && command.words[1] == "install" {
				w.install(block, command.words[2:])
			}
		}
	}
}

// formerProvisioner gives the reader a class and a mirror as CrownLabs' provisioner has
// made them.
func (w *walk) formerProvisioner() {
	w.Helper()
	w.apply(migrating, `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: pvc-mirror}
provisioner: pmp.crownlabs.polito.it
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: former, namespace: team-b}
spec:
  storageClassName: pvc-mirror
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: "1"}}
  dataSourceRef: {kind: PersistentVolumeClaim, namespace: team-a, name: data}
`)
	if _, err := w.kubectl.RunInput(w.Context(), "", "annotate", "persistentvolumeclaim", "--namespace", "team-a", "data",
		"pmp.crownlabs.polito.it/required-target-ns-labels=kubernetes.io/metadata.name"); err != nil {
		w.Fatal(err)
	}
	claim, err := w.api.CoreV1().PersistentVolumeClaims("team-b").Get(w.Context(), "former", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.adopted = "pvc-" + string(claim.UID)
	w.apply(migrating, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata:
  name: %s
  labels: {crownlabs.polito.it/mirrored-pv: data, crownlabs.polito.it/mirrored-pvc-name: data, crownlabs.polito.it/mirrored-pvc-namespace: team-a}
  annotations: {pv.kubernetes.io/provisioned-by: pmp.crownlabs.polito.it}
spec:
  storageClassName: pvc-mirror
  persistentVolumeReclaimPolicy: Delete
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: team-b, name: former, uid: %s}
  capacity: {storage: "1"}
  accessModes: [ReadWriteMany]
  csi: {driver: nfs.csi.k8s.io, volumeHandle: data, volumeAttributes: {server: nfs.example.com, share: /data}}
`, w.adopted, claim.UID))
	w.waitBound("team-b", "former")
}

// isAdopted waits until the mirror of the other provisioner is recorded.
func (w *walk) isAdopted() {
	w.Helper()
	w.until(w.adopted+" is adopted", func() (any, bool) {
		volume, err := w.api.CoreV1().PersistentVolumes().Get(w.Context(), w.adopted, metav1.GetOptions{})
		return volume, err == nil && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain &&
			volume.Annotations["pmp.crownlabs.polito.it/adopted-at"] != ""
	})
}

func (w *walk) follow(block block) {
	w.Helper()
	switch {
	case block.lang == "yaml" && strings.HasPrefix(block.text, "originGrants:"):
		w.setValues(block)
		return
	case block.lang == "yaml" && w.isClaim(block):
		w.mirror(block)
		return
	case block.lang == "yaml":
		w.apply(block.String(), block.text)
		return
	}
	parsed, err := commands(block.text)
	if err != nil {
		w.Fatalf("%v: %v", block, err)
	}
	for _, command := range parsed {
		w.run(block, command)
	}
}

func (w *walk) isClaim(block block) bool {
	w.Helper()
	parsed, err := objects(block.text)
	if err != nil || len(parsed) != 1 {
		w.Fatalf("%v: expected one object: %v", block, err)
	}
	return parsed[0].GetKind() == "PersistentVolumeClaim"
}

// mirror applies a mirror claim. The pages show several ways to write the same
// one, so the one before makes room.
func (w *walk) mirror(block block) {
	w.Helper()
	if w.claim != nil {
		claims := w.api.CoreV1().PersistentVolumeClaims(w.claim.Namespace)
		if err := claims.Delete(w.Context(), w.claim.Name, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
		w.until("the claim is gone", func() (any, bool) {
			claim, err := claims.Get(w.Context(), w.claim.Name, metav1.GetOptions{})
			return claim, err != nil
		})
	}
	parsed, err := objects(block.text)
	if err != nil || len(parsed) != 1 || parsed[0].GetKind() != "PersistentVolumeClaim" {
		w.Fatalf("%v: expected one claim: %v", block, err)
	}
	w.apply(block.String(), block.text)
	w.claim = &metav1.ObjectMeta{Namespace: parsed[0].GetNamespace(), Name: parsed[0].GetName()}
	w.waitBound(w.claim.Namespace, w.claim.Name)
	w.bound++
}

// run runs a command that a cluster without nodes and registries can run. What
// it cannot run is listed, so that nothing is left out by accident.
func (w *walk) run(block block, command command) {
	w.Helper()
	line := strings.Join(command.words, " ")
	switch command.words[0] {
	case "kubectl":
		if strings.Contains(line, " rollout ") || strings.Contains(line, " get deployment ") || strings.Contains(line, " logs ") || strings.Contains(line, " exec ") {
			return // of Pods
		}
		if strings.Contains(line, " configmap mooring-brake") {
			w.brake(block)
		}
		out, err := w.kubectl.RunInput(w.Context(), command.input, command.words[1:]...)
		if err != nil {
			w.Errorf("%v: %v", block, err)
		}
		if command.input != "" && strings.TrimSpace(out) != "elsewhere" {
			w.Errorf("%v: the question whether the cluster keeps references is answered by %q", block, out)
		}
	case "helm":
		w.helm(block, command.words[1:])
	case "velero":
		w.velero(block, command.words[1:])
	case "bin/mooring":
		if command.words[1] != "retain" { // which needs a kubeconfig of its own: test/retain
			w.mooring(block, command.words[1:])
		}
	case "make", "docker":
	case "sha256sum", "tar", "cd", "install", "ln", "mooring": // of a release's archives: tools/release/test.sh
	default:
		w.Errorf("%v: nobody has said whether %q can be tested", block, line)
	}
}

// problems is how doctor ends when it found some (docs/exit-codes.md).
const problems = 19

// mooring runs a command for people, and answers yes where it asks.
func (w *walk) mooring(block block, args []string) {
	w.Helper()
	var out, errs strings.Builder
	env := cli.Env{In: strings.NewReader("y\n"), Out: &out, Err: &errs}
	code := cli.Run(w.Context(), append(args, "--kubeconfig="+w.plane.AdminKubeconfigFile()), env)
	if code == problems && args[0] == "doctor" {
		return // there are no Pods, which it says
	}
	if args[0] == "mirror" {
		w.bound++
	}
	if code != 0 {
		w.Errorf("%v: mooring %s ends with %d:\n%s%s", block, strings.Join(args, " "), code, out.String(), errs.String())
	}
}

// brake gives the reader the record of a stop of deletions, which is there only
// after one.
func (w *walk) brake(block block) {
	w.Helper()
	w.apply(block.String(), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mooring-brake, namespace: mooring-system}\ndata: {state: engaged}\n")
}

func (w *walk) apply(where, manifest string) {
	w.Helper()
	if _, err := w.kubectl.RunInput(w.Context(), manifest, "apply", "-f", "-"); err != nil {
		w.Fatalf("%s: %v", where, err)
	}
}

func (w *walk) waitBound(namespace, name string) {
	w.Helper()
	w.until(fmt.Sprintf("%s/%s is Bound", namespace, name), func() (any, bool) {
		claim, err := w.api.CoreV1().PersistentVolumeClaims(namespace).Get(w.Context(), name, metav1.GetOptions{})
		return claim, err == nil && claim.Status.Phase == corev1.ClaimBound
	})
}

// until asks until the answer is yes, and shows the last object if it never is.
func (w *walk) until(told string, ask func() (any, bool)) {
	w.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		last, yes := ask()
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			w.Fatalf("%s: not within a minute; what is there: %+v", told, last)
		}
	}
}
