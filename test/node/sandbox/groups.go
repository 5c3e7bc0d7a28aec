//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// groupRoot is the control group that all sandboxes of the machine are below.
const groupRoot = "/mooring-test"

// needed are the controllers without which no kubelet starts.
var needed = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"}

// hierarchies are the mount points of the machine's control groups, version 2
// included: runc makes groups in it even where it holds no controller.
func hierarchies() ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points, controllers []string
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		point, about := strings.Fields(before)[4], strings.Fields(after)
		switch about[0] {
		case "cgroup":
			controllers = append(controllers, strings.Split(about[2], ",")...)
			points = append(points, point)
		case "cgroup2":
			points = append(points, point)
		}
	}
	for _, name := range needed {
		if !slices.Contains(controllers, name) {
			return nil, fmt.Errorf("no control groups of version 1 with the controller %s are mounted: "+
				"these tests set up nodes on version 1 only, nobody has tried them on version 2", name)
		}
	}
	return points, nil
}

// MakeGroup makes a control group below the sandbox's in every hierarchy of
// version 1, with the processors and memory nodes of the machine.
func (s Sandbox) MakeGroup(name string) (string, error) {
	points, err := hierarchies()
	if err != nil {
		return "", err
	}
	group := filepath.Join(s.Group, name)
	for _, point := range points {
		if _, err := os.Stat(filepath.Join(point, "cgroup.controllers")); err == nil {
			continue // version 2
		}
		if err := os.MkdirAll(filepath.Join(point, group), 0o755); err != nil {
			return "", fmt.Errorf("make a control group: %w", err)
		}
		if err := inheritCPUs(point, group); err != nil {
			return "", err
		}
	}
	return group, nil
}

// inheritCPUs fills the cpusets on the way to a group, which are made empty.
func inheritCPUs(point, group string) error {
	at := point
	for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		parent := at
		at = filepath.Join(at, name)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(parent, file))
			if errors.Is(err, fs.ErrNotExist) {
				return nil // another controller
			}
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(at, file), value, 0o644); err != nil {
				return fmt.Errorf("fill %s: %w", filepath.Join(at, file), err)
			}
		}
	}
	return nil
}

// removeStale removes what is left of sandboxes whose first process is no more.
func removeStale(points []string) error {
	var failed []error
	for _, point := range points {
		entries, _ := os.ReadDir(filepath.Join(point, groupRoot))
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				_ = os.Remove(mountPoint(entry.Name())) // if it is there
				failed = append(failed, removeGroup([]string{point}, filepath.Join(groupRoot, entry.Name())))
			}
		}
	}
	return errors.Join(failed...)
}

// removeGroup removes a group with all below it; processes that were just
// killed may hold it for a moment.
func removeGroup(points []string, group string) error {
	var failed []error
	for _, point := range points {
		var err error
		for range 200 {
			if err = removeTree(filepath.Join(point, group)); !errors.Is(err, unix.EBUSY) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("remove a control group: %w", err))
		}
	}
	return errors.Join(failed...)
}

func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(path)
}

// removeRoot removes the root of all sandboxes, unless another one runs.
func removeRoot(points []string) error {
	for _, point := range points {
		err := os.Remove(filepath.Join(point, groupRoot))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return nil
}
