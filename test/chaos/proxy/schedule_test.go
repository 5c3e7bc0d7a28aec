package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var (
	create  = Request{Verb: "create", Resource: "persistentvolumes"}
	get     = Request{Verb: "get", Resource: "persistentvolumes"}
	list    = Request{Verb: "list", Resource: "persistentvolumes"}
	oldList = Request{Verb: "list", Resource: "persistentvolumes", AnyVersion: true}
	watch   = Request{Verb: "watch", Resource: "persistentvolumes"}
	stream  = Request{Verb: "watch", Resource: "persistentvolumes", Streamed: true}
)

// TestWhoMeetsWhat asks schedules that do one thing to everything.
func TestWhoMeetsWhat(t *testing.T) {
	for _, row := range []struct {
		name          string
		reads, writes Fault
		request       Request
		want          string
	}{
		{"a write meets what writes meet", broken, conflict, create, "answer 409"},
		{"a read meets what reads meet", broken, conflict, get, "answer 500"},
		{"a list is a read", broken, conflict, list, "answer 500"},
		{"a watch is a read here", broken, conflict, watch, "answer 500"},
		{"a dry run is a write", broken, conflict, Request{Verb: "create", Resource: "persistentvolumes", DryRun: true}, "answer 409"},
		{"a get has no version that could be too old", gone, Fault{}, get, ""},
		{"a list has", gone, Fault{}, list, "answer 410"},
		{"a watch has", gone, Fault{}, watch, "answer 410"},
		{"a list of the newest is never stale", stale, Fault{}, list, ""},
		{"a list of any version may be", stale, Fault{}, oldList, "stale"},
		{"a get is never stale", stale, Fault{}, get, ""},
		{"a streamed list may be unknown to a server", listOnly, Fault{}, stream, "answer 400"},
		{"a watch is not", listOnly, Fault{}, watch, ""},
		{"a delay says how long", long, Fault{}, get, "delay 900ms"},
		{"nothing is nothing", Fault{}, Fault{}, create, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Always(row.reads, row.writes).Next(row.request).String(); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// TestSeedRepeats draws from each schedule twice, with others' requests in
// between the second time.
func TestSeedRepeats(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			met := func(seed uint64, others bool) string {
				s, err := Named(name, seed)
				if err != nil {
					t.Fatal(err)
				}
				var all []string
				for range 300 {
					for _, r := range []Request{create, get, oldList, watch, stream} {
						if others {
							s.Next(Request{Verb: r.Verb, Resource: "events"})
						}
						all = append(all, s.Next(r).String())
					}
				}
				return strings.Join(all, "\n")
			}
			if met(1, false) != met(1, true) {
				t.Error("one seed gives two sequences of faults")
			}
			if met(1, false) == met(2, false) {
				t.Error("two seeds give one sequence of faults")
			}
		})
	}
}

// TestShares draws often, and sees each fault of a schedule about as often as the
// schedule says, and never all requests fail for ever.
func TestShares(t *testing.T) {
	const draws = 20000
	s, err := Named("refusing-writes", 7)
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]int{}
	for range draws {
		met[s.Next(create).String()]++
	}
	for fault, perMille := range map[string]int{"answer 409": 150, "answer 429": 80, "answer 500": 80, "answer 503": 80, "answer 504": 80, "": 530} {
		if got, want := met[fault], draws*perMille/1000; got < want*9/10 || got > want*11/10 {
			t.Errorf("%q %d times of %d, want about %d", fault, got, draws, want)
		}
	}
	for i := range schedules {
		for kind, chances := range map[string][]chance{"reads": schedules[i].reads, "writes": schedules[i].writes, "watches": schedules[i].watches} {
			sum := 0
			for _, c := range chances {
				sum += c.perMille
			}
			if sum > 1000 {
				t.Errorf("%s: %s meet %d faults of 1000", schedules[i].Name, kind, sum)
			}
		}
	}
}

func TestUnknownName(t *testing.T) {
	_, err := Named("nonsense", 1)
	want := fmt.Sprintf("schedule %q: expected one of %v", "nonsense", Names())
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !slices.Contains(Names(), "mixed") {
		t.Errorf("no schedule mixes all faults: %v", Names())
	}
}
