package gate_test

import (
	"slices"
	"testing"

	"github.com/mooring-k8s/mooring/internal/gate"
)

const (
	commit = "1111111111111111111111111111111111111111"
	newer  = "2222222222222222222222222222222222222222"
)

// good are facts that open the gate. Each row below changes one thing.
func good() gate.Facts {
	main := gate.Branch{Name: "main", Protected: gate.Yes, Head: commit}
	return gate.Facts{
		Event: gate.Event{
			Name: "workflow_dispatch", Attempt: "1", Actor: "alice", Ref: "refs/heads/main",
			Commit: commit, Repository: "team/storage",
		},
		Forge: gate.Forge{
			Fork: gate.No, Default: main, Dispatched: main,
			Owners: []string{"carol", "Alice"}, OwnersFile: ".mooring/owners",
		},
		Checkout: gate.Checkout{Head: commit, Read: true, Manifests: []gate.ManifestFile{{Path: "v.yaml", Digest: "sha256:1"}}},
		Scan:     gate.Scan{Finished: true, Files: 3, Bytes: 99},
	}
}

func TestGoodFactsOpenTheGate(t *testing.T) {
	v := gate.Judge(good())
	if !v.Open() || v.Reason() != "" || len(v.Refusals()) != 0 {
		t.Fatalf("got %+v", v)
	}
}

func TestZeroRefuses(t *testing.T) {
	if (gate.Verdict{}).Open() {
		t.Error("the zero verdict is open")
	}
	v := gate.Judge(gate.Facts{})
	if v.Open() || v.Reason() != gate.NotDispatched {
		t.Errorf("got open %v, reason %q", v.Open(), v.Reason())
	}
	if met := len(v.Conditions) - len(v.Refusals()); met != 0 {
		t.Errorf("%d conditions are met by no facts at all: %+v", met, v.Conditions)
	}
}

