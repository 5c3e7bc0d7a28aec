//go:build linux

// Package sandbox runs a program in namespaces and a control group of its own,
// from which nothing gets out: when the program ends, however it ends, the
// kernel kills every process that it started and forgets every mount, and the
// control groups are removed.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	stageEnv = "MOORING_NODE_STAGE"
	dirEnv   = "MOORING_NODE_DIR"
	groupEnv = "MOORING_NODE_CGROUP"

	stageInit   = "init"   // process 1 of the namespaces
	stageInside = "inside" // the program
)

// Sandbox is where the program is.
type Sandbox struct {
	// Dir is a file system in memory, which nobody else sees.
	Dir string
	// Group is the path of the control groups in every hierarchy.
	Group string
}

// Run runs inside in the sandbox and gives the exit code. It starts the same
// program again, twice, so it is to be called before anything else.
func Run(inside func(Sandbox) int) int {
	var code int
	var err error
	switch os.Getenv(stageEnv) {
	case "":
		code, err = outside()
	case stageInit:
		code, err = initialize(os.Getenv(dirEnv))
	case stageInside:
		return inside(Sandbox{Dir: os.Getenv(dirEnv), Group: os.Getenv(groupEnv)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return max(code, 1)
	}
	return code
}

// outside makes what the host has to have, starts the namespaces, and removes it
// all again.
func outside() (code int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("kubelets, containers and their mounts need root: run this as root")
	}
	// The kernel kills the child when the thread that made it ends.
	runtime.LockOSThread()
	groups, err := hierarchies()
	if err != nil {
		return 1, err
	}
	if err := removeStale(groups); err != nil {
		return 1, err
	}
	group := filepath.Join(groupRoot, strconv.Itoa(os.Getpid()))
	defer func() { err = errors.Join(err, removeGroup(groups, group), removeRoot(groups)) }()
	dir := mountPoint(strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	return start(dir, group)
}

// mountPoint is where the sandbox of a process has its file system: an empty
// directory for everybody else.
func mountPoint(pid string) string { return filepath.Join(os.TempDir(), "mooring-node-"+pid) }

// start runs process 1 of the namespaces until it ends or a signal comes.
func start(dir, group string) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), stageEnv+"="+stageInit, dirEnv+"="+dir, groupEnv+"="+group)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  unix.SIGKILL,
		Setpgid:    true, // a Ctrl-C is for this process, which ends the others
	}
	if err := command.Start(); err != nil {
		return 1, fmt.Errorf("make namespaces for mounts, processes and networks, which this machine or container may not permit: %w", err)
	}
	done := make(chan struct{})
	var waited error
	go func() {
		waited = command.Wait()
		close(done)
	}()
	select {
	case <-done:
		var ended *exec.ExitError
		if errors.As(waited, &ended) {
			return ended.ExitCode(), nil
		}
		return 0, waited
	case s := <-signals:
		_ = command.Process.Kill()
		<-done
		return 1, fmt.Errorf("ended by a signal (%s)", s)
	}
}

// initialize is process 1: it prepares the namespaces, starts the program and
// reaps what is orphaned. When it ends, everything in the namespaces does.
func initialize(dir string) (int, error) {
	if err := prepare(dir); err != nil {
		return 1, fmt.Errorf("prepare the namespaces: %w", err)
	}
	if err := errors.Join(os.Setenv(stageEnv, stageInside), os.Setenv("TMPDIR", dir)); err != nil {
		return 1, err
	}
	program, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 1, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, err
		case pid == program && status.Signaled():
			return 1, fmt.Errorf("the program was ended by a signal (%s)", status.Signal())
		case pid == program:
			return status.ExitStatus(), nil
		}
	}
}
