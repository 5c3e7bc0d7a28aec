package controlplane

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

var (
	//go:embed guardian.sh
	guardianFunctions string
	//go:embed watch.sh
	guardianLoop string
)

// guardian is a shell that outlives this process just long enough to kill what
// it started and to remove the plane's directory. It holds the reading end of
// a pipe whose only writing end is in this process: however this process ends,
// the pipe ends with it.
type guardian struct {
	dir string
	cmd *exec.Cmd

	mu      sync.Mutex
	orders  io.WriteCloser
	answers *bufio.Reader
}

func startGuardian(dir string) (*guardian, error) {
	cmd := exec.Command("/bin/sh", "-c", guardianFunctions+guardianLoop, "controlplane-guardian", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of this terminal are not for it
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the guardian: %w", err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the guardian: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guardian: %w", err)
	}
	return &guardian{dir: dir, cmd: cmd, orders: orders, answers: bufio.NewReader(answers)}, nil
}

// watch makes the guardian responsible for a process.
func (g *guardian) watch(pid int) error {
	_, err := g.order(fmt.Sprintf("watch %d", pid))
	return err
}

// forget is told when a process has ended.
func (g *guardian) forget(pid int) error {
	_, err := g.order(fmt.Sprintf("forget %d", pid))
	return err
}

func (g *guardian) order(line string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := io.WriteString(g.orders, line+"\n"); err != nil {
		return "", fmt.Errorf("the guardian is gone: %w", err)
	}
	answer, err := g.answers.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the guardian is gone: %w", err)
	}
	return strings.TrimSpace(answer), nil
}

// finish lets the guardian do its work now, and does it again here in case the
// guardian is gone.
func (g *guardian) finish() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.orders.Close() // its end is what the guardian waits for
	waitErr := g.cmd.Wait()
	if err := os.RemoveAll(g.dir); err != nil {
		return fmt.Errorf("remove the control plane's directory: %w", err)
	}
	if waitErr != nil {
		return fmt.Errorf("the guardian failed: %w", waitErr)
	}
	return nil
}

// release ends the guardian and leaves everything as it is. It gives the
// processes that live, each as id:birth.
func (g *guardian) release() ([]string, error) {
	known, err := g.order("detach")
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("the guardian failed: %w", err)
	}
	return strings.Fields(known), nil
}
