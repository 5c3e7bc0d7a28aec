package controlplane

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// tailBytes bounds how much of a log is read for its last lines.
	tailBytes = 256 << 10
	// complaintWidth bounds, in bytes, what is shown of one line: some hold an
	// object whole.
	complaintWidth = 300
)

// LogFile is where the process's output is appended, all its lives in one.
func (p *Process) LogFile() string { return filepath.Join(p.plane.dir, "logs", p.name+".log") }

// LogTail gives the last n lines of the process's output.
func (p *Process) LogTail(n int) string {
	info, err := os.Stat(p.LogFile())
	if err != nil {
		return ""
	}
	return lastLines(p.outputFrom(max(0, info.Size()-tailBytes)), n)
}

// complaints gives the last n lines of the process's output that are not about
// what went well, the beginning of each.
func (p *Process) complaints(n int) string {
	info, err := os.Stat(p.LogFile())
	if err != nil {
		return ""
	}
	lines := slices.DeleteFunc(strings.Split(p.outputFrom(max(0, info.Size()-tailBytes)), "\n"), isGood)
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), complaintWidth)]
	}
	return strings.Join(lines, "\n")
}

// isGood reports whether a line of a log is empty, or one of level info as etcd
// (JSON) or Kubernetes (klog's "I0102 15:04:05") write it.
func isGood(line string) bool {
	return line == "" || strings.HasPrefix(line, `{"level":"info"`) || goodKlog.MatchString(line)
}

var goodKlog = regexp.MustCompile(`^I[0-9]{4} [0-9:.]+ `)

// copyLog copies the process's log into a directory, and returns the copy's path.
func (p *Process) copyLog(dir string) (string, error) {
	path := filepath.Join(dir, p.name+".log")
	data, err := os.ReadFile(p.LogFile())
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o600)
}

// outputFrom gives what was written after an offset. A log that cannot be read
// must not hide the error for which it is read.
func (p *Process) outputFrom(offset int64) string {
	file, err := os.Open(p.LogFile())
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return fmt.Sprintf("%s\n(log ends early: %v)", data, err)
	}
	return string(data)
}

// LogTail gives the last n lines of the output of the process with that name
// (EtcdName, APIServerName, ControllerManagerName, or a Command's), or "" if
// there is none.
func (cp *ControlPlane) LogTail(process string, n int) string {
	for _, p := range cp.processes() {
		if p.name == process && !p.foreign {
			return p.LogTail(n)
		}
	}
	return ""
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func withTail(err error, tail string) error {
	if tail == "" {
		return err
	}
	return fmt.Errorf("%w; its log ends with:\n%s", err, tail)
}
