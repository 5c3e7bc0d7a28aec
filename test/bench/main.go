// Command bench measures, on one control plane, how close Mooring comes to what
// the API server can do, and writes docs/benchmarks.md, its plots and its
// results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-k8s/mooring/test/bench/report"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// options are the command line.
type options struct {
	plan      plan
	only      *regexp.Regexp
	resume    bool
	page      bool
	footprint bool
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	mode := flags.String("mode", "default", "small (does it run?), default (N up to 2,000, within 20 minutes) or full")
	only := flags.String("run", "", "only cases whose name matches, such as alone/one-origin/mooring/500, grants or restart")
	resume := flags.Bool("resume", false, "keep what the last run of this mode has measured, and go on")
	page := flags.Bool("page", false, "measure nothing; write page and plots again")
	footprint := flags.Bool("footprint", false, "only say what memory and CPU the controller uses, idle and with 2,000 mirrors")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	chosen, ok := plans()[*mode]
	if !ok {
		return options{}, fmt.Errorf("-mode %q: expected small, default or full", *mode)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return options{}, fmt.Errorf("-run %q: expected a regular expression: %w", *only, err)
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("%q: expected flags only", flags.Arg(0))
	}
	return options{plan: chosen, only: pattern, resume: *resume || *only != "", page: *page, footprint: *footprint}, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.footprint {
		return footprint(ctx)
	}
	out, err := newOutput(o.plan.mode)
	if err != nil {
		return err
	}
	results := &report.Run{Mode: o.plan.mode}
	if o.resume || o.page {
		if results, err = out.read(o.plan.mode); err != nil {
			return err
		}
	}
	if !o.page {
		if err := measure(ctx, o, out, results); err != nil {
			return err
		}
	}
	return out.write(results)
}

// measure does the whole plan, and keeps the results after each step.
func measure(ctx context.Context, o options, out output, results *report.Run) error {
	built, err := buildPrograms(ctx, out.root)
	if err != nil {
		return err
	}
	results.Machine = machine(ctx, out.root)
	results.Date = today()
	for _, part := range []func(context.Context, job) error{measureSpeed, measureSlowBinder, measureRestarts} {
		if err := part(ctx, job{o, out, results, built}); err != nil {
			return err
		}
	}
	return nil
}

// job is what the parts of a run share.
type job struct {
	options
	out      output
	results  *report.Run
	programs programs
}

// wants reports whether a case is to be measured in this round.
func (j job) wants(c report.Case, round int) bool {
	return j.chosen(c.String(), j.results.Has(c, round))
}

// chosen reports whether something is to be measured: what is named is, and
// what was measured before a run that goes on is not.
func (j job) chosen(name string, done bool) bool {
	return j.only.MatchString(name) && (j.only.String() != "" || !j.resume || !done)
}
