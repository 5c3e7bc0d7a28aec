// Package chaos_test runs Mooring while what it depends on fails: an API server
// behind a proxy that delays, drops, refuses, lies about and loses requests,
// processes that are killed at each of their writes, leases that are lost, and a
// data base that stops or goes back in time. What must hold is docs/invariants.md;
// what was seen is docs/reliability.md.
package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-k8s/mooring/test/chaos/proxy"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

var (
	seedFlag     = flag.Uint64("seed", 5, "what operations, faults and positions are chosen by; 0: the clock")
	scheduleFlag = flag.String("schedule", "", "the schedule of faults of TestModel, or all; empty: mixed, and with -length=long all")
	previousFlag = flag.String("previous", "", "the git ref that TestUpgrade upgrades from")
	lengthFlag   = flag.String("length", "short", "short: a part that is chosen by the seed; long: everything")
)

// chosen is what the flags say.
var chosen struct {
	seed      uint64
	long      bool
	schedules []string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := choose(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard()) // clients of tests have nothing to say
	code := controlplane.Run(m)
	if err := programs.remove(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func choose() error {
	chosen.seed = *seedFlag
	if chosen.seed == 0 {
		chosen.seed = uint64(time.Now().UnixNano())
	}
	switch *lengthFlag {
	case "short", "long":
		chosen.long = *lengthFlag == "long"
	default:
		return fmt.Errorf("-length=%s: expected short or long", *lengthFlag)
	}
	switch {
	case *scheduleFlag == "all":
		chosen.schedules = proxy.Names()
	case *scheduleFlag != "" && !slices.Contains(proxy.Names(), *scheduleFlag):
		return fmt.Errorf("-schedule=%s: expected all or one of %v", *scheduleFlag, proxy.Names())
	case *scheduleFlag != "":
		chosen.schedules = []string{*scheduleFlag}
	case chosen.long:
		chosen.schedules = proxy.Names()
	default:
		chosen.schedules = []string{"mixed"}
	}
	fmt.Printf("chaos: seed %d, length %s: repeat with make chaos SEED=%d LENGTH=%s SCHEDULE=%s\n",
		chosen.seed, *lengthFlag, chosen.seed, *lengthFlag, *scheduleFlag)
	return nil
}

// shortOr returns the one number for the short form and the other for the long.
func shortOr(short, long int) int {
	if chosen.long {
		return long
	}
	return short
}

// binaries are the programs under test, built once for this run and of its own:
// several runs may share a checkout.
type binaries struct {
	mutex sync.Mutex
	dir   string
	built map[string]error
}

var programs = binaries{built: map[string]error{}}

// program returns the path of a command, built as the tests are.
func (b *binaries) program(name string) (string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "mooring-chaos-")
		if err != nil {
			return "", err
		}
		b.dir = dir
	}
	path := filepath.Join(b.dir, name)
	if err, done := b.built[name]; done {
		return path, err
	}
	b.built[name] = build(path, name)
	return path, b.built[name]
}

func build(path, name string) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	args := append([]string{"build", "-buildvcs=false", "-o", path}, raceFlags...)
	command := exec.CommandContext(context.Background(), "go", append(args, "./cmd/"+name)...)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, output)
	}
	return nil
}

func (b *binaries) remove() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}
