package retain_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The handbook's commands are carried out as they are written, in their order,
// with the exit codes that it says. kubectl's part is done by the test.
func TestHandbook(t *testing.T) {
	w := newWorld(t)
	w.followPage("docs/retained-volumes.md", 9)
}

// How the identity of a CI run is made, and made anew.
func TestCIPage(t *testing.T) {
	w := newWorld(t)
	w.followPage("docs/ci.md", 2)
}

// followPage carries out the commands of a page, of which at least so many are
// mooring's.
func (w *world) followPage(page string, atLeast int) {
	t := w.T
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	handbook, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(w.dir)
	if err := os.Symlink(root+"/examples", "examples"); err != nil {
		t.Fatal(err)
	}
	identity, err := w.plane.ServiceAccount(t.Context(), "mooring-retain", "retain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.removeVolume(context.Background(), "projects") })
	ran := 0
	for _, line := range shellLines(string(handbook)) {
		line = strings.ReplaceAll(line, "https://api.example.com:6443", w.plane.Admin().Host)
		switch {
		case strings.HasPrefix(line, "mooring "):
			w.handbookLine(line)
			ran++
		case strings.Contains(line, "create token"):
			w.save("token", []byte(identity.Config.BearerToken))
		case strings.Contains(line, "kube-root-ca.crt"):
			w.save("ca.crt", w.plane.Admin().CAData)
		case line == "kubectl apply -f examples/retain-rbac.yaml":
			w.applyRBAC() // again: what is there stays
		case line == "kubectl -n mooring-retain delete serviceaccount retain":
			if err := w.admin.CoreV1().ServiceAccounts("mooring-retain").Delete(t.Context(), "retain", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		case line == "kubectl create namespace research":
			_, err := w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research"}}, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		case line == "kubectl apply -f examples/retained-claim.yaml":
			w.applyClaim("examples/retained-claim.yaml")
		default:
			t.Fatalf("nobody carries out %q", line)
		}
	}
	if ran < atLeast {
		t.Fatalf("only %d commands of %s were found", ran, page)
	}
}

var exitCode = regexp.MustCompile(`\s*# exit code ([0-9]+)$`)

func shellLines(page string) []string {
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func (w *world) handbookLine(line string) {
	w.Helper()
	want := 0
	if match := exitCode.FindStringSubmatch(line); match != nil {
		want, _ = strconv.Atoi(match[1])
		line = exitCode.ReplaceAllString(line, "")
	}
	line, into, redirected := strings.Cut(line, " > ")
	r := command(w, strings.Fields(line)[2:]...)
	if r.code != want {
		w.Fatalf("%s: got exit code %d; want %d\n%s%s", line, r.code, want, r.out, r.err)
	}
	w.noSecrets(r.err)
	if redirected {
		w.save(into, []byte(r.out))
	}
	fmt.Fprintln(w.Output(), line)
}

func (w *world) save(file string, data []byte) {
	w.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		w.Fatal(err)
	}
}

// applyClaim makes the claim of a file, and waits until the binder is done.
func (w *world) applyClaim(file string) {
	w.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	var claim corev1.PersistentVolumeClaim
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096).Decode(&claim); err != nil {
		w.Fatal(err)
	}
	claims := w.admin.CoreV1().PersistentVolumeClaims(claim.Namespace)
	w.must(claims.Create(w.Context(), &claim, metav1.CreateOptions{}))
	w.Cleanup(func() { // another page begins without it
		ctx := context.Background()
		if err := claims.Delete(ctx, claim.Name, metav1.DeleteOptions{}); err != nil {
			w.Error(err)
		}
		w.eventually("the claim's end", func() (any, bool) {
			got, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
			return got, apierrors.IsNotFound(err)
		})
	})
	w.eventually("the binding", func() (any, bool) {
		got, err := w.admin.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(w.Context(), claim.Name, metav1.GetOptions{})
		return got, err == nil && got.Status.Phase == corev1.ClaimBound
	})
}
