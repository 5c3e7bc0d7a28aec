package forge_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/gate"
)

// The secrets are made when the tests run: none stands in the source.

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func letters(n int) string {
	random := make([]byte, n)
	_, _ = rand.Read(random) // never fails
	for i, b := range random {
		random[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(random)
}

func privateKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func accept([]byte) string { return "" }

func inspect(t *testing.T, c *checkout) (gate.Checkout, gate.Scan) {
	t.Helper()
	scanner, err := gate.NewScanner(accept)
	if err != nil {
		t.Fatal(err)
	}
	return gate.Inspection{Dir: c.dir, Commit: c.head(), Scanner: scanner, CheckVolume: accept}.Observe(t.Context())
}

// peakHeap watches the heap until stop is called, which returns its peak in MiB.
func peakHeap() (stop func() uint64) {
	var peak atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return peak.Load() >> 20
	}
}

// A large tree with a few secrets: each is found, none is told, in bounded memory.
func TestCorpus(t *testing.T) {
	token, key, password := "ghp_"+letters(36), privateKey(t), letters(24)
	kubeconfig := "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: 'https://k.example.com'}\nusers:\n- name: u\n  user:\n    password: " + password + "\n"
	files := map[string]string{
		"secrets/token.txt": "token = " + token + "\n", "secrets/key": key, "secrets/kubeconfig": kubeconfig,
		"secrets/a\nb":                       "token = " + token + "\n",
		"secrets/" + token:                   "nothing\n",
		"secrets/binary":                     "\x7fELF\x00" + key,
		"secrets/encoded":                    base64.StdEncoding.EncodeToString([]byte("token = " + token + " and more of it")),
		"secrets/after much text":            strings.Repeat("nothing to see here\n", 100_000) + "token = " + token + "\n",
		"secrets/across the border of a win": strings.Repeat("line\n", (512<<10-20)/5) + "token = " + token + "\n" + strings.Repeat("line\n", 5000),
	}
	for i := range 10_000 {
		files[fmt.Sprintf("many/%d/%d.yaml", i/100, i)] = fmt.Sprintf("kind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	c := newCheckout(t, files)
	for name, target := range map[string]string{"out": "/etc/passwd", "up": "../../../..", "loop": "loop", "dir": "secrets"} {
		if err := os.Symlink(target, filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c.commit()
	stop, began := peakHeap(), time.Now()
	checkout, scan := inspect(t, c)
	t.Logf("%d files, %d bytes, %d findings in %s, heap at most %d MiB", scan.Files, scan.Bytes, scan.Found, time.Since(began).Round(time.Millisecond), stop())
	if checkout.Problem != "" || checkout.Changed != 0 || !scan.Finished || scan.Files != len(files)+4 {
		t.Errorf("got %+v, finished %v, %d files; want %d", checkout, scan.Finished, scan.Files, len(files)+4)
	}
	found := map[string]bool{}
	for _, f := range scan.Findings {
		found[f.Path] = true
	}
	for _, want := range []string{"secrets/token.txt", "secrets/key", "secrets/kubeconfig", `"secrets/a\nb"`, "secrets/binary", "secrets/encoded", "secrets/after much text", "secrets/across the border of a win"} {
		if !found[want] {
			t.Errorf("nothing was found in %s: %+v", want, scan.Findings)
		}
	}
	told := fmt.Sprintf("%+v %+v %+v", checkout, scan, gate.Judge(gate.Facts{Checkout: checkout, Scan: scan}))
	for _, secret := range []string{token, strings.Split(key, "\n")[1], password} {
		if strings.Contains(told, secret) {
			t.Errorf("a secret is told: %s", told)
		}
	}
	if !strings.Contains(told, "a name that looks like a secret") {
		t.Errorf("the file whose name is a secret was not found: %s", told)
	}
}

// 200 MB in one file, once of text and once of zeros, end with a secret that is found.
func TestLargeFiles(t *testing.T) {
	const size, limit = 200 << 20, 128 // bytes, MiB
	for _, row := range []struct{ name, line string }{
		{"text", "2026-12-01T03:00:00Z GET /volumes/projects 200 17ms\n"},
		{"zeros", strings.Repeat("\x00", 64)},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCheckout(t, map[string]string{"a": "a\n"})
			f, err := os.Create(filepath.Join(c.dir, "large"))
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriterSize(f, 1<<20)
			for written := 0; written < size; written += len(row.line) {
				_, _ = w.WriteString(row.line) // Flush says what went wrong
			}
			_, _ = w.WriteString("\n" + privateKey(t)) // as above
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			c.commit()
			runtime.GC()
			stop, began := peakHeap(), time.Now()
			checkout, scan := inspect(t, c)
			peak := stop()
			t.Logf("%d bytes in %s, heap at most %d MiB", scan.Bytes, time.Since(began).Round(time.Millisecond), peak)
			if checkout.Problem != "" || checkout.Changed != 0 || !scan.Finished || scan.Found == 0 || scan.Bytes < size {
				t.Errorf("got %+v, %+v", checkout, scan)
			}
			if peak > limit {
				t.Errorf("the heap grew to %d MiB; expected at most %d", peak, limit)
			}
		})
	}
}

// A scan that would take too long ends at its limit, and the gate stays closed.
func TestScanEndsInTime(t *testing.T) {
	c := newCheckout(t, map[string]string{"volumes/projects.yaml": example(t, "retained-nfs.yaml"), "large": strings.Repeat("secret token key password api\n", 4<<20)})
	began := time.Now()
	r := run(t.Context(), c.dir, []string{
		"GITHUB_API_URL=http://127.0.0.1:1", "GITHUB_TOKEN=x", "GITHUB_SHA=" + c.head(), "GITHUB_REPOSITORY=team/storage", "GITHUB_EVENT_NAME=workflow_dispatch",
	}, built(t, "bin/mooring"), "ci", "gate", "--forge", "github", "--manifest", "volumes/projects.yaml", "--gate-timeout", "1s")
	t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
	if r.code == 0 || !strings.Contains(r.text, "the scan of the repository did not finish") || !strings.Contains(r.text, "it took too long") {
		t.Errorf("got exit code %d\n%s", r.code, r.text)
	}
}