var rows = []struct {
	name   string
	change func(*gate.Facts)
	reason gate.Reason
	want   []string // "condition: what is said", of those not met
}{
	{"push", func(f *gate.Facts) { f.Event.Name = "push" }, gate.NotDispatched,
		[]string{`dispatch: the event is "push"; expected workflow_dispatch: somebody starts the run by hand`}},
	{"schedule", func(f *gate.Facts) { f.Event.Name = "schedule" }, gate.NotDispatched,
		[]string{`dispatch: the event is "schedule"; expected workflow_dispatch: somebody starts the run by hand`}},
	{"pull request", func(f *gate.Facts) { f.Event.Name, f.Event.Ref = "pull_request", "refs/pull/7/merge" }, gate.NotDispatched, []string{
		`dispatch: the event is "pull_request"; expected workflow_dispatch: somebody starts the run by hand`,
		`branch: the run is on "refs/pull/7/merge"; expected a branch (refs/heads/…): dispatch it on one`}},
	{"hidden event", func(f *gate.Facts) { f.Event.Name = "workflow_call" }, gate.NotDispatched,
		[]string{`dispatch: the runner says that the event is workflow_call, which hides what started the run; put the workflow file into the calling repository and dispatch it there`}},
	{"second attempt", func(f *gate.Facts) { f.Event.Attempt = "2" }, gate.NotDispatched,
		[]string{`first attempt: this is attempt "2" of the run; expected 1: a run that is repeated acts for who dispatched it first, so dispatch a new one`}},
	{"no attempt", func(f *gate.Facts) { f.Event.Attempt = "" }, gate.NotDispatched,
		[]string{`first attempt: this is attempt "" of the run; expected 1: a run that is repeated acts for who dispatched it first, so dispatch a new one`}},
	{"tag", func(f *gate.Facts) { f.Event.Ref = "refs/tags/v1" }, gate.NotDispatched,
		[]string{`branch: the run is on "refs/tags/v1"; expected a branch (refs/heads/…): dispatch it on one`}},
	{"fork", func(f *gate.Facts) { f.Forge.Fork = gate.Yes }, gate.NotProtected,
		[]string{`no fork: team/storage is a fork; expected the repository that its owners review: dispatch the run there`}},
	{"perhaps a fork", func(f *gate.Facts) { f.Forge.Fork, f.Forge.Problem = gate.Unknown, "down" }, gate.ForgeUnknown,
		[]string{`no fork: the forge does not tell whether the repository is a fork: down`}},
	{"unprotected", func(f *gate.Facts) { f.Forge.Dispatched.Name, f.Forge.Dispatched.Protected = "dev", gate.No }, gate.NotProtected,
		[]string{`protected branch: the forge says that the branch "dev" is not protected; expected one that takes reviewed changes only: protect it, or dispatch the run on one that is`}},
	{"protection not told", func(f *gate.Facts) {
		f.Forge.Dispatched = gate.Branch{Name: "main", Head: commit, Problem: "403 Forbidden"}
	}, gate.ForgeUnknown,
		[]string{`protected branch: the forge does not tell whether the branch is protected: 403 Forbidden`}},
	{"pushed after the dispatch", func(f *gate.Facts) { f.Forge.Dispatched.Head = newer }, gate.NotHead,
		[]string{`head of the branch: the run is about the commit "` + commit + `", and the head of "main" is ` + newer + `: the branch moved on after the dispatch; dispatch the run again`}},
	{"head not told", func(f *gate.Facts) { f.Forge.Dispatched.Head = "" }, gate.ForgeUnknown,
		[]string{`head of the branch: the forge does not tell which commit is the head of the branch: it was not asked`}},
	{"default branch unprotected", func(f *gate.Facts) { f.Forge.Default.Protected = gate.No }, gate.NotProtected,
		[]string{`list of owners: the default branch "main", which lists the owners, is not protected: anybody who can push could become one; protect it`}},
	{"default branch not told", func(f *gate.Facts) { f.Forge.Default = gate.Branch{Problem: "timeout"} }, gate.ForgeUnknown,
		[]string{`list of owners: the forge does not tell whether the default branch, which lists the owners, is protected: timeout`}},
	{"an answer that is none, about the default branch", func(f *gate.Facts) { f.Forge.Default.Protected = gate.Answer(7) }, gate.ForgeUnknown,
		[]string{`list of owners: the forge does not tell whether the default branch, which lists the owners, is protected: it was not asked`}},
	{"answers that are none, about fork and branch", func(f *gate.Facts) { f.Forge.Fork, f.Forge.Dispatched.Protected = gate.Answer(7), gate.Answer(-1) }, gate.ForgeUnknown, []string{
		`no fork: the forge does not tell whether the repository is a fork: it was not asked`,
		`protected branch: the forge does not tell whether the branch is protected: it was not asked`}},
	{"owners not readable", func(f *gate.Facts) { f.Forge.Owners, f.Forge.OwnersProblem = nil, "not there" }, gate.NotOwner, []string{
		`list of owners: the owners cannot be read: not there`,
		`owner: it is not known whether "alice" is an owner: the list of owners is not`}},
	{"no policy, although asked for", func(f *gate.Facts) { f.Forge.OwnersProblem = "the policy cannot be read: 404" }, gate.NotOwner,
		[]string{`list of owners: the owners cannot be read: the policy cannot be read: 404`}},
	{"nobody listed", func(f *gate.Facts) { f.Forge.Owners = nil }, gate.NotOwner, []string{
		`list of owners: no owners are known; expected a file on the branch "main" that names one account a line`,
		`owner: it is not known whether "alice" is an owner: the list of owners is not`}},
	{"stranger", func(f *gate.Facts) { f.Event.Actor = "mallory" }, gate.NotOwner,
		[]string{`owner: "mallory" is not among the owners that .mooring/owners names on the default branch; an owner dispatches the run`}},
	{"a name that looks alike", func(f *gate.Facts) { f.Event.Actor = "аlice" }, gate.NotOwner, // a Cyrillic letter
		[]string{`owner: "аlice" is not among the owners that .mooring/owners names on the default branch; an owner dispatches the run`}},
	{"a letter that folds to ASCII", func(f *gate.Facts) { f.Event.Actor, f.Forge.Owners = "ſam", []string{"sam"} }, gate.NotOwner,
		[]string{`owner: "ſam" is not among the owners that .mooring/owners names on the default branch; an owner dispatches the run`}},
	{"no actor", func(f *gate.Facts) { f.Event.Actor = "" }, gate.NotOwner,
		[]string{`owner: the runner does not say who dispatched the run; expected GITHUB_ACTOR`}},
	{"somebody else's again", func(f *gate.Facts) { f.Event.TriggeringActor = "mallory" }, gate.NotOwner,
		[]string{`owner: the run is "alice"'s and was started by "mallory"; expected one and the same: dispatch a new run`}},
	{"another commit", func(f *gate.Facts) { f.Checkout.Head = newer }, gate.CheckoutDiffers,
		[]string{`commit: the checkout is at "` + newer + `"; expected the run's commit ` + commit + `: check out that one`}},
	{"no checkout", func(f *gate.Facts) { f.Checkout = gate.Checkout{Problem: "no git"} }, gate.CheckoutDiffers, []string{
		`commit: the checkout cannot be read: no git`,
		`clean checkout: not every file of the checkout was compared with the commit: no git`,
		`manifests: no manifest is named; expected one path a line`}},
	{"changed files", func(f *gate.Facts) {
		f.Checkout.Changed, f.Checkout.Changes = 2, []string{"a (missing)", "b (other content)"}
	}, gate.CheckoutDiffers,
		[]string{`clean checkout: 2 file(s) are not as the commit has them: a (missing), b (other content); check out the commit anew, and put nothing beside its files before the gate`}},
	{"manifest refused", func(f *gate.Facts) { f.Checkout.Manifests[0].Problem = "is a symbolic link; expected a regular file" }, gate.ManifestRefused,
		[]string{`manifests: v.yaml: is a symbolic link; expected a regular file`}},
	{"manifest not read", func(f *gate.Facts) { f.Checkout.Manifests[0].Digest = "" }, gate.ManifestRefused,
		[]string{`manifests: v.yaml: was not read`}},
	{"finding", func(f *gate.Facts) { f.Scan.Found, f.Scan.Findings = 1, []gate.Finding{{Rule: "jwt"}} }, gate.ScanFound,
		[]string{`scan: 1 finding(s) in the repository; take them out, and what is a secret out of use`}},
	{"scan not finished", func(f *gate.Facts) { f.Scan = gate.Scan{Problem: "it took too long"} }, gate.ScanUnfinished,
		[]string{`scan: the scan of the repository did not finish: it took too long`}},
	{"several at once, in the order of the list", func(f *gate.Facts) {
		f.Scan.Finished, f.Event.Actor, f.Event.Attempt = false, "mallory", "3"
	}, gate.NotDispatched, []string{
		`first attempt: this is attempt "3" of the run; expected 1: a run that is repeated acts for who dispatched it first, so dispatch a new one`,
		`owner: "mallory" is not among the owners that .mooring/owners names on the default branch; an owner dispatches the run`,
		`scan: the scan of the repository did not finish: it was not asked`}},
}

