package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/test/chaos/proxy"
	"github.com/mooring-k8s/mooring/test/model"
)

// What the controller may ask of the API server at most, in numbers that are far
// above what was seen and far below what a loop without pause asks for.
const (
	// busiest10 is for the ten busiest seconds, of a model of 60 claims.
	busiest10 = 4000
	// idle10 is for ten seconds when all is at rest.
	idle10 = 60
)

// TestModel applies random operations while the requests of the controller meet
// the faults of a schedule; then the faults end, and within a bounded time
// everything must be as docs/invariants.md says.
func TestModel(t *testing.T) {
	for _, name := range chosen.schedules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underSchedule(t, name, shortOr(150, 1000))
		})
	}
}

func underSchedule(t *testing.T, name string, operations int) {
	t.Helper()
	plane := ownPlane(t)
	schedule, err := proxy.Named(name, chosen.seed)
	noError(t, err, "the schedule")
	controller := install(t, plane).replica(t, "mooring-0", "--leader-elect=false")
	via := controller.proxy
	m := model.New(t, model.Options{
		Plane: plane, Controller: controller, Seed: chosen.seed, Writes: via.Writes,
		Calm: func() { // what the burst has left to be done meets faults for a while
			until(t, "faults for a while", elapsed(time.Duration(shortOr(2, 4))*time.Second))
			via.Calm()
		},
		Disturb: func() {
			via.Disturb(schedule)
			if name == "stale" { // only who starts asks for a list of any version
				controller.crash()
			}
		},
	})
	m.Random(operations)
	m.Summary()
	rests := slices.Sorted(slices.Values(m.Rests()))
	faults, which := via.Faults()
	busiest := via.Busiest(10)
	t.Logf("schedule %s, seed %d: %d requests, %d faults (%s); the controller ended %d times; the busiest ten seconds had %d requests; to rest: median %v, worst %v",
		name, chosen.seed, via.Requests(), faults, which, controller.comebacks(), busiest, rests[len(rests)/2], rests[len(rests)-1])
	if faults == 0 {
		t.Error("no fault was made")
	}
	if busiest > busiest10 {
		t.Errorf("%d requests within ten seconds, more than %d: %s", busiest, busiest10, via.Asked())
	}
	before := via.Requests()
	<-time.After(10 * time.Second) // what is measured is a rate
	if asked := via.Requests() - before; asked > idle10 {
		t.Errorf("%d requests within ten seconds of rest, more than %d: %s", asked, idle10, via.Asked())
	}
}
