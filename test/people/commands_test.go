package people_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The exit codes of docs/exit-codes.md.
const (
	exitNotAllowed    = 25
	exitTooLittle     = 21
	exitTooMuch       = 22
	exitVolumeMissing = 35
)

// Each command as administrator, owner and tenant: how it ends, and what it says.
func TestCommandsOfEachPerson(t *testing.T) {
	t.Parallel()
	w := gateOff.world(t)
	w.isBound(w.mirror(w.tenantNS, "m", w.origin(w.ownerNS, "data", granting(tenantsOnly))))
	w.origin(w.ownerNS, "private")
	w.isSaid(w.mirror(w.tenantNS, "nameless", origin{PersistentVolumeClaim: named(w.ownerNS, "none")}, annotating(names.Origin(), "nonsense")), mirror.OriginMalformed)
	w.mirror(w.tenantNS, "waits", w.pendingOrigin(w.ownerNS, "pending", granting(tenantsOnly)))
	retained := filepath.Join("..", "..", "examples", "retained-nfs.yaml")
	type answer struct {
		code int
		text string
	}
	notOwners := answer{exitNotFound, "its owner's rights are needed"}
	tooMuch, tooLittle := answer{exitTooMuch, "permission-excess"}, answer{exitTooLittle, "permission-missing"}
	notFound := answer{exitNotFound, "does not exist or is not visible to you"}
	noForge := answer{2, `the forge is ""; expected github, gitea or forgejo`}
	var tried [][]string
	for _, tc := range []struct {
		args                 string
		admin, owner, tenant answer
	}{
		{"share OWNER/private --with type=tenant --dry-run=server", answer{0, "TENANT"}, answer{0, "you may not list namespaces"}, notOwners},
		{"share OWNER/missing --with type=tenant --dry-run=server", answer{exitNotFound, "there is no claim OWNER/missing"}, answer{exitNotFound, "there is no claim OWNER/missing"}, notOwners},
		{"unshare OWNER/data --dry-run=server", answer{0, "Lose access"}, answer{0, "changed (server dry run)"}, notOwners},
		{"unshare OWNER/data", answer{2, "add --yes"}, answer{2, "add --yes"}, notOwners},
		{"mirror OWNER/data --into TENANT --name n --class CLASS --dry-run=server", answer{0, "would be created"}, answer{exitNotAllowed, "you may not create claim TENANT/n"}, answer{0, "would be created"}},
		{"mirror OWNER/data --into TENANT --name m --class CLASS", answer{2, "there is a claim TENANT/m already"}, answer{exitNotAllowed, "you may not create claim TENANT/m"}, answer{2, "there is a claim TENANT/m already"}},
		{"mirror OWNER/data --into TENANT --name n --dry-run=client -o yaml", answer{0, "storageClassName: CLASS"}, answer{2, "--class"}, answer{2, "--class"}},
		{"explain TENANT/m", answer{0, "bound, and its grant holds"}, notFound, answer{0, "not visible to you"}},
		{"explain OWNER/data", answer{exitNotOurs, "mooring access OWNER/data"}, answer{exitNotOurs, "mooring access OWNER/data"}, notFound},
		{"access OWNER/data", answer{0, "Mirrors: 1, of which revoked: 0."}, answer{0, "It has mirrors, which are not visible to you."}, notFound},
		{"access TENANT/m", answer{exitIsMirror, "mooring access OWNER/data"}, notFound, answer{exitIsMirror, "mooring access OWNER/data"}},
		{"access TENANT/waits", answer{exitIsMirror, "asks to mirror OWNER/pending, and is not bound yet"}, notFound, answer{exitIsMirror, "asks to mirror OWNER/pending, and is not bound yet"}},
		{"list -n TENANT", answer{0, "Bound"}, answer{0, "persistentvolumeclaims of namespace TENANT"}, answer{0, "Bound"}},
		{"list -A --origin OWNER/data -n TENANT -o name", answer{0, "TENANT/m"}, answer{0, "persistentvolumeclaims of all namespaces"}, answer{0, "TENANT/m"}},
		{"map -n TENANT -o json", answer{0, `"name": "m"`}, answer{0, `"origins": []`}, answer{0, `"name": "m"`}},
		{"access TENANT/nameless", answer{exitIsMirror, "asks for a mirror, and names no origin that can be meant"}, notFound, answer{exitIsMirror, "mooring explain TENANT/nameless"}},
		{"drivers", answer{0, "nfs.csi.k8s.io"}, answer{0, "nfs.csi.k8s.io"}, answer{0, "nfs.csi.k8s.io"}},
		{"retain check RETAINED", answer{0, ": ok"}, answer{0, ": ok"}, answer{0, ": ok"}},
		// An administrator may do too much, the others too little.
		{"retain preview RETAINED", tooMuch, tooLittle, tooLittle},
		{"retain create RETAINED -o RECEIPT --approved-plan PLAN", tooMuch, tooLittle, tooLittle},
		{"retain export pv/none", answer{exitVolumeMissing, "volume none is not there"}, tooLittle, tooLittle},
		{"retain verify none.json", answer{15, "receipt-invalid"}, answer{15, "receipt-invalid"}, answer{15, "receipt-invalid"}},
		{"retain kubeconfig", answer{2, "--server"}, answer{2, "--server"}, answer{2, "--server"}},
		// Who runs these is a forge.
		{"ci gate", noForge, noForge, noForge},
		{"ci preview --manifest RETAINED", noForge, noForge, noForge},
		{"ci create --manifest RETAINED --receipt RECEIPT", noForge, noForge, noForge},
		{"version", answer{0, "test"}, answer{0, "test"}, answer{0, "test"}},
		{"completion bash", answer{0, "mooring"}, answer{0, "mooring"}, answer{0, "mooring"}},
	} {
		tried = append(tried, strings.Fields(tc.args))
		named := strings.NewReplacer("OWNER", w.ownerNS, "TENANT", w.tenantNS, "CLASS", class, "RETAINED", retained,
			"PLAN", "sha256:"+strings.Repeat("0", 64)).Replace
		for _, by := range []struct {
			who  person
			want answer
		}{{w.admin, tc.admin}, {w.owner, tc.owner}, {w.tenant, tc.tenant}} {
			run := w.mooring
			if offline[strings.Join(strings.Fields(tc.args)[:min(2, len(strings.Fields(tc.args)))], " ")] {
				run = w.withoutCluster
			}
			line := strings.ReplaceAll(named(tc.args), "RECEIPT", filepath.Join(t.TempDir(), "receipt.json")) // a new one each time
			got := run(by.who, strings.Fields(line)...)
			if got.code != by.want.code || !strings.Contains(got.out+got.err, named(by.want.text)) {
				t.Errorf("mooring %s as %s: want exit code %d and %q, got\n%s", tc.args, by.who.name, by.want.code, named(by.want.text), got)
			}
			if got.code != 0 && !strings.Contains(got.err, "\nnext: ") {
				t.Errorf("mooring %s as %s names no next step:\n%s", tc.args, by.who.name, got)
			}
		}
	}
	everyCommandIsAmong(t, append(tried, []string{"doctor"}))
	// What other tests break is doctor's too: only what it cannot see is certain.
	w.says(w.mooring(w.admin, "doctor"), w.mooring(w.admin, "doctor").code, "ok      classes")
	for _, who := range []person{w.owner, w.tenant} {
		got := w.mooring(who, "doctor", "-n", w.tenantNS)
		w.says(got, 0, "unseen  classes", "unseen  mirrors", "unseen  controller", "not visible to you")
		if strings.Contains(got.out, "ok      mirrors") {
			t.Errorf("doctor as %s says that is well what it did not see:\n%s", who.name, got)
		}
	}
}