func TestVerdicts(t *testing.T) {
	reasons := map[gate.Reason]bool{}
	for _, row := range rows {
		facts := good()
		row.change(&facts)
		v := gate.Judge(facts)
		var got []string
		for _, c := range v.Refusals() {
			got = append(got, c.Name+": "+c.Says)
		}
		if v.Open() || v.Reason() != row.reason || !slices.Equal(got, row.want) {
			t.Errorf("%s: got open %v, reason %q, refusals\n%q\nwant %q,\n%q", row.name, v.Open(), v.Reason(), got, row.reason, row.want)
		}
		reasons[v.Reason()] = true
	}
	for _, reason := range gate.Reasons() {
		if !reasons[reason] {
			t.Errorf("no row ends with %q", reason)
		}
	}
}

func TestOwners(t *testing.T) {
	for _, row := range []struct {
		text string
		want []string
		err  string
	}{
		{"# who may\nalice\n\n  bob-2 # until May\r\nci[bot]\n", []string{"alice", "bob-2", "ci[bot]"}, ""},
		{"", nil, "the list of owners names nobody; expected one account a line"},
		{"# nobody yet\n", nil, "the list of owners names nobody; expected one account a line"},
		{"alice\n@bob\n", nil, "line 2 of the list of owners is @bob; expected the name of one account, without @"},
		{"alice bob\n", nil, "line 1 of the list of owners is alice bob; expected the name of one account, without @"},
		{"*\n", nil, "line 1 of the list of owners is *; expected the name of one account, without @"},
		{"\ufeffalice\n", nil, `line 1 of the list of owners is "\ufeffalice"; expected the name of one account, without @`},
		{"аlice\n", nil, "line 1 of the list of owners is аlice; expected the name of one account, without @"}, // a Cyrillic letter
		{"alice\rmallory\n", nil, `line 1 of the list of owners is "alice\rmallory"; expected the name of one account, without @`},
		{"alice, bob\n", nil, "line 1 of the list of owners is alice, bob; expected the name of one account, without @"},
		{"<!-- alice -->\n", nil, "line 1 of the list of owners is <!-- alice -->; expected the name of one account, without @"},
		{"team/alice\n", nil, "line 1 of the list of owners is team/alice; expected the name of one account, without @"},
		{"#alice\n// bob\n", nil, "line 2 of the list of owners is // bob; expected the name of one account, without @"},
		{"al\x00ice\n", nil, `line 1 of the list of owners is "al\x00ice"; expected the name of one account, without @`},
	} {
		got, err := gate.ParseOwners([]byte(row.text))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if !slices.Equal(got, row.want) || said != row.err {
			t.Errorf("%q: got %q, %q; want %q, %q", row.text, got, said, row.want, row.err)
		}
	}
	if _, err := gate.ParseOwners(make([]byte, 70000)); err == nil {
		t.Error("a list without bounds is read")
	}
}
