package retain_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// A run is killed between its create and its receipt. The receipt says intended;
// verify and the next preview tell what really is there.
func TestKilledBetweenCreateAndReceipt(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after fault
		made          bool
	}{
		{"before the server carried it out", hang, none, false},
		{"after the server carried it out", none, hang, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			p := w.proxy(at("create", tc.before, tc.after))
			file := w.file("receipt.json")
			cmd := w.start("create", w.write(w.volume("v")), "-o", file, "--without-approval", "--kubeconfig", p.documented())
			w.eventually("the create", func() (any, bool) {
				return p.count("create"), p.count("create") == 1 && (w.live("v") != nil) == tc.made
			})
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed

			if record := w.receipt(file); record.Outcome != receipt.Intended || record.Volumes[0].Outcome != receipt.Intended {
				t.Fatalf("the receipt says %s", record.Outcome)
			}
			w.want(w.run("", "verify", file), "")
			r := w.mooring("verify", file)
			w.want(r, retain.OutcomeUnknown)
			if strings.Contains(r.out, "is there, ") != tc.made {
				t.Fatalf("verify says %s", r.out)
			}
			next, r := w.preview(w.volume("v"))
			w.want(r, "")
			if (next.Outcome == receipt.Unchanged) != tc.made {
				t.Fatalf("the next preview says %s", next.Outcome)
			}
			// The same name for the receipt is refused: it holds the only trace.
			w.want(w.mooring("create", w.write(w.volume("v")), "-o", file, "--without-approval"), retain.ReceiptUnwritable)
		})
	}
}

// A run that is interrupted while it waits for the server's answer records that
// it does not know, and ends.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	p := w.proxy(at("create", hang, none))
	file := w.file("receipt.json")
	cmd := w.start("create", w.write(w.volume("v")), "-o", file, "--without-approval", "--kubeconfig", p.documented())
	w.eventually("the create", func() (any, bool) { return nil, p.count("create") == 1 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != retain.InfoOf(retain.OutcomeUnknown).ExitCode {
		t.Fatalf("ended with %d", code)
	}
	if record := w.receipt(file); record.Outcome != receipt.Unknown {
		t.Fatalf("the receipt says %s", record.Outcome)
	}
}

// A run that is interrupted while it reads says so, and wrote nothing.
func TestInterruptedWhileReading(t *testing.T) {
	w := newWorld(t)
	p := w.proxy(at("list", hang, none))
	file := w.file("receipt.json")
	cmd := w.start("create", w.write(w.volume("v")), "-o", file, "--without-approval", "--kubeconfig", p.documented())
	w.eventually("the list", func() (any, bool) { return nil, p.count("list") == 1 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its code is looked at below
	w.want(result{code: cmd.ProcessState.ExitCode(), err: string(retain.Interrupted) + ": "}, retain.Interrupted)
	if record := w.receipt(file); record.Outcome != receipt.Refused || record.Reason != string(retain.Interrupted) || p.count("create") != 0 {
		t.Fatalf("got %+v", record)
	}
}

// start starts this test program as mooring.
func (w *world) start(args ...string) *exec.Cmd {
	w.Helper()
	program, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"retain"}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=true")
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}
