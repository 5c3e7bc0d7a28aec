package controlplane

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// tailBytes bounds how much of a log is read for its last lines.
const tailBytes = 256 << 10

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
