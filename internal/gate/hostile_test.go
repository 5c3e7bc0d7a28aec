package gate_test

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/gate"
)

// hostile is a checkout in whose .git somebody has been before.
type hostile struct {
	*repo
	commit, mark string // mark is a file that a program of theirs would make
}

// program returns a command that leaves the mark.
func (h *hostile) program(then string) string { return "touch " + h.mark + "; " + then }

// forge writes an object under the name of another.
func (h *hostile) forge(name, kind, data string) {
	h.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, err := fmt.Fprintf(w, "%s %d\x00%s", kind, len(data), data)
	h.must(err)
	h.must(w.Close())
	path := filepath.Join(h.dir, ".git/objects", name[:2], name[2:])
	h.must(os.Chmod(path, 0o600))
	h.must(os.WriteFile(path, packed.Bytes(), 0o600))
}

// tree returns a tree of one file, as git stores it.
func tree(t *testing.T, mode, name, oid string) string {
	t.Helper()
	raw, err := hex.DecodeString(oid)
	if err != nil {
		t.Fatal(err)
	}
	return mode + " " + name + "\x00" + string(raw)
}

// What stands in .git is not believed: not its settings, which no program of theirs is
// started by, and not its objects, which are held against the commit's name.
func TestHostileRepository(t *testing.T) {
	const (
		other    = "other\n"
		isNot    = " is not what its name "
		mismatch = "hash mismatch" // git itself looks at the first two
		expected = "expected its top directory"
	)
	for _, row := range []struct {
		name    string
		change  func(*hostile)
		problem string   // of the checkout
		changes []string // where it can be read
	}{
		{"a filter that says all is well", func(h *hostile) {
			h.git("config", "filter.theirs.clean", h.program("printf 'text\\n'"))
			h.write(map[string]string{"a.txt": other})
		}, "", []string{"a.txt (other content)"}},
		{"a filter in attributes outside the commit", func(h *hostile) {
			h.git("config", "filter.theirs.process", h.program("cat"))
			h.write(map[string]string{".git/info/attributes": "* filter=theirs text working-tree-encoding=UTF-16\n", "dir/b.txt": other})
		}, "", []string{"dir/b.txt (other content)"}},
		{"programs for everything", func(h *hostile) {
			for _, key := range []string{"core.fsmonitor", "core.pager", "pager.ls-tree", "core.editor", "diff.external", "diff.x.textconv", "alias.ls-tree", "alias.rev-parse", "core.sshCommand", "core.gitProxy", "credential.helper", "gpg.program"} {
				h.git("config", key, "!"+h.program("cat"))
			}
			h.write(map[string]string{".git/info/attributes": "* diff=x\n"})
			for _, hook := range []string{"post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction"} {
				h.write(map[string]string{".git/hooks/" + hook: "#!/bin/sh\n" + h.program("exit 1")})
				h.must(os.Chmod(filepath.Join(h.dir, ".git/hooks", hook), 0o700))
			}
		}, "", nil},
		{"settings of other files", func(h *hostile) {
			h.write(map[string]string{".git/theirs": "[core]\nfsmonitor = \"" + h.program("cat") + "\"\n[alias]\ncat-file = \"!" + h.program("cat") + "\"\n"})
			h.git("config", "include.path", "theirs")
			h.git("config", "includeIf.onbranch:**.path", "theirs")
		}, "", nil},
		{"another work tree", func(h *hostile) { h.git("config", "core.worktree", h.TempDir()) }, expected, nil},
		{"a commit that is another one", func(h *hostile) {
			h.write(map[string]string{"a.txt": other})
			newest := h.repo.commit()
			h.git("checkout", "-q", "--detach", h.commit)
			h.write(map[string]string{"a.txt": other})
			h.forge(h.commit, "commit", h.git("cat-file", "commit", newest)+"\n")
		}, mismatch, nil},
		{"the top directory another one", func(h *hostile) {
			h.write(map[string]string{"a.txt": other})
			oid := h.git("hash-object", "-w", "a.txt")
			h.forge(h.git("rev-parse", h.commit+"^{tree}"), "tree", tree(h.T, "100644", "a.txt", oid))
		}, mismatch, nil},
		{"a directory below another one", func(h *hostile) {
			h.write(map[string]string{"dir/b.txt": other})
			oid := h.git("hash-object", "-w", "dir/b.txt")
			h.forge(h.git("rev-parse", h.commit+":dir"), "tree", tree(h.T, "100644", "b.txt", oid))
		}, "the directory dir of the commit" + isNot, nil},
		{"a directory that seems empty", func(h *hostile) {
			h.forge(h.git("rev-parse", h.commit+":dir"), "tree", "")
		}, "the directory dir of the commit" + isNot, nil},
		{"a file that is another one", func(h *hostile) {
			h.write(map[string]string{"a.txt": other})
			h.forge(h.git("rev-parse", h.commit+":a.txt"), "blob", other)
		}, "", []string{"a.txt (other content)"}},
		{"another commit in its place", func(h *hostile) {
			h.write(map[string]string{"a.txt": other})
			newest := h.repo.commit()
			h.git("checkout", "-q", "--detach", h.commit)
			h.write(map[string]string{"a.txt": other})
			h.git("replace", h.commit, newest)
		}, "", []string{"a.txt (other content)"}},
		{"another history", func(h *hostile) {
			h.write(map[string]string{".git/info/grafts": h.commit + " " + strings.Repeat("1", 40) + "\n"})
		}, "", nil},
		{"objects of another repository", func(h *hostile) {
			from := newRepo(h.T, map[string]string{"a.txt": other})
			from.commit()
			h.write(map[string]string{".git/objects/info/alternates": filepath.Join(from.dir, ".git/objects") + "\n"})
		}, "", nil},
		{"objects to be fetched", func(h *hostile) {
			for key, value := range map[string]string{
				"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
				"remote.origin.url": "ext::sh -c " + strings.ReplaceAll(h.program("cat"), " ", "% "), "protocol.ext.allow": "always", "protocol.allow": "always",
			} {
				h.git("config", key, value)
			}
			name := h.git("rev-parse", h.commit+":dir")
			h.must(os.Remove(filepath.Join(h.dir, ".git/objects", name[:2], name[2:])))
		}, "git ls-tree", nil},
		{"a directory left out", func(h *hostile) {
			h.git("sparse-checkout", "set", "--no-cone", "/*", "!/dir")
		}, "", []string{"dir/b.txt (missing)"}},
		{"an index that knows nothing", func(h *hostile) {
			h.git("update-index", "--assume-unchanged", "a.txt")
			h.git("update-index", "--skip-worktree", "dir/b.txt")
			h.write(map[string]string{"a.txt": other, "dir/b.txt": other, ".git/info/exclude": "*\n", "new.txt": "new"})
		}, "", []string{"a.txt (other content)", "dir/b.txt (other content)", "new.txt (not in the commit)"}},
		{"names that differ in case", func(h *hostile) {
			h.git("config", "core.ignoreCase", "true")
			h.must(os.Rename(filepath.Join(h.dir, "a.txt"), filepath.Join(h.dir, "A.TXT")))
		}, "", []string{"a.txt (missing)", "A.TXT (not in the commit)"}},
		{"a parent that leads out", func(h *hostile) {
			outside := h.TempDir()
			h.must(os.Rename(filepath.Join(h.dir, "dir/b.txt"), filepath.Join(outside, "b.txt")))
			h.must(os.Remove(filepath.Join(h.dir, "dir")))
			h.must(os.Symlink(outside, filepath.Join(h.dir, "dir")))
		}, "", []string{"dir/b.txt (cannot be read)", "dir (not in the commit)"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &hostile{repo: newRepo(t, map[string]string{"a.txt": "text\n", "dir/b.txt": "b\n", ".gitattributes": "a.txt filter=theirs\n"})}
			h.commit, h.mark = h.repo.commit(), filepath.Join(t.TempDir(), "mark")
			row.change(h)
			_ = os.Remove(h.mark) // by the test's own git
			got, scan := h.inspect(h.commit)
			if _, err := os.Stat(h.mark); err == nil {
				t.Error("a program of the repository's settings was started")
			}
			if row.problem != "" {
				if !strings.Contains(got.Problem, row.problem) || got.Read || scan.Finished {
					t.Errorf("got %+v, %+v; want %q", got, scan, row.problem)
				}
				return
			}
			if got.Problem != "" || !got.Read || !slices.Equal(got.Changes, row.changes) {
				t.Errorf("got %+v; want %q", got, row.changes)
			}
		})
	}
}

