package grant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

var (
	names  mooringapi.Names
	now    = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	before = now.Add(-time.Second).Format(time.RFC3339)
	after  = now.Add(time.Second).Format(time.RFC3339)
)

const (
	rw      = "pmp.crownlabs.polito.it/required-target-ns-labels"
	ro      = "pmp.crownlabs.polito.it/read-only-target-ns-labels"
	expires = "pmp.crownlabs.polito.it/grant-expires"
)

func TestEvaluate(t *testing.T) {
	tenant := map[string]string{"type": "tenant", "name": "s123456", "empty": "", "level": "7"}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		labels      map[string]string
		want        grant.Access
		problem     string // part of what the owner is told; "" for nothing
	}{
		// Who is let in.
		{"equal", map[string]string{rw: "type=tenant"}, tenant, grant.ReadWrite, ""},
		{"double equal", map[string]string{rw: "type==tenant"}, tenant, grant.ReadWrite, ""},
		{"both must match", map[string]string{rw: "type=tenant,name=s123456"}, tenant, grant.ReadWrite, ""},
		{"one of", map[string]string{rw: "name in (s1, s123456)"}, tenant, grant.ReadWrite, ""},
		{"exists", map[string]string{rw: "type"}, tenant, grant.ReadWrite, ""},
		{"an empty value that is there", map[string]string{rw: "empty="}, tenant, grant.ReadWrite, ""},
		{"negative beside positive", map[string]string{rw: "type=tenant,!system"}, tenant, grant.ReadWrite, ""},
		{"number beside positive", map[string]string{rw: "type=tenant,level>5"}, tenant, grant.ReadWrite, ""},
		{"spaces around", map[string]string{rw: "  type = tenant  "}, tenant, grant.ReadWrite, ""},
		{"read-only", map[string]string{ro: "type=tenant"}, tenant, grant.ReadOnly, ""},
		{"the greater of both", map[string]string{ro: "type=tenant", rw: "name=s123456"}, tenant, grant.ReadWrite, ""},
		{"only one of both matches", map[string]string{ro: "type=tenant", rw: "name=s1"}, tenant, grant.ReadOnly, ""},
		{"before it expires", map[string]string{rw: "type=tenant", expires: after}, tenant, grant.ReadWrite, ""},
		{"a broken grant does not break the other", map[string]string{rw: "((", ro: "type=tenant"}, tenant, grant.ReadOnly, rw},

		// Who is not.
		{"no annotation", nil, tenant, grant.None, ""},
		{"another provisioner's annotation", map[string]string{"x.example.com/required-target-ns-labels": "type=tenant"}, tenant, grant.None, ""},
		{"another value", map[string]string{rw: "type=admin"}, tenant, grant.None, ""},
		{"one of two does not match", map[string]string{rw: "type=tenant,name=s1"}, tenant, grant.None, ""},
		{"no such label", map[string]string{rw: "owner"}, tenant, grant.None, ""},
		{"an empty value that is not there", map[string]string{rw: "missing="}, tenant, grant.None, ""},
		{"namespace without labels", map[string]string{rw: "type=tenant"}, nil, grant.None, ""},
		{"blank", map[string]string{rw: ""}, tenant, grant.None, "is blank"},
		{"spaces only", map[string]string{rw: " \t\n"}, tenant, grant.None, "is blank"},
		{"commas only", map[string]string{rw: ","}, tenant, grant.None, rw},
		{"unparsable", map[string]string{rw: "type=tenant,("}, tenant, grant.None, "not a label selector"},
		{"not a label key", map[string]string{rw: "-type=tenant"}, tenant, grant.None, "not a label selector"},
		{"purely negative: not equal", map[string]string{rw: "type!=admin"}, tenant, grant.None, "must not have"},
		{"purely negative: not in", map[string]string{rw: "type notin (admin)"}, tenant, grant.None, "must not have"},
		{"purely negative: absent", map[string]string{rw: "!system"}, tenant, grant.None, "must not have"},
		{"purely numeric", map[string]string{rw: "level>5"}, tenant, grant.None, "compares numbers"},
		{"expired", map[string]string{rw: "type=tenant", expires: before}, tenant, grant.None, ""},
		{"expires now", map[string]string{rw: "type=tenant", expires: now.Format(time.RFC3339)}, tenant, grant.None, ""},
		{"expired in another time zone", map[string]string{rw: "type=tenant", expires: "2027-01-01T13:59:59+02:00"}, tenant, grant.None, ""},
		{"an end that is no time", map[string]string{rw: "type=tenant", expires: "tomorrow"}, tenant, grant.None, "RFC 3339"},
		{"a blank end", map[string]string{rw: "type=tenant", expires: ""}, tenant, grant.None, "RFC 3339"},
		{"year one as an end", map[string]string{rw: "type=tenant", expires: "0001-01-01T00:00:00Z"}, tenant, grant.None, "RFC 3339"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := grant.Evaluate(names, tc.annotations, tc.labels, now)
			if got.Access != tc.want {
				t.Errorf("access %v, want %v", got.Access, tc.want)
			}
			if (got.Access == grant.None) != (got.Annotation == "" && got.Selector == "") {
				t.Errorf("access %v must go with the annotation that gives it, got %q %q", got.Access, got.Annotation, got.Selector)
			}
			if got.Annotation != "" && tc.annotations[got.Annotation] != got.Selector {
				t.Errorf("selector %q is not the text of %s", got.Selector, got.Annotation)
			}
			checkProblems(t, grant.Parse(names, tc.annotations).Problems(), tc.problem)
		})
	}
}

