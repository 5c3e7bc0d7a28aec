package retain_test

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/receipt"
)

// Two runs with the same approval race for one volume, 50 times: exactly one
// creates it, the other is refused or finds it unchanged.
func TestTwoCreatesRace(t *testing.T) {
	w := newWorld(t)
	const rounds = 50
	ends := map[string]int{}
	for range rounds {
		name := w.file("")[len(w.dir)+1:] + "race"
		preview, r := w.preview(w.volume(name))
		w.want(r, "")
		manifest := w.write(w.volume(name))
		files := []string{w.file("a.json"), w.file("b.json")}
		results := make([]result, 2)
		start := make(chan struct{})
		var group sync.WaitGroup
		for i, file := range files {
			group.Go(func() {
				<-start
				results[i] = command(w, "create", manifest, "-o", file, "--approved-plan", preview.PlanDigest, "--kubeconfig", w.kubeconfig)
			})
		}
		close(start)
		group.Wait()

		var outcomes []receipt.Outcome
		for i, file := range files {
			record := w.receipt(file)
			outcomes = append(outcomes, record.Outcome)
			if record.Outcome == receipt.Refused && record.Reason != "already-exists" && record.Reason != "backend-shared" {
				t.Errorf("refused for %s: %+v", record.Reason, results[i])
			}
			if record.Outcome == receipt.Created && record.Volumes[0].Live.UID != string(w.live(name).UID) {
				t.Errorf("created another object than is there: %+v", record)
			}
			ends[string(record.Outcome)+" "+record.Reason]++
		}
		created := len(outcomes) - len(slices.DeleteFunc(slices.Clone(outcomes), func(o receipt.Outcome) bool { return o == receipt.Created }))
		others := slices.DeleteFunc(outcomes, func(o receipt.Outcome) bool {
			return slices.Contains([]receipt.Outcome{receipt.Created, receipt.Refused, receipt.Unchanged}, o)
		})
		if created != 1 || len(others) > 0 {
			t.Fatalf("%d created, unexpected %v:\n%+v\n%+v", created, others, results[0], results[1])
		}
	}
	t.Logf("%d races ended: %v", rounds, ends)
}

// command runs one command line; unlike world.run it may be called from any
// goroutine.
func command(w *world, args ...string) result {
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), append([]string{"retain"}, args...), cli.Env{Out: &out, Err: &errs, Version: "test"})
	return result{code, out.String(), errs.String()}
}
