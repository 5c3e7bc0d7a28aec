package csinode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	inside   = "MOORING_CSINODE_INSIDE"
	override = "MOORING_CSINODE" // "skip": pass where mounting is not permitted
)

// TestMain runs the tests in a mount namespace of their own, so that the host
// sees none of their mounts, and none is left when the process ends.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			fmt.Fprintln(os.Stderr, "csinode: make the mounts private:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	command := exec.Command(os.Args[0], os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), inside+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	err := command.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &ended):
		os.Exit(ended.ExitCode())
	case os.Getenv(override) == "skip":
		fmt.Println("csinode: NOT RUN, as " + override + "=skip asks: no mount namespace: " + err.Error())
		os.Exit(0)
	default:
		fmt.Fprintf(os.Stderr, "csinode: these tests mount file systems, in a mount namespace of their own, and may not make one here (%v).\n"+
			"Run them as root, or as a user who may make user namespaces; or set %s=skip to pass without having proved anything.\n", err, override)
		os.Exit(1)
	}
}