// Variables that would lead git elsewhere do not reach it.
func TestHostileEnvironment(t *testing.T) {
	from := newRepo(t, map[string]string{"other.txt": "other\n"})
	from.commit()
	h := &hostile{repo: newRepo(t, map[string]string{"a.txt": "text\n"}), mark: filepath.Join(t.TempDir(), "mark")}
	h.commit = h.repo.commit()
	script := filepath.Join(t.TempDir(), "script")
	h.must(os.WriteFile(script, []byte("#!/bin/sh\n"+h.program("exit 1")+"\n"), 0o600))
	h.must(os.Chmod(script, 0o700))
	other := filepath.Join(from.dir, ".git")
	for name, value := range map[string]string{
		"GIT_DIR": other, "GIT_WORK_TREE": from.dir, "GIT_COMMON_DIR": other, "GIT_OBJECT_DIRECTORY": filepath.Join(other, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES": filepath.Join(other, "objects"), "GIT_INDEX_FILE": filepath.Join(other, "index"),
		"GIT_NAMESPACE": "x", "GIT_REPLACE_REF_BASE": "refs/heads/", "GIT_CEILING_DIRECTORIES": filepath.Dir(h.dir),
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": script, "GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='" + script + "'",
		"GIT_EXEC_PATH": filepath.Dir(script), "GIT_PAGER": script, "GIT_EXTERNAL_DIFF": script, "GIT_SSH": script, "GIT_ASKPASS": script,
		"GIT_TRACE": h.mark, "GIT_TRACE2": h.mark, "GIT_TRACE_SETUP": h.mark, "GIT_LITERAL_PATHSPECS": "1", "GIT_ATTR_SOURCE": "HEAD",
	} {
		t.Setenv(name, value)
	}
	got, scan := gate.Inspection{Dir: h.dir, Commit: h.commit, Scanner: scannerWith(t, acceptAll), CheckVolume: acceptAll}.Observe(t.Context())
	if got.Problem != "" || !got.Read || got.Changed != 0 || got.Head != h.commit || scan.Files != 1 {
		t.Errorf("got %+v, %+v", got, scan)
	}
	if _, err := os.Stat(h.mark); err == nil {
		t.Error("git did what a variable says")
	}
}

// A conversion other than that of line ends makes the file another one: what is
// scanned is then not what the commit holds.
func TestConversions(t *testing.T) {
	r := newRepo(t, map[string]string{
		".gitattributes": "crlf.txt text eol=crlf\nutf.txt text working-tree-encoding=UTF-16LE\nid.txt ident\n",
		"crlf.txt":       "one\ntwo\rand\nthree\r", "id.txt": "$Id$\n",
	})
	r.write(map[string]string{"utf.txt": utf16Of("text\n")[2:]})
	c := r.commit()
	r.must(os.Remove(filepath.Join(r.dir, "crlf.txt")))
	r.must(os.Remove(filepath.Join(r.dir, "id.txt")))
	r.git("checkout", "-q", "--", ".")
	got, _ := r.inspect(c)
	if want := []string{"id.txt (other content)", "utf.txt (other content)"}; got.Problem != "" || !slices.Equal(got.Changes, want) {
		t.Errorf("got %+v; want %q", got, want)
	}
}

// Repositories of git's other object format are read as well.
func TestSHA256Repository(t *testing.T) {
	r := &repo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main", "--object-format=sha256")
	r.write(map[string]string{"a.txt": "text\n", "dir/b/c.txt": "c\n"})
	c := r.commit()
	if got, scan := r.inspect(c, "a.txt"); len(c) != 64 || got.Problem != "" || got.Changed != 0 || !scan.Finished || scan.Files != 2 {
		t.Errorf("got %+v, %+v", got, scan)
	}
}
