package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/mooring-k8s/mooring/test/chaos/proxy"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/model"
)

// position is one write of a run, and whether before or after it.
type position struct {
	moment proxy.Moment
	number int
}

func (p position) String() string { return fmt.Sprintf("%s write %d", p.moment, p.number) }

// trap does something at one position, once.
type trap struct {
	at   position
	does func(who int) (tear bool) // who writes: the number of a replica

	mutex  sync.Mutex
	passed map[proxy.Moment]int
	writes []string // in the order in which they came
	sprung string   // what was written there
}

// hook returns the hook that counts writes, and springs the trap. Leases and what
// the election says of them are not counted: they come by the clock.
func (t *trap) hook(who int) proxy.Hook {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.passed == nil {
		t.passed = map[proxy.Moment]int{}
	}
	return func(r proxy.Request, moment proxy.Moment) bool {
		if r.Resource == "leases" {
			return false
		}
		t.mutex.Lock()
		t.passed[moment]++
		if moment == proxy.Before {
			t.writes = append(t.writes, r.String())
		}
		isHere := moment == t.at.moment && t.passed[moment] == t.at.number
		if isHere {
			t.sprung = r.String()
		}
		t.mutex.Unlock()
		return isHere && t.does(who)
	}
}

func (t *trap) what() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.sprung
}

// positions returns all positions of a run of so many writes, or so many of them
// as the seed chooses.
func positions(writes, most int) []position {
	var all []position
	for number := range writes {
		all = append(all, position{proxy.Before, number + 1}, position{proxy.After, number + 1})
	}
	random := rand.New(rand.NewPCG(chosen.seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(most, len(all))]
}

// TestCrashes kills the controller before and after each of its writes, one
// position in each run of the script, and starts it again: every run must end as
// one without a crash.
func TestCrashes(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	controller := install(t, plane).replica(t, "mooring-0", "--leader-elect=false")
	undisturbed := &trap{}
	t.Run("undisturbed", func(t *testing.T) { runScript(t, plane, controller, undisturbed) })
	t.Logf("%d writes: %v", len(undisturbed.writes), undisturbed.writes)
	sprung := 0
	all := positions(len(undisturbed.writes), shortOr(4, 1000))
	for _, at := range all {
		t.Run(at.String(), func(t *testing.T) {
			set := &trap{at: at, does: func(int) bool { controller.crash(); return true }}
			runScript(t, plane, controller, set)
			if what := set.what(); what != "" {
				sprung++
				t.Logf("killed %s: %s", at.moment, what)
			}
		})
	}
	t.Logf("seed %d: killed at %d of %d positions; the controller ended %d times", chosen.seed, sprung, len(all), controller.comebacks())
	if sprung < len(all)/2 {
		t.Errorf("killed at %d of %d positions: too few", sprung, len(all))
	}
}

// runScript runs the script with a trap set.
func runScript(t *testing.T, plane *controlplane.ControlPlane, controller *replica, set *trap) {
	t.Helper()
	m := model.New(t, model.ScriptSize(model.Options{Plane: plane, Controller: controller, Seed: chosen.seed}))
	controller.proxy.SetHook(set.hook(0))
	defer controller.proxy.SetHook(nil)
	m.Script()
}