// everyCommandIsAmong fails if there is a command that none of these lines calls.
func everyCommandIsAmong(t *testing.T, lines [][]string) {
	t.Helper()
	root := cli.NewRoot(cli.Env{})
	called := map[string]bool{}
	for _, line := range lines {
		command, _, err := root.Find(line)
		noError(t, err, "find the command of %v", line)
		called[command.CommandPath()] = true
	}
	for queue := root.Commands(); len(queue) > 0; queue = queue[1:] {
		command := queue[0]
		if !command.HasSubCommands() && !called[command.CommandPath()] {
			t.Errorf("%s is not tried as each person", command.CommandPath())
		}
		queue = append(queue, command.Commands()...)
	}
}

// offline are the commands that take no kubeconfig.
var offline = map[string]bool{"version": true, "completion bash": true, "drivers": true, "retain check": true, "retain kubeconfig": true,
	"ci gate": true, "ci preview": true, "ci create": true}

// withoutCluster runs a command that takes no kubeconfig.
func (w *world) withoutCluster(_ person, args ...string) result {
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), args, cli.Env{Out: &out, Err: &errs, Version: "test"})
	return result{code, out.String(), errs.String()}
}

var took = regexp.MustCompile(`requests: (\d+), .*`)

// What every other command tells a tenant of claims that are not shared with it
// does not depend on whether they exist: the same words, the same exit code, and
// as many requests, so that time tells nothing either.
func TestNoExistenceOracleInAnyCommand(t *testing.T) {
	t.Parallel()
	w := gateOff.world(t)
	w.origin(w.ownerNS, "private")
	w.origin(w.ownerNS, "guarded", granting("type=nobody"))
	w.pendingOrigin(w.ownerNS, "pending")
	asked := map[string]string{ // what is asked for, by a mirror claim's name of the same length
		"mprivat": w.ownerNS + "/private", "mguarde": w.ownerNS + "/guarded", "mpendin": w.ownerNS + "/pending", "mmissin": w.ownerNS + "/missing",
		"mnowher": strings.Replace(w.ownerNS, "owner", "other", 1) + "/missing",
	}
	for _, args := range []string{
		"mirror ORIGIN --into TENANT --name MIRROR --class CLASS",
		"mirror ORIGIN --into TENANT --name x --class CLASS --dry-run=server -o yaml",
		"share ORIGIN --with type=tenant --yes --requests", "share ORIGIN --with type=tenant --dry-run=client -o json", "unshare ORIGIN --yes --requests",
		"access ORIGIN --requests", "explain ORIGIN --requests", "explain TENANT/MIRROR --requests",
		"list -n NAMESPACE --requests", "list -A -n TENANT --origin ORIGIN -o json --requests", "list -n TENANT --field-selector metadata.name=MIRROR -o yaml --requests",
		"map --origin ORIGIN -n TENANT -o mermaid --requests", "map -n NAMESPACE -o json --requests", "doctor -n NAMESPACE --requests",
		"__complete explain ORIGIN",
	} {
		answers := map[string][]string{}
		for name, at := range asked {
			namespace, _, _ := strings.Cut(at, "/")
			line := strings.NewReplacer("ORIGIN", at, "MIRROR", name, "TENANT", w.tenantNS, "CLASS", class, "NAMESPACE", namespace).Replace(args)
			got := w.mooring(w.tenant, strings.Fields(line)...).String()
			got = strings.NewReplacer(w.tenantNS+"/"+name, "MIRROR", at, "ORIGIN", namespace, "NAMESPACE", at[len(namespace)+1:], "CLAIM", name, "MIRROR").Replace(got)
			got = uids.ReplaceAllString(times.ReplaceAllString(took.ReplaceAllString(got, "requests: $1"), "TIME"), "UID")
			answers[got] = append(answers[got], at)
		}
		if len(answers) != 1 {
			t.Errorf("mooring %s tells a tenant which claims exist: %q", args, answers)
		}
	}
}

