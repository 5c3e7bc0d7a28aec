package recipe_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

// mutant is a table with one thing changed.
type mutant struct {
	what  string
	table recipe.Table
}

// mutants takes away or turns around every element of every row, one at a
// time: handle, read-only rule, options, attributes, refusals.
func mutants() []mutant {
	var all []mutant
	for i, original := range recipe.Drivers() {
		add := func(what string, change func(*recipe.Row)) {
			table := recipe.Drivers()
			change(&table[i])
			all = append(all, mutant{fmt.Sprintf("%s %v: %s", original.Name, original.When, what), table})
		}
		mutateHandle(original, add)
		mutateReadOnly(original, add)
		mutateLists(original, add)
		if original.Name != recipe.InTreeNFS && original.Name != recipe.UnknownDriver {
			add("the row is gone", func(r *recipe.Row) { r.Name = "nobody" })
		}
		if original.VendorPrefix {
			add("no vendor prefix", func(r *recipe.Row) { r.VendorPrefix = false })
		}
		if len(original.When) > 0 {
			add("for every volume of the driver", func(r *recipe.Row) { r.When = nil })
		}
		if original.Refused != "" {
			add("not refused", func(r *recipe.Row) { r.Refused, r.Handle = "", recipe.OpaqueHandle })
		}
		if original.Derive != nil {
			add("nothing derived", func(r *recipe.Row) { r.Derive = nil })
		}
		if original.OneElement {
			add("several elements", func(r *recipe.Row) { r.OneElement = false })
		}
		if original.UnshareIn != "" {
			add("unshared by mount option", func(r *recipe.Row) { r.UnshareIn = "" })
		}
	}
	return all
}

type adder func(what string, change func(*recipe.Row))

func mutateHandle(row recipe.Row, add adder) {
	if row.Handle.Kind == recipe.UniqueHandle {
		add("handle shared", func(r *recipe.Row) { r.Handle = recipe.OriginHandle })
		add("handle the origin's with something added", func(r *recipe.Row) {
			r.Handle.Make = func(origin string, _ types.UID) (string, string) { return origin + "-mirror", "" }
		})
		add("handle not the claim's", func(r *recipe.Row) {
			r.Handle.Make = func(string, types.UID) (string, string) { return "mirror", "" }
		})
	}
	if row.Handle.Kind == recipe.SharedHandle {
		add("handle unique", func(r *recipe.Row) { r.Handle = recipe.OpaqueHandle })
	}
}

func mutateReadOnly(row recipe.Row, add adder) {
	if row.Refused != "" {
		return
	}
	if row.ReadOnly == nil {
		add("read-only allowed", func(r *recipe.Row) { r.ReadOnly = &recipe.ReadOnlyRule{Modes: modes{rox}, Options: options{"ro"}} })
		return
	}
	rule := *row.ReadOnly
	change := func(what string, mutate func(*recipe.ReadOnlyRule)) {
		add(what, func(r *recipe.Row) {
			mutated := rule
			mutate(&mutated)
			r.ReadOnly = &mutated
		})
	}
	add("read-only refused", func(r *recipe.Row) { r.ReadOnly = nil })
	change("read-only modes turned around", func(m *recipe.ReadOnlyRule) {
		if slices.Equal(rule.Modes, modes{rox}) {
			m.Modes = modes{rwx}
		} else {
			m.Modes = modes{rox}
		}
	})
	if rule.Caveat != "" {
		change("the caveat is not told", func(m *recipe.ReadOnlyRule) { m.Caveat = "" })
	}
	for i, option := range rule.Options {
		change("read-only without "+option, func(m *recipe.ReadOnlyRule) { m.Options = without(rule.Options, i) })
	}
	for i, option := range rule.Contrary {
		change("read-only with "+option, func(m *recipe.ReadOnlyRule) { m.Contrary = without(rule.Contrary, i) })
	}
}

func mutateLists(row recipe.Row, add adder) {
	for i, key := range row.Need {
		add("not needed: "+key, func(r *recipe.Row) { r.Need = without(row.Need, i) })
	}
	for i, key := range row.Drop {
		add("kept: "+key, func(r *recipe.Row) { r.Drop = without(row.Drop, i) })
	}
	for key := range row.Set {
		add("not set: "+key, func(r *recipe.Row) {
			r.Set = attrs(row.Set).without(key)
		})
		add("set otherwise: "+key, func(r *recipe.Row) {
			r.Set = attrs(row.Set).with(key, "0777")
		})
	}
	for i, option := range row.Unshare {
		add("not unshared: "+option, func(r *recipe.Row) { r.Unshare = without(row.Unshare, i) })
	}
	for i, option := range row.Contrary {
		add("shared by "+option, func(r *recipe.Row) { r.Contrary = without(row.Contrary, i) })
	}
	for i, key := range row.OptionAttributes {
		add("no options in "+key, func(r *recipe.Row) { r.OptionAttributes = without(row.OptionAttributes, i) })
	}
	for i, refusal := range row.Refusals {
		add(fmt.Sprintf("not refused: %+v", refusal), func(r *recipe.Row) { r.Refusals = without(row.Refusals, i) })
	}
}

func without[S ~[]E, E any](list S, i int) S { return slices.Delete(slices.Clone(list), i, i+1) }

// Every mutant must be noticed by a case of the table test.
func TestEveryMutantIsNoticed(t *testing.T) {
	all, tests := mutants(), cases()
	for _, m := range all {
		noticed := slices.ContainsFunc(tests, func(tc kase) bool { return len(check(m.table, tc)) > 0 })
		if !noticed {
			t.Errorf("nothing notices: %s", m.what)
		}
	}
	t.Logf("%d mutants of %d rows", len(all), len(recipe.Drivers()))
	if len(all) < 150 {
		t.Errorf("only %d mutants: the check has lost its sense", len(all))
	}
}
