package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

var (
	errNotRunning = errors.New("is not running")
	errPortTaken  = errors.New("its port was taken by another process")
)

// Command says how to run a program beside the control plane.
type Command struct {
	Name string   // unique in the plane; names the log file
	Path string   // of the executable
	Args []string // without the program's name
	Env  []string // as in exec.Cmd: nil is this process's environment
	Dir  string   // working directory; zero: this process's
	// Ready is asked until it gives nil; Process.Start waits for it. Zero: the
	// process is ready at once.
	Ready func(context.Context) error
}

// Process is one process of the plane: it can be killed, paused, started
// again, and its output is kept in a file. Its methods may be called from
// several goroutines.
type Process struct {
	name    string
	plane   *ControlPlane
	ports   []int // the same at every start
	command func() (Command, error)
	ready   func(context.Context) error
	foreign bool // belongs to an existing cluster

	mu  sync.Mutex
	run *run // the latest; nil before the first
}

// run is one life of a process.
type run struct {
	cmd       *exec.Cmd
	done      chan struct{} // closed when the process has ended
	err       error         // how it ended; valid after done
	logOffset int64         // where its output begins
}

func (r *run) running() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

func (cp *ControlPlane) newProcess(name string) *Process {
	return &Process{name: name, plane: cp}
}

// Command prepares a further program, such as the controller under test, as a
// process of the plane: guarded, logged, and ended with it. Start it with
// Process.Start. It works on an existing cluster too.
func (cp *ControlPlane) Command(c Command) (*Process, error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if c.Name == "" || c.Name != filepath.Base(c.Name) || c.Path == "" {
		return nil, fmt.Errorf("a command needs a path and a name that can name a file, not %q and %q", c.Path, c.Name)
	}
	taken := []string{EtcdName, APIServerName, ControllerManagerName}
	for _, p := range cp.commands {
		taken = append(taken, p.name)
	}
	for _, name := range taken {
		if name == c.Name {
			return nil, fmt.Errorf("the plane has a process called %s already", name)
		}
	}
	p := cp.newProcess(c.Name)
	p.command = func() (Command, error) { return c, nil }
	p.ready = c.Ready
	cp.commands = append(cp.commands, p)
	return p, nil
}

// Name is the process's name in the plane.
func (p *Process) Name() string { return p.name }

// PID is the process's id while it runs, else 0.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.run.running() {
		return 0
	}
	return p.run.cmd.Process.Pid
}

// Start starts the process, at the same ports and with the same data as
// before, and waits until it is ready. If it does not become ready in time, it
// is killed.
func (p *Process) Start(ctx context.Context) error {
	if p.foreign {
		return p.foreignError("start")
	}
	ctx, cancel := context.WithTimeout(ctx, p.plane.options.StartTimeout)
	defer cancel()
	r, err := p.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if p.ready == nil {
		return nil
	}
	if err := poll(ctx, r.done, p.ready); err == nil {
		return nil
	} else if r.running() {
		err = fmt.Errorf("%s did not become ready: %w", p.name, err)
		return errors.Join(withTail(err, p.LogTail(20)), p.Kill())
	}
	output := p.outputFrom(r.logOffset)
	if strings.Contains(output, "address already in use") {
		return fmt.Errorf("start %s: %w", p.name, errPortTaken)
	}
	return withTail(fmt.Errorf("%s ended before it was ready (%w)", p.name, r.err), lastLines(output, 20))
}

// startFirst chooses the ports, and others if somebody was faster.
func (p *Process) startFirst(ctx context.Context, ports int) error {
	var err error
	for range 5 {
		if p.ports, err = freePorts(ports); err != nil {
			return fmt.Errorf("start %s: %w", p.name, err)
		}
		if err = p.Start(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// launch starts the program in such a way that it cannot be left behind: a
// shell waits for a line before it becomes the program, and gets the line only
// after the guardian knows the process. If this process dies in between, the
// shell sees the end of its input and ends.
func (p *Process) launch() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run.running() {
		return nil, errors.New("it is running already")
	}
	c, err := p.command()
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(c.Path); err != nil {
		return nil, err
	}
	log, offset, err := p.openLog()
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `read -r _ && exec "$0" "$@" </dev/null`, c.Path}, c.Args...)...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for this process alone
	gate, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &run{cmd: cmd, done: make(chan struct{}), logOffset: offset}
	guardErr := p.plane.guard.watch(cmd.Process.Pid)
	if guardErr == nil {
		_, guardErr = gate.Write([]byte("go\n"))
	}
	_ = gate.Close() // the shell has its line, or ends without one
	p.run = r
	go p.reap(r)
	return r, guardErr
}

// reap waits for the end of a life, so that its id is free only after the
// guardian has forgotten it.
func (p *Process) reap(r *run) {
	r.err = r.cmd.Wait()
	if r.err == nil {
		r.err = errors.New("exit status 0")
	}
	// A dead guardian was or will be reported by the next launch.
	_ = p.plane.guard.forget(r.cmd.Process.Pid)
	close(r.done)
}

func (p *Process) openLog() (*os.File, int64, error) {
	if err := os.MkdirAll(filepath.Dir(p.LogFile()), 0o700); err != nil {
		return nil, 0, err
	}
	log, err := os.OpenFile(p.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := log.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, log.Close())
	}
	return log, info.Size(), nil
}
