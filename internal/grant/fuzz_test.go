package grant_test

import (
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/choice"
	"github.com/mooring-k8s/mooring/internal/grant"
)

// grantsFrom returns annotations as owners write them and as they do not.
func grantsFrom(s *choice.Source) map[string]string {
	annotations := map[string]string{}
	for _, key := range []string{rw, ro} {
		s.Perhaps(func() {
			annotations[key] = s.Text("type=tenant", "", " ", "!guest", "type!=x", "type in (tenant, x)", "a>1", "type,!guest", "((", "a=b,a=c", "a\nb\x1b\u202e")
		})
	}
	s.Perhaps(func() { annotations[expires] = s.Text(after, before, "0001-01-01T00:00:00Z", "tomorrow", "", "\x00") })
	return annotations
}

// FuzzCompare holds that taking a grant away never widens anybody's access, that
// what Compare tells is what Evaluate says before and after, and that a namespace
// without labels gets nothing.
func FuzzCompare(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := choice.From(data)
		written := grantsFrom(s)
		at := now.Add(choice.Of(s, 0, time.Hour, -time.Hour))
		namespaces := map[string]map[string]string{"bare": nil}
		for _, name := range []string{"a", "b", "c"} {
			namespaces[name] = s.Map(3, []string{"type", "guest", "a", "kubernetes.io/metadata.name"}, []string{"tenant", "x", "2", ""})
		}
		terms := grant.Parse(names, written)
		for _, key := range []string{rw, ro} {
			less := map[string]string{}
			for k, v := range written {
				if k != key {
					less[k] = v
				}
			}
			told := map[string]grant.Change{}
			for _, change := range grant.Compare(terms, grant.Parse(names, less), namespaces, at) {
				if change.After > change.Before {
					t.Fatalf("without %s namespace %s has more: %v after %v", key, change.Namespace, change.After, change.Before)
				}
				told[change.Namespace] = change
			}
			for name, labels := range namespaces {
				first, then := grant.Evaluate(names, written, labels, at).Access, grant.Evaluate(names, less, labels, at).Access
				if change, is := told[name]; is != (first != then) || is && (change.Before != first || change.After != then) {
					t.Fatalf("namespace %s: told %v, and it is %v and then %v", name, change, first, then)
				}
			}
		}
		if got := terms.For(nil, at); got.Access != grant.None {
			t.Fatalf("%v lets a namespace without labels in", written)
		}
	})
}
