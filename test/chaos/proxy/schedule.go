package proxy

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is what a schedule and a hook see of a request.
type Request struct {
	Verb     string // as RBAC names it: get, list, watch, create, update, patch, delete
	Resource string // with its subresource, as persistentvolumeclaims/status; else the path
	DryRun   bool
	// AnyVersion says that a list may be as old as the server likes.
	AnyVersion bool
	// Streamed says that a watch asks for what is there, too, as a list would.
	Streamed bool
}

// IsWrite reports whether the request changes something, or would.
func (r Request) IsWrite() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

func (r Request) String() string {
	text := r.Verb + " " + r.Resource
	if r.DryRun {
		text += " (dry run)"
	}
	return text
}

// Kind is what is done to a request.
type Kind string

// The kinds of faults.
const (
	None Kind = ""
	// Delay passes it on after Pause.
	Delay Kind = "delay"
	// Drop lets the client wait for Pause, and then tears the connection: the
	// request is not passed on.
	Drop Kind = "drop"
	// Reset tears the connection at once: the request is not passed on.
	Reset Kind = "reset"
	// Answer answers with Code: the request is not passed on.
	Answer Kind = "answer"
	// Lose passes it on, and tears the connection instead of giving the answer.
	Lose Kind = "lose"
	// Mislead passes it on, and answers with Code.
	Mislead Kind = "mislead"
	// Cut ends a watch after Pause.
	Cut Kind = "cut"
	// Starve holds each piece of a watch back for Pause.
	Starve Kind = "starve"
	// Stale answers a list as it was when it was first asked for.
	Stale Kind = "stale"
)

// Fault is what a request meets.
type Fault struct {
	Kind  Kind
	Code  int
	Pause time.Duration
}

func (f Fault) String() string {
	switch {
	case f.Code != 0:
		return fmt.Sprintf("%s %d", f.Kind, f.Code)
	case f.Pause != 0:
		return fmt.Sprintf("%s %v", f.Kind, f.Pause)
	}
	return string(f.Kind)
}

// chance is a fault and how many of a thousand requests meet it.
type chance struct {
	perMille int
	fault    Fault
}

// Schedule says which fault each request meets. The n-th request of a verb for a
// resource always meets the same one, however the requests of others come in
// between; so a seed gives the same faults, as far as the same is asked for.
type Schedule struct {
	Name string

	seed                   uint64
	reads, writes, watches []chance

	mutex sync.Mutex
	asked map[string]uint64
}

// Next returns the fault of the next request of this kind.
func (s *Schedule) Next(r Request) Fault {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := r.String()
	s.asked[key]++
	chances := s.reads
	switch {
	case r.Verb == "watch":
		chances = s.watches
	case r.IsWrite():
		chances = s.writes
	}
	fault := pick(chances, draw(s.seed, key, s.asked[key]))
	if !fits(fault, r) {
		return Fault{}
	}
	return fault
}

// draw returns the number below 1000 that belongs to the n-th request of a kind.
func draw(seed uint64, key string, n uint64) int {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(key)) // a hash takes everything
	return rand.New(rand.NewPCG(seed^sum.Sum64(), n)).IntN(1000)
}

func pick(chances []chance, number int) Fault {
	for _, c := range chances {
		if number -= c.perMille; number < 0 {
			return c.fault
		}
	}
	return Fault{}
}

// fits reports whether a server could do this to such a request at all: what is
// read without a version is never stale, and only a version can be too old.
func fits(f Fault, r Request) bool {
	switch {
	case f.Kind == Stale:
		return r.Verb == "list" && r.AnyVersion
	case f.Code == http.StatusGone:
		return r.Verb == "list" || r.Verb == "watch"
	case f.Code == http.StatusBadRequest:
		return r.Streamed
	}
	return true
}

// The faults that schedules are made of.
var (
	short    = Fault{Kind: Delay, Pause: 100 * time.Millisecond}
	long     = Fault{Kind: Delay, Pause: 900 * time.Millisecond}
	drop     = Fault{Kind: Drop, Pause: 2 * time.Second}
	reset    = Fault{Kind: Reset}
	lose     = Fault{Kind: Lose}
	conflict = code(http.StatusConflict)
	gone     = code(http.StatusGone)
	busy     = code(http.StatusTooManyRequests)
	broken   = code(http.StatusInternalServerError)
	away     = code(http.StatusServiceUnavailable)
	late     = code(http.StatusGatewayTimeout)
	doneLate = Fault{Kind: Mislead, Code: http.StatusGatewayTimeout}
	doneBad  = Fault{Kind: Mislead, Code: http.StatusInternalServerError}
	cut      = Fault{Kind: Cut, Pause: 700 * time.Millisecond}
	starve   = Fault{Kind: Starve, Pause: 1500 * time.Millisecond}
	stale    = Fault{Kind: Stale}
	listOnly = code(http.StatusBadRequest) // a server that streams no lists
)

func code(code int) Fault { return Fault{Kind: Answer, Code: code} }

// schedules are all that there are, in the order in which they are run.
var schedules = []Schedule{
	{Name: "mixed",
		reads:   []chance{{60, short}, {20, long}, {10, drop}, {20, reset}, {20, gone}, {20, busy}, {20, broken}, {20, away}, {20, late}, {50, stale}},
		writes:  []chance{{60, short}, {20, long}, {10, drop}, {20, reset}, {60, conflict}, {20, busy}, {20, broken}, {20, away}, {20, late}, {40, lose}, {30, doneLate}, {30, doneBad}},
		watches: []chance{{150, listOnly}, {150, cut}, {150, starve}, {50, gone}, {50, busy}, {50, away}, {50, reset}}},
	{Name: "slow", reads: []chance{{300, short}, {200, long}}, writes: []chance{{300, short}, {300, long}}, watches: []chance{{500, long}}},
	{Name: "refusing-reads", reads: []chance{{80, gone}, {80, busy}, {80, broken}, {80, away}, {80, late}}, watches: []chance{{150, gone}, {150, busy}, {150, away}}},
	{Name: "refusing-writes", writes: []chance{{150, conflict}, {80, busy}, {80, broken}, {80, away}, {80, late}}},
	{Name: "torn", reads: []chance{{100, reset}, {50, drop}}, writes: []chance{{150, reset}, {80, drop}}, watches: []chance{{300, cut}, {200, reset}}},
	{Name: "lost-answers", writes: []chance{{250, lose}, {150, doneLate}, {150, doneBad}}},
	{Name: "blind", watches: []chance{{150, listOnly}, {200, cut}, {500, starve}}},
	{Name: "stale", reads: []chance{{1000, stale}}, watches: []chance{{600, listOnly}, {400, starve}}},
}

// Names returns the names of all schedules.
func Names() []string {
	var all []string
	for i := range schedules {
		all = append(all, schedules[i].Name)
	}
	return all
}

// Named returns a schedule as it begins.
func Named(name string, seed uint64) (*Schedule, error) {
	for i := range schedules {
		if s := &schedules[i]; s.Name == name {
			return &Schedule{Name: name, seed: seed, reads: s.reads, writes: s.writes, watches: s.watches, asked: map[string]uint64{}}, nil
		}
	}
	return nil, fmt.Errorf("schedule %q: expected one of %v", name, Names())
}

// Always returns a schedule by which every read, or every write, meets one
// fault. A watch is a read.
func Always(reads, writes Fault) *Schedule {
	return &Schedule{Name: "always", asked: map[string]uint64{},
		reads: []chance{{1000, reads}}, writes: []chance{{1000, writes}}, watches: []chance{{1000, reads}}}
}
