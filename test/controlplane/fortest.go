package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// failureLines is how many complaints of each log a failed test shows: few, so
// that the end of a long output still says what the test itself found.
const failureLines = 5

// ForTest starts a control plane for one test, which fails if that is not
// possible, and stops it when the test ends. A failed test shows what the
// servers complained of last, and keeps their logs with go test's -artifacts. On an existing cluster that cannot be as the options ask, the test
// is skipped and says why.
func ForTest(tb testing.TB, options Options) *ControlPlane {
	tb.Helper()
	cp, err := Start(tb.Context(), options)
	failOrSkip(tb, err)
	tb.Cleanup(func() {
		showLogs(tb, cp)
		if err := cp.Stop(); err != nil {
			tb.Errorf("stop the control plane: %v", err)
		}
	})
	return cp
}

// Shared is a control plane for all tests of a package. It starts when the
// first test asks for it, and Run stops it:
//
//	var plane = &controlplane.Shared{Options: controlplane.Options{CrossNamespace: true}}
//
//	func TestMain(m *testing.M) { os.Exit(controlplane.Run(m, plane)) }
//
//	func TestMirror(t *testing.T) { cp := plane.ForTest(t) ... }
type Shared struct {
	Options Options

	once  sync.Once
	plane *ControlPlane
	err   error
}

// ForTest gives the shared plane, like the function of that name.
func (s *Shared) ForTest(tb testing.TB) *ControlPlane {
	tb.Helper()
	// The plane outlives the test that asked first, so not with its context.
	s.once.Do(func() { s.plane, s.err = Start(context.Background(), s.Options) })
	failOrSkip(tb, s.err)
	tb.Cleanup(func() { showLogs(tb, s.plane) })
	return s.plane
}

// Run runs a package's tests, then stops the planes that were started, and
// gives the exit code.
func Run(m *testing.M, shared ...*Shared) int {
	code := m.Run()
	for _, s := range shared {
		s.once.Do(func() { s.err = errors.New("the tests are over") })
		if s.plane == nil {
			continue
		}
		if err := s.plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = max(code, 1)
		}
	}
	return code
}

func failOrSkip(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrExistingCluster) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func showLogs(tb testing.TB, cp *ControlPlane) {
	if !tb.Failed() {
		return
	}
	for _, p := range cp.processes() {
		if p.foreign {
			continue
		}
		kept, err := p.copyLog(tb.ArtifactDir())
		if err != nil {
			kept = fmt.Sprintf("its log is not kept: %v", err)
		}
		tb.Logf("%s (%s) complained last:\n%s", p.name, kept, p.complaints(failureLines))
	}
}