func checkProblems(t *testing.T, problems []error, want string) {
	t.Helper()
	if want == "" {
		if len(problems) != 0 {
			t.Errorf("the owner is told %v, want nothing", problems)
		}
		return
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), want) {
		t.Errorf("the owner is told %v, want one sentence with %q", problems, want)
	}
}

func TestZeroTermsGrantNobody(t *testing.T) {
	if got := (grant.Terms{}).For(map[string]string{"a": "b"}, now); got.Access != grant.None {
		t.Fatalf("the zero value grants %v", got.Access)
	}
}

func TestExpires(t *testing.T) {
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		want        time.Time
	}{
		{"nothing", nil, time.Time{}},
		{"no end", map[string]string{rw: "type"}, time.Time{}},
		{"an end of nothing", map[string]string{expires: after}, time.Time{}},
		{"an end of a broken grant", map[string]string{rw: "((", expires: after}, time.Time{}},
		{"an end that is no time", map[string]string{rw: "type", expires: "soon"}, time.Time{}},
		{"to come", map[string]string{rw: "type", expires: after}, now.Add(time.Second)},
		{"passed", map[string]string{ro: "type", expires: before}, now.Add(-time.Second)},
		{"in another time zone", map[string]string{rw: "type", expires: "2027-01-01T14:00:00+02:00"}, now},
		{"with fractions of a second", map[string]string{rw: "type", expires: "2027-01-01T12:00:00.25Z"}, now.Add(time.Second / 4)},
	} {
		terms := grant.Parse(names, tc.annotations)
		if got := terms.Expires(); !got.Equal(tc.want) || got.IsZero() != tc.want.IsZero() {
			t.Errorf("%s: ends %v, want %v", tc.name, got, tc.want)
		}
		if got := terms.For(map[string]string{"type": "tenant"}, now).Expires; !got.IsZero() && !got.Equal(tc.want) {
			t.Errorf("%s: a namespace is told %v", tc.name, got)
		}
	}
	if !(grant.Terms{}).Expires().IsZero() {
		t.Error("the zero value has an end")
	}
}

func TestProblemsAreReportedTogether(t *testing.T) {
	problems := grant.Parse(names, map[string]string{rw: "", ro: "!x", expires: "never"}).Problems()
	if len(problems) != 3 {
		t.Fatalf("got %d problems, want all three: %v", len(problems), problems)
	}
}

func TestProblemsCannotForgeText(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, text := range []string{"(\n\x1b[31mroot\u202e", long + "("} {
		for _, problem := range grant.Parse(names, map[string]string{rw: text}).Problems() {
			said := problem.Error()
			if strings.ContainsAny(said, "\n\x1b\u202e") {
				t.Errorf("control characters reach the reader: %q", said)
			}
			if len(said) > 900 {
				t.Errorf("%d bytes do not fit into an event", len(said))
			}
		}
	}
}

// FuzzEvaluate holds what must be true of every text: no panic, one answer,
// nothing for a namespace without labels, and no grant from nothing.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"type=tenant", "", "!a", "a in (b,c),d", "a notin ()", "a>1", ",,", "kubernetes.io/metadata.name", "a=b,a=c", "\x00"} {
		f.Add(seed, "", "type", "tenant")
		f.Add(seed, "2027-01-01T12:00:01Z", "a", "b")
	}
	f.Fuzz(func(t *testing.T, selector, expiry, key, value string) {
		annotations := map[string]string{rw: selector}
		if expiry != "" {
			annotations[expires] = expiry
		}
		labels := map[string]string{key: value}
		first := grant.Evaluate(names, annotations, labels, now)
		if second := grant.Evaluate(names, annotations, labels, now); first != second {
			t.Fatalf("%v and then %v", first, second)
		}
		if got := grant.Evaluate(names, annotations, nil, now); got.Access != grant.None {
			t.Fatalf("selector %q lets a namespace without labels in", selector)
		}
		if problems := grant.Parse(names, annotations).Problems(); first.Access != grant.None && len(problems) != 0 {
			t.Fatalf("granted and broken at once: %v", problems)
		}
		delete(annotations, rw)
		if got := grant.Evaluate(names, annotations, labels, now); got.Access != grant.None {
			t.Fatal("removing the grant grants")
		}
	})
}
