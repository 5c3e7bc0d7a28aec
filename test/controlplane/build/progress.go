package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress reads the output of go build -v, which names each package as it is
// compiled, and tells every few seconds how far the build is.
type progress struct {
	out   io.Writer
	total int
	start time.Time

	mu       sync.Mutex
	rest     string // of an unfinished line
	compiled int
	latest   string
	errors   []string // lines that are no package names
}

func newProgress(out io.Writer, total int) *progress {
	return &progress{out: out, total: total, start: time.Now()}
}

// Write takes go build's output.
func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.rest+string(data), "\n")
	p.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		p.line(line)
	}
	return len(data), nil
}

func (p *progress) line(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.latest = strings.TrimPrefix(line, "go: ")
	case line == "" || strings.HasPrefix(line, "#") || strings.ContainsAny(line, " :\t"):
		p.errors = append(p.errors, line)
	default:
		p.compiled++
		p.latest = line
	}
}

// tick prints a line every period until stop is called.
func (p *progress) tick(period time.Duration) (stop func()) {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.print()
			}
		}
	})
	return func() { close(done); ended.Wait() }
}

func (p *progress) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.start).Round(time.Second)
	if p.compiled == 0 && p.latest == "" {
		fmt.Fprintf(p.out, "  %6s  nothing left to compile so far; linking\n", elapsed)
		return
	}
	fmt.Fprintf(p.out, "  %6s  compiled %d of at most %d packages, last %s\n", elapsed, p.compiled, p.total, p.latest)
}

// tail is the end of what the compiler said besides package names.
func (p *progress) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest != "" {
		p.line(p.rest)
		p.rest = ""
	}
	return lastLines(strings.Join(p.errors, "\n"), 20)
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
