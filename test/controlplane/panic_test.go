package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// dyingEnv makes this test binary start a plane and die; see diePanicking.
const dyingEnv = "CONTROLPLANE_TEST_DIES"

type remains struct {
	Dir  string
	PIDs []int
}

// diePanicking starts a plane, tells what it consists of, and panics in a
// goroutine, which no deferred function and no Cleanup of a test survives. It
// is called in a process of its own.
func diePanicking() {
	cp, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer func() { _ = cp.Stop() }()
	told := remains{Dir: cp.Dir()}
	for _, p := range cp.processes() {
		told.PIDs = append(told.PIDs, p.PID())
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(dyingEnv) == "panic" {
		go panic("the test dies")
	}
	select {} // killed by the panic, or by the test
}

func TestNothingIsLeftWhenTheTestProcessDies(t *testing.T) {
	if useExisting() {
		t.Skip("an existing cluster is not ended with the test")
	}
	for _, how := range []string{"panic", "kill -9"} {
		t.Run(how, func(t *testing.T) {
			left := runDying(t, how)
			if len(left.PIDs) != 3 {
				t.Fatalf("3 processes expected, got %v", left)
			}
			eventually(t, func(context.Context) error {
				for _, pid := range left.PIDs {
					if alive(pid) {
						return fmt.Errorf("process %d still lives", pid)
					}
				}
				_, err := os.Stat(left.Dir)
				if err == nil {
					return fmt.Errorf("the directory %s is still there", left.Dir)
				}
				if !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return nil
			})
		})
	}
}

// runDying runs this test binary again until it is dead, and gives what it
// told.
func runDying(t *testing.T, how string) remains {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), dyingEnv+"="+how)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var told remains
	if err := json.NewDecoder(stdout).Decode(&told); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if how != "panic" {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended well")
	}
	if how == "panic" && !strings.Contains(stderr.String(), "the test dies") {
		t.Fatalf("it died of something else: %s", stderr.String())
	}
	return told
}

// alive says whether a process runs; a dead one that nobody has waited for
// does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
