package gate_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/gate"
)

// repo is a repository made for one test.
type repo struct {
	*testing.T
	dir string
}

func newRepo(t *testing.T, files map[string]string) *repo {
	t.Helper()
	r := &repo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.write(files)
	return r
}

func (r *repo) write(files map[string]string) {
	r.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *repo) git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits everything and returns the commit.
func (r *repo) commit() string {
	r.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change")
	return r.git("rev-parse", "HEAD")
}

func acceptAll([]byte) string { return "" }

func (r *repo) inspect(commit string, manifests ...string) (gate.Checkout, gate.Scan) {
	r.Helper()
	scanner := scannerWith(r.T, acceptAll)
	return gate.Inspection{Dir: r.dir, Commit: commit, Manifests: manifests, Scanner: scanner, CheckVolume: acceptAll}.Observe(r.Context())
}

func TestCheckoutAsCommitted(t *testing.T) {
	r := newRepo(t, map[string]string{
		"v.yaml": "kind: PersistentVolume\n", "dir/run.sh": "#!/bin/sh\n", ".gitattributes": "*.bat text eol=crlf\n", "x.bat": "one\r\ntwo\r\n",
	})
	if err := os.Chmod(filepath.Join(r.dir, "dir/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../etc/passwd", filepath.Join(r.dir, "outside")); err != nil {
		t.Fatal(err)
	}
	c := r.commit()
	checkout, scan := r.inspect(c, "v.yaml")
	want := []gate.ManifestFile{{Path: "v.yaml", Digest: "sha256:" + sha256Of("kind: PersistentVolume\n")}}
	if checkout.Problem != "" || !checkout.Read || checkout.Changed != 0 || checkout.Head != c || !slices.Equal(checkout.Manifests, want) {
		t.Errorf("got %+v", checkout)
	}
	if !scan.Finished || scan.Files != 5 || scan.Found != 0 {
		t.Errorf("got %+v", scan)
	}
}

// Whatever differs from the commit is a change, hidden from git's status or not.
func TestCheckoutChanges(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*repo)
		want   []string
	}{
		{"content", func(r *repo) { r.write(map[string]string{"a.txt": "other\n"}) }, []string{"a.txt (other content)"}},
		{"content of the same size, and told git to look away", func(r *repo) {
			r.git("update-index", "--assume-unchanged", "a.txt")
			r.write(map[string]string{"a.txt": "txet\n"})
		}, []string{"a.txt (other content)"}},
		{"skipped in the work tree", func(r *repo) {
			r.git("update-index", "--skip-worktree", "a.txt")
			r.write(map[string]string{"a.txt": "new\n"})
		}, []string{"a.txt (other content)"}},
		{"staged", func(r *repo) {
			r.write(map[string]string{"a.txt": "staged\n"})
			r.git("add", "a.txt")
		}, []string{"a.txt (other content)"}},
		{"missing", func(r *repo) { r.must(os.Remove(filepath.Join(r.dir, "a.txt"))) }, []string{"a.txt (missing)"}},
		{"untracked", func(r *repo) { r.write(map[string]string{"new.txt": "x"}) }, []string{"new.txt (not in the commit)"}},
		{"ignored", func(r *repo) { r.write(map[string]string{"x.ignored": "x"}) }, []string{"x.ignored (not in the commit)"}},
		{"a repository inside", func(r *repo) { r.write(map[string]string{"inner/.git/config": "x"}) }, []string{"inner/.git/config (not in the commit)"}},
		{"mode", func(r *repo) { r.must(os.Chmod(filepath.Join(r.dir, "a.txt"), 0o755)) }, []string{"a.txt (other mode)"}},
		{"a link instead", func(r *repo) {
			r.must(os.Remove(filepath.Join(r.dir, "a.txt")))
			r.must(os.Symlink("/etc/hostname", filepath.Join(r.dir, "a.txt")))
		}, []string{"a.txt (no regular file any more)"}},
		{"a link that leads elsewhere", func(r *repo) {
			r.must(os.Remove(filepath.Join(r.dir, "link")))
			r.must(os.Symlink("/etc", filepath.Join(r.dir, "link")))
		}, []string{"link (another link)"}},
		{"a directory that became a link", func(r *repo) {
			r.must(os.Rename(filepath.Join(r.dir, "dir"), filepath.Join(r.dir, "moved")))
			r.must(os.Symlink("moved", filepath.Join(r.dir, "dir")))
		}, []string{"dir (not in the commit)", "moved/b.txt (not in the commit)"}},
		{"a name with a newline", func(r *repo) { r.write(map[string]string{"a\nb": "x"}) }, []string{`"a\nb" (not in the commit)`}},
	} {
		r := newRepo(t, map[string]string{"a.txt": "text\n", "dir/b.txt": "b\n", ".gitignore": "*.ignored\n"})
		r.must(os.Symlink("a.txt", filepath.Join(r.dir, "link")))
		c := r.commit()
		row.change(r)
		got, _ := r.inspect(c)
		if got.Problem != "" || !slices.Equal(got.Changes, row.want) || got.Changed != len(row.want) {
			t.Errorf("%s: got %+v; want %q", row.name, got, row.want)
		}
	}
}

