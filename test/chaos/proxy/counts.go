package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// counts are what came by.
type counts struct {
	seconds map[int64]int  // requests by the second in which they came
	asked   map[string]int // by verb and resource
	written map[string]int // writes that the API server got, by verb and resource
	faults  map[string]int // by fault
}

func newCounts() counts {
	return counts{seconds: map[int64]int{}, asked: map[string]int{}, written: map[string]int{}, faults: map[string]int{}}
}

func (p *Proxy) count(r Request, f Fault) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.seconds[time.Now().Unix()]++
	p.asked[r.String()]++
	if f.Kind != None {
		p.faults[f.String()]++
	}
}

// passed notes a request that the API server has answered.
func (p *Proxy) passed(r Request) {
	if !r.IsWrite() {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.written[r.String()]++
}

// Writes returns how many writes the API server got, by verb and resource.
func (p *Proxy) Writes() map[string]int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return maps.Clone(p.written)
}

// Requests returns how many requests came.
func (p *Proxy) Requests() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	sum := 0
	for _, n := range p.asked {
		sum += n
	}
	return sum
}

// Busiest returns how many requests came in the so many seconds, one after the
// other, in which most came.
func (p *Proxy) Busiest(seconds int64) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	most := 0
	for first := range p.seconds {
		sum := 0
		for second := first; second < first+seconds; second++ {
			sum += p.seconds[second]
		}
		most = max(most, sum)
	}
	return most
}

// Faults returns how many faults were made, and which.
func (p *Proxy) Faults() (int, string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return total(p.faults)
}

// Asked says what was asked for, most often first.
func (p *Proxy) Asked() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_, text := total(p.asked)
	return text
}

func total(of map[string]int) (int, string) {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		if of[a] != of[b] {
			return of[b] - of[a]
		}
		return strings.Compare(a, b)
	})
	sum, parts := 0, []string{}
	for _, name := range names {
		sum += of[name]
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	return sum, strings.Join(parts, ", ")
}
