package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Git itself is asked, and no library: it reads every format of repository that it
// has. Only objects are read, by their names; the index, which a file can be hidden
// in, is not, and nothing is converted by what the repository asks for.

// maxTree is the longest list of files that is taken: some hundred thousand.
const maxTree = 64 << 20

// entry is one file of a commit.
type entry struct {
	mode, oid, path string
}

const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeLink       = "120000"
	modeSubmodule  = "160000"
)

// repository is a checkout that git is asked about.
type repository struct{ dir string }

// git runs one command of git and returns what it prints, up to limit bytes.
func (r repository) git(ctx context.Context, limit int64, args ...string) ([]byte, error) {
	// The repository's own settings could name programs, and places to fetch from what
	// is not there; none of them is needed.
	options := []string{"--no-replace-objects", "-c", "safe.directory=" + r.dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-C", r.dir}
	cmd := exec.CommandContext(ctx, "git", append(options, args...)...) //nolint:gosec // fixed subcommands; names of commits and files are checked, and no shell reads them
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
	}
	var errs bytes.Buffer
	cmd.Stderr = &limited{&errs, 4 << 10}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("git cannot be started; expected the program in PATH: %w", err)
	}
	data, readErr := io.ReadAll(io.LimitReader(out, limit+1))
	if int64(len(data)) > limit {
		_ = cmd.Process.Kill() // what it has more to say is not wanted
		_ = cmd.Wait()
		return nil, fmt.Errorf("git %s printed more than %d bytes", args[0], limit)
	}
	if err := errors.Join(readErr, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return data, nil
}

// limited keeps the first bytes, and swallows the others.
type limited struct {
	*bytes.Buffer
	left int
}

func (l *limited) Write(data []byte) (int, error) {
	keep := min(len(data), l.left)
	l.left -= keep
	l.Buffer.Write(data[:keep])
	return len(data), nil
}

// openRepository finds the checkout's top directory, which dir must be.
func openRepository(ctx context.Context, dir string) (repository, error) {
	absolute, err := filepath.Abs(dir)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if err != nil {
		return repository{}, err
	}
	r := repository{absolute}
	top, err := r.git(ctx, 4<<10, "rev-parse", "--show-toplevel")
	if err != nil {
		return repository{}, err
	}
	if got := strings.TrimSuffix(string(top), "\n"); got != absolute {
		return repository{}, fmt.Errorf("%s is inside the checkout %s; expected its top directory", shown(absolute), shown(got))
	}
	return r, nil
}

// isCommit says whether name is a whole object name, which no option of git is.
func isCommit(name string) bool {
	return (len(name) == 40 || len(name) == 64) && strings.Trim(name, "0123456789abcdef") == ""
}

func (r repository) head(ctx context.Context) (string, error) {
	out, err := r.git(ctx, 4<<10, "rev-parse", "--verify", "--end-of-options", "HEAD^{commit}")
	return strings.TrimSpace(string(out)), err
}
