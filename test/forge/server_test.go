package forge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// forge is a real Gitea, with SQLite, on the loopback.
type forge struct {
	*testing.T
	url, dir, program string
	tokens            map[string]string // of the accounts, with all rights
}

const settings = `APP_NAME = test
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]s
ROOT_URL = http://127.0.0.1:%[2]s/
STATIC_ROOT_PATH = %[3]s
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
[security]
INSTALL_LOCK = true
[repository]
ROOT = %[1]s/repositories
DEFAULT_BRANCH = main
[log]
MODE = console
LEVEL = warn
[cron]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
`

func newForge(t *testing.T, accounts ...string) *forge {
	t.Helper()
	source, err := os.ReadFile(built(t, ".cache/forge/gitea.source"))
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	f := &forge{T: t, dir: t.TempDir(), program: built(t, ".cache/forge/gitea"), url: "http://127.0.0.1:" + port, tokens: map[string]string{}}
	config := fmt.Sprintf(settings, f.dir, port, strings.TrimSpace(string(source)))
	if err := os.WriteFile(filepath.Join(f.dir, "app.ini"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	f.gitea("migrate")
	for _, account := range accounts {
		f.gitea("admin", "user", "create", "--username", account, "--password", "of-"+account+"-123456", "--email", account+"@example.com", "--must-change-password=false")
		f.tokens[account] = f.token(account, "all")
	}
	f.start()
	return f
}

// gitea runs a command of its.
func (f *forge) gitea(args ...string) string {
	f.Helper()
	r := run(f.Context(), f.dir, []string{"USER=root"}, f.program, append(args, "--config", filepath.Join(f.dir, "app.ini"))...)
	if r.code != 0 {
		f.Fatalf("gitea %q: exit code %d\n%s", args, r.code, r.text)
	}
	return strings.TrimSpace(r.text)
}

// token makes a token of an account with a scope.
func (f *forge) token(account, scope string) string {
	f.Helper()
	lines := strings.Split(f.gitea("admin", "user", "generate-access-token", "--username", account, "--token-name", fmt.Sprintf("t%d", time.Now().UnixNano()), "--scopes", scope, "--raw"), "\n")
	return lines[len(lines)-1]
}

func (f *forge) start() {
	f.Helper()
	var log bytes.Buffer
	cmd := exec.Command(f.program, "web", "--config", filepath.Join(f.dir, "app.ini"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.dir, &log, &log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "USER=root"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	f.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := <-ended; err != nil {
			f.Logf("gitea ended, as it was told to: %v", err)
		}
		if f.Failed() {
			f.Logf("gitea's log:\n%s", log.String())
		}
	})
	deadline, tick := time.After(90*time.Second), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		if answer, err := http.Get(f.url + "/api/v1/version"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-ended:
			ended <- err
			f.Fatalf("gitea ended: %v\n%s", err, log.String())
		case <-deadline:
			f.Fatalf("gitea does not answer")
		case <-tick.C:
		}
	}
}

// call sends one request to the API as an account, and reads the answer.
func (f *forge) call(account, method, path string, body, into any) {
	f.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		f.Fatal(err)
	}
	req, err := http.NewRequestWithContext(f.Context(), method, f.url+"/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		f.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+f.tokens[account])
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		f.Fatalf("%s %s: %v, %s\n%s", method, path, err, answer.Status, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			f.Fatal(err)
		}
	}
}

// repository makes a private repository of alice, and pushes a checkout to it.
func (f *forge) repository(t *testing.T, name string, files map[string]string, branches ...string) *checkout {
	t.Helper()
	f.call("alice", http.MethodPost, "/user/repos", map[string]any{"name": name, "private": true}, nil)
	c := newCheckout(t, files)
	u, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword("alice", f.tokens["alice"]), "/alice/"+name+".git"
	c.git("remote", "add", "origin", u.String())
	f.push(c, name, "main", "main")
	for _, branch := range branches {
		f.push(c, name, "main", branch)
	}
	return c
}

// push pushes what from names to a branch, or deletes it for "", and waits until the
// forge knows: it takes note of pushes later.
func (f *forge) push(c *checkout, name, from, branch string) {
	c.Helper()
	c.git("push", "-q", "origin", from+":refs/heads/"+branch)
	want := ""
	if from != "" {
		want = c.git("rev-parse", from)
	}
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		status, text := f.get("/repos/alice/" + name + "/branches/" + branch)
		if want == "" && status == http.StatusNotFound || want != "" && status == http.StatusOK && strings.Contains(text, want) {
			return
		}
		select {
		case <-deadline:
			c.Fatalf("gitea takes no note of the push to %s: %d %s", branch, status, text)
		case <-tick.C:
		}
	}
}

// get asks as alice, and returns whatever is answered.
func (f *forge) get(path string) (int, string) {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.url+"/api/v1"+path, nil)
	if err != nil {
		f.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+f.tokens["alice"])
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// protect protects what a pattern matches; its owner may push all the same.
func (f *forge) protect(name, pattern string) {
	f.Helper()
	f.call("alice", http.MethodPost, "/repos/alice/"+name+"/branch_protections", map[string]any{
		"rule_name": pattern, "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"alice"},
	}, nil)
}
