package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Kill ends the process without warning (SIGKILL) and waits until it is gone.
func (p *Process) Kill() error {
	r, err := p.signal("kill", syscall.SIGKILL)
	if err != nil {
		return err
	}
	<-r.done
	return nil
}

// Stop asks the process to end (SIGTERM) and waits for it. If ctx ends first,
// the process is killed and that is an error.
func (p *Process) Stop(ctx context.Context) error {
	r, err := p.signal("stop", syscall.SIGTERM)
	if err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	late := fmt.Errorf("%s did not end in time: %w", p.name, context.Cause(ctx))
	if err := p.Kill(); err != nil && !errors.Is(err, errNotRunning) {
		return errors.Join(late, err)
	}
	return late
}

// Pause stops the process from running (SIGSTOP) until Resume, and returns when
// it has stopped; its connections stay open.
func (p *Process) Pause() error {
	r, err := p.signal("pause", syscall.SIGSTOP)
	if err != nil {
		return err
	}
	return waitStopped(r.cmd.Process.Pid)
}

// stopPatience is how long a process on a busy machine may take to stop.
const stopPatience = 10 * time.Second

// waitStopped waits until no thread of a process runs any more: the signal only
// asks for it, and one may answer a request meanwhile.
func waitStopped(pid int) error {
	for deadline := time.Now().Add(stopPatience); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		running, err := runningThreads(pid)
		if err != nil || running == 0 {
			return err
		}
	}
	return fmt.Errorf("process %d did not stop within %v of SIGSTOP", pid, stopPatience)
}

// runningThreads counts the threads of a process that are not stopped, by the
// state in /proc (proc(5): the field after the name, T where stopped).
func runningThreads(pid int) (int, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return 0, err
	}
	running := 0
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it ended in between
		}
		_, state, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		if !strings.HasPrefix(state, "T") {
			running++
		}
	}
	return running, nil
}

// Resume lets a paused process go on (SIGCONT).
func (p *Process) Resume() error {
	_, err := p.signal("resume", syscall.SIGCONT)
	return err
}

// Wait waits for the process to end by itself and gives its exit code, or -1
// if a signal ended it. A process that does not run any more gives the code of
// its last life.
func (p *Process) Wait(ctx context.Context) (int, error) {
	if p.foreign {
		return 0, p.foreignError("wait for")
	}
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r == nil {
		return 0, fmt.Errorf("wait for %s: it was never started", p.name)
	}
	select {
	case <-r.done:
		return r.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for %s to end: %w", p.name, context.Cause(ctx))
	}
}

func (p *Process) signal(verb string, s syscall.Signal) (*run, error) {
	if p.foreign {
		return nil, p.foreignError(verb)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.run.running() {
		return nil, fmt.Errorf("%s %s: it %w", verb, p.name, errNotRunning)
	}
	if err := p.run.cmd.Process.Signal(s); err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, p.name, err)
	}
	return p.run, nil
}

func (p *Process) foreignError(verb string) error {
	return fmt.Errorf("%s %s: %w", verb, p.name, ErrExistingCluster)
}