var uids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// What share, unshare and mirror print, to the letter.
func TestPrintedByWriters(t *testing.T) {
	t.Parallel()
	w := gateOff.world(t)
	w.origin(w.ownerNS, "data")
	lab := "kubernetes.io/metadata.name=" + w.tenantNS
	golden := func(who person, args, wantOut, wantErr string, code int) {
		t.Helper()
		named := strings.NewReplacer("OWNER", w.ownerNS, "TENANT", w.tenantNS, "LAB", lab, "CLASS", class).Replace
		got := w.mooring(who, strings.Fields(named(args))...)
		out, errs := uids.ReplaceAllString(got.out, "UID"), uids.ReplaceAllString(got.err, "UID")
		if out != named(wantOut) || errs != named(wantErr) || got.code != code {
			t.Errorf("mooring %s: exit code %d, want %d; printed\n%s\nwant\n%s\non stderr\n%s\nwant\n%s", args, got.code, code, out, named(wantOut), errs, named(wantErr))
		}
	}
	const grant = "Grant: pmp.crownlabs.polito.it/required-target-ns-labels: LAB\n" +
		"Whoever may label namespaces can add to those it lets in, now and later.\n"
	const hidden = "Which namespaces gain or lose access cannot be shown: you may not list namespaces.\n"
	const notes = "note: the provisioner name is not visible to you; pmp.crownlabs.polito.it is assumed. For another: --provisioner-name or $MOORING_PROVISIONER_NAME\n"
	golden(w.admin, "share OWNER/data --with LAB", grant+"Gain read-write access, 1 namespace: TENANT\n",
		"usage: nobody is there to confirm, and nothing was written: look at what is shown, and add --yes\nnext: Read mooring share --help.\n", 2)
	golden(w.admin, "share OWNER/data --with LAB --dry-run=client", grant+"Gain read-write access, 1 namespace: TENANT\n", "client dry run: nothing was written\n", 0)
	golden(w.owner, "share OWNER/data --with LAB --yes", grant+hidden+"persistentvolumeclaim/data changed\n", "note: not visible to you: namespaces\n"+notes, 0)
	golden(w.admin, "share OWNER/data --with LAB --yes", "OWNER/data is shared like that already: nothing to write.\n", "", 0)
	golden(w.admin, "share OWNER/data --with LAB --expires 2020-01-01T00:00:00Z --dry-run=server", grant+
		"warning: it ended at 2020-01-01T00:00:00Z and lets nobody in: give a later --expires, or end it with mooring unshare\n"+
		"Lose access, 1 namespace: TENANT\npersistentvolumeclaim/data changed (server dry run)\n", "", 0)
	golden(w.tenant, "share OWNER/data --with LAB --yes", "",
		"claim-not-found: you may not read claims of namespace OWNER; to share one, its owner's rights are needed\n"+
			"next: Check the name with kubectl get persistentvolumeclaims, or ask who may read claims of that namespace.\n", exitNotFound)

	golden(w.tenant, "mirror OWNER/data --into TENANT --name m --class CLASS", "persistentvolumeclaim/m created in namespace TENANT\n", "bound to pvc-UID\n", 0)
	golden(w.tenant, "mirror OWNER/none --into TENANT --name n --class CLASS", "persistentvolumeclaim/n created in namespace TENANT\n",
		"mirror-refused: OWNER/none does not exist or is not shared with namespace TENANT: ask its owner to share it (NotShared). Claim TENANT/n stays, and is bound as soon as that is mended; see: mooring explain TENANT/n\n"+
			"next: Read mooring explain: it says who can mend it, and how.\n", exitRefused)
	const printed = `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  annotations:
    pmp.crownlabs.polito.it/origin: OWNER/data
  name: p
  namespace: TENANT
spec:
  accessModes:
  - ReadOnlyMany
  resources:
    requests:
      storage: "1"
  storageClassName: CLASS
status: {}
`
	golden(w.admin, "mirror OWNER/data --into TENANT --name p --read-only --dry-run=client -o yaml", printed, "", 0)
	asJSON, err := yaml.YAMLToJSON([]byte(printed))
	w.must(err, "read what is wanted")
	var indented bytes.Buffer
	w.must(json.Indent(&indented, asJSON, "", "  "), "indent it")
	got := w.mooring(w.admin, strings.Fields("mirror "+w.ownerNS+"/data --into "+w.tenantNS+" --name p --read-only --dry-run=client -o json")...)
	var wanted, have any
	w.must(json.Unmarshal([]byte(strings.NewReplacer("OWNER", w.ownerNS, "TENANT", w.tenantNS, "CLASS", class).Replace(indented.String())), &wanted), "read it")
	w.must(json.Unmarshal([]byte(got.out), &have), "read what was printed: %s", got)
	if w.text(have) != w.text(wanted) {
		t.Errorf("printed\n%s\nwant\n%s", w.text(have), w.text(wanted))
	}

	// The states of mirror.
	w.pendingOrigin(w.ownerNS, "pending", granting("type=tenant"))
	golden(w.tenant, "mirror OWNER/pending --into TENANT --name w --class CLASS --timeout 2s", "persistentvolumeclaim/w created in namespace TENANT\n",
		"waits: origin OWNER/pending is not bound yet\n"+
			"mirror-waiting: claim TENANT/w is not bound after 2s; it stays, and is bound as soon as it can be. See: mooring explain TENANT/w\n"+
			"next: Wait, or have the origin's owner see why the origin is pending.\n", 4)
	golden(w.tenant, "mirror OWNER/data --into TENANT --name v --class CLASS --wait=false", "persistentvolumeclaim/v created in namespace TENANT\n", "", 0)
	golden(w.tenant, "mirror OWNER/data --into TENANT --name s --class CLASS --dry-run=server", "persistentvolumeclaim/s would be created (server dry run) in namespace TENANT\n", "", 0)
	golden(w.tenant, "mirror OWNER/data --into TENANT --name m --class CLASS", "",
		"usage: there is a claim TENANT/m already, and it was left as it is: choose another --name, or see: mooring explain TENANT/m\nnext: Read mooring mirror --help.\n", 2)
	golden(w.tenant, "mirror TENANT/m --into TENANT --class CLASS", "",
		"usage: TENANT/m is in namespace TENANT already: use it there directly\nnext: Read mooring mirror --help.\n", 2)
	w.prints(w.admin, "share "+w.ownerNS+"/data --with type=tenant --read-only --dry-run=client -o json", map[string]string{
		names.ReadWriteGrant(): lab, names.ReadOnlyGrant(): "type=tenant"})
	w.prints(w.admin, "unshare "+w.ownerNS+"/data --dry-run=server -o json", nil)
	w.prints(w.admin, "unshare "+w.ownerNS+"/data --dry-run=server -o yaml", nil)

	golden(w.admin, "unshare OWNER/data --yes", "Lose access, 1 namespace: TENANT\npersistentvolumeclaim/data changed\n", "", 0)
	golden(w.owner, "unshare OWNER/data --yes", "OWNER/data is not shared: nothing to write.\n", notes, 0)
	claim := &corev1.PersistentVolumeClaim{}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.tenantNS, Name: "m"}, claim), "get the mirror claim")
	w.isSaid(claim, mirror.NotShared)
}

// prints checks that a command prints the claim data as Kubernetes' own schema has
// it, and nothing else, with these grants.
func (w *world) prints(who person, line string, grants map[string]string) {
	w.Helper()
	got := w.mooring(who, strings.Fields(line)...)
	var claim corev1.PersistentVolumeClaim
	if err := yaml.UnmarshalStrict([]byte(got.out), &claim); err != nil || got.code != 0 {
		w.Fatalf("mooring %s prints no claim: %v\n%s", line, err, got)
	}
	has := map[string]string{}
	for key, value := range claim.Annotations {
		if strings.HasPrefix(key, names.Provisioner()) {
			has[key] = value
		}
	}
	if claim.Kind != "PersistentVolumeClaim" || claim.APIVersion != "v1" || claim.Namespace != w.ownerNS || claim.Name != "data" || !maps.Equal(has, grants) {
		w.Errorf("mooring %s prints %s %s/%s with %v, want the grants %v", line, claim.Kind, claim.Namespace, claim.Name, has, grants)
	}
}

func (w *world) text(value any) string {
	w.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	w.must(err, "print a value")
	return string(text)
}
