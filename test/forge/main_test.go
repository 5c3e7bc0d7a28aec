// Package forge_test asks a real Gitea whether the gate of mooring ci may open, runs
// the workflow file of GitHub from preview to create, and lets the scan of the gate
// look for secrets that are made when the test runs.
package forge_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/test/controlplane"
)

const root = "../.."

var plane = &controlplane.Shared{Options: controlplane.Options{Audit: controlplane.AuditMetadata}}

func TestMain(m *testing.M) { os.Exit(controlplane.Run(m, plane)) }

// built returns a program that run.sh built.
func built(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(filepath.Join(root, path))
	if err == nil {
		_, err = os.Stat(absolute)
	}
	if err != nil {
		t.Fatalf("%v: run test/forge/run.sh, which builds it", err)
	}
	return absolute
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// checkout is a repository that a test writes.
type checkout struct {
	*testing.T
	dir string
}

func newCheckout(t *testing.T, files map[string]string) *checkout {
	t.Helper()
	c := &checkout{t, t.TempDir()}
	c.git("init", "-q", "-b", "main")
	c.git("config", "user.name", "test")
	c.git("config", "user.email", "test@example.com")
	c.write(files)
	c.commit()
	return c
}

func (c *checkout) write(files map[string]string) {
	c.Helper()
	for name, text := range files {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *checkout) commit() {
	c.Helper()
	c.git("add", "-A")
	c.git("commit", "-q", "-m", "change")
}

func (c *checkout) head() string { return c.git("rev-parse", "HEAD") }

func (c *checkout) git(args ...string) string {
	c.Helper()
	cmd := exec.Command("git", append([]string{"-C", c.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// result is how a program ended.
type result struct {
	code int
	text string
}

// run runs a program with nothing in its environment but PATH and env.
func run(ctx context.Context, dir string, env []string, name string, args ...string) result {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return result{-1, err.Error()}
	}
	return result{cmd.ProcessState.ExitCode(), out.String()}
}

func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