func (r *repo) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func TestManifestPaths(t *testing.T) {
	other := newRepo(t, map[string]string{"v.yaml": "v\n"})
	other.commit()
	r := newRepo(t, map[string]string{"real/v.yaml": "v\n"})
	r.must(os.Symlink("real", filepath.Join(r.dir, "linked")))
	r.must(os.Symlink("real/v.yaml", filepath.Join(r.dir, "link.yaml")))
	r.git("submodule", "add", "-q", other.dir, "sub")
	c := r.commit()
	r.write(map[string]string{"untracked.yaml": "v\n"})
	got, _ := r.inspect(c, "real/v.yaml", "real/v.yaml", "link.yaml", "linked/v.yaml", "sub", "sub/v.yaml", "untracked.yaml",
		"/etc/passwd", "../v.yaml", "real/../real/v.yaml", ".git/config", "", "--help")
	want := []string{"", "is named twice", "is a symbolic link; expected a regular file",
		"is not tracked by git at the commit: linked is a symbolic link", "is a submodule; expected a regular file",
		"is not tracked by git at the commit: sub is a submodule", "is not tracked by git at the commit"}
	for range 5 {
		want = append(want, "is no path inside the checkout; expected one such as volumes/projects.yaml")
	}
	want = append(want, "is not tracked by git at the commit")
	for i, m := range got.Manifests {
		if m.Problem != want[i] {
			t.Errorf("%q: got %q; want %q", m.Path, m.Problem, want[i])
		}
	}
	if !slices.Contains(got.Changes, "sub (a submodule that is checked out; leave submodules out)") {
		t.Errorf("got %q", got.Changes)
	}
}

func TestCheckoutUnreadable(t *testing.T) {
	r := newRepo(t, map[string]string{"dir/a": "x"})
	c := r.commit()
	for _, row := range []struct{ name, dir, commit, want string }{
		{"no name of a commit", r.dir, "main", `GITHUB_SHA is "main"; expected the whole name of a commit`},
		{"an option", r.dir, "--output=/tmp/x", `GITHUB_SHA is "--output=/tmp/x"; expected the whole name of a commit`},
		{"below the top", filepath.Join(r.dir, "dir"), c, "expected its top directory"},
		{"no repository", t.TempDir(), c, "git rev-parse"},
		{"no directory", filepath.Join(r.dir, "gone"), c, "no such file or directory"},
		{"a commit that is not there", r.dir, newer, "git cat-file"},
	} {
		scanner := scannerWith(r.T, acceptAll)
		checkout, scan := gate.Inspection{Dir: row.dir, Commit: row.commit, Scanner: scanner, CheckVolume: acceptAll}.Observe(t.Context())
		if !strings.Contains(checkout.Problem, row.want) || checkout.Read || scan.Finished {
			t.Errorf("%s: got %+v, %+v", row.name, checkout, scan)
		}
	}
}

// A replacement of an object does not change what the commit is.
func TestReplacedObject(t *testing.T) {
	r := newRepo(t, map[string]string{"a": "reviewed\n"})
	c := r.commit()
	r.write(map[string]string{"a": "other\n"})
	r.git("replace", r.git("rev-parse", c+":a"), r.git("hash-object", "-w", "a"))
	if got, _ := r.inspect(c); !slices.Equal(got.Changes, []string{"a (other content)"}) {
		t.Errorf("got %+v", got)
	}
}

func TestScanStopsInTime(t *testing.T) {
	r := newRepo(t, map[string]string{"a": "x\n"})
	c := r.commit()
	scanner := scannerWith(r.T, acceptAll)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	checkout, scan := gate.Inspection{Dir: r.dir, Commit: c, Scanner: scanner, CheckVolume: acceptAll}.Observe(ctx)
	if checkout.Read || scan.Finished || checkout.Problem == "" {
		t.Errorf("got %+v, %+v", checkout, scan)
	}
}
