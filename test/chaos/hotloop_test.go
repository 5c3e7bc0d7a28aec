package chaos_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/test/chaos/proxy"
	"github.com/mooring-k8s/mooring/test/model"
)

// TestNoHotLoop lets every read, or every write, fail in one way, for long, while
// 20 claims wait to be served. The controller must try again, and ever less often:
// after a while it asks no more than a few times a second. Once the fault ends all
// is served.
func TestNoHotLoop(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	controller := install(t, plane).replica(t, "mooring-0", "--leader-elect=false")
	via := controller.proxy
	answer := func(code int) proxy.Fault { return proxy.Fault{Kind: proxy.Answer, Code: code} }
	rows := []struct {
		name          string
		reads, writes proxy.Fault
	}{
		{"writes conflict", proxy.Fault{}, answer(http.StatusConflict)},
		{"writes are lost", proxy.Fault{}, proxy.Fault{Kind: proxy.Reset}},
		{"everything is refused", answer(http.StatusServiceUnavailable), answer(http.StatusServiceUnavailable)},
		{"writes fail", proxy.Fault{}, answer(http.StatusInternalServerError)},
		{"writes are too many", proxy.Fault{}, answer(http.StatusTooManyRequests)},
		{"reads fail", answer(http.StatusInternalServerError), proxy.Fault{}},
		{"connections are torn", proxy.Fault{Kind: proxy.Reset}, proxy.Fault{Kind: proxy.Reset}},
		{"watches and lists are too old", answer(http.StatusGone), proxy.Fault{}},
		{"the answers of writes are lost", proxy.Fault{}, proxy.Fault{Kind: proxy.Lose}},
	}
	for _, row := range rows[:shortOr(1, len(rows))] {
		t.Run(row.name, func(t *testing.T) {
			m := model.New(t, model.Options{
				Plane: plane, Controller: controller, Seed: chosen.seed,
				Origins: 4, Owners: 2, Claims: 20, Tenants: 4, Calm: via.Calm,
			})
			via.Disturb(proxy.Always(row.reads, row.writes))
			m.Claims()
			before := via.Requests()
			<-time.After(20 * time.Second) // first it tries again and again, what it is meant to do
			middle := via.Requests()
			<-time.After(10 * time.Second)
			late := via.Requests() - middle
			t.Logf("%s: %d requests within the first twenty seconds, %d within the next ten", row.name, middle-before, late)
			if late > lateRequests {
				t.Errorf("%d requests within ten seconds, more than %d, twenty seconds after the fault began: %s", late, lateRequests, via.Asked())
			}
			m.Rest()
		})
	}
}

// lateRequests is how many requests there may be in ten seconds when everything
// has failed for twenty. Claims that were tried again each 50 ms made twice as many.
const lateRequests = 500

// TestServedAgain sees that what waits is served soon after a fault has ended,
// however long it lasted: the longest pause between two tries is bounded.
func TestServedAgain(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	controller := install(t, plane).replica(t, "mooring-0", "--leader-elect=false")
	m := model.New(t, model.Options{
		Plane: plane, Controller: controller, Seed: chosen.seed, Quiescence: 60 * time.Second,
		Origins: 4, Owners: 2, Claims: 20, Tenants: 4, Calm: controller.proxy.Calm,
	})
	controller.proxy.Disturb(proxy.Always(proxy.Fault{}, proxy.Fault{Kind: proxy.Answer, Code: http.StatusInternalServerError}))
	m.Claims()
	outage := time.Duration(shortOr(15, 120)) * time.Second
	until(t, fmt.Sprintf("an outage of %v", outage), elapsed(outage))
	m.Rest()
	t.Logf("after an outage of %v all was at rest within %v", outage, m.Rests()[0])
}

// elapsed is a condition that time fulfils.
func elapsed(d time.Duration) func(context.Context) string {
	end := time.Now().Add(d)
	return func(context.Context) string { return unless(time.Now().After(end), "not yet") }
}
