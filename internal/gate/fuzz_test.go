package gate_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-k8s/mooring/internal/choice"
	"github.com/mooring-k8s/mooring/internal/gate"
)

const hostileText = "a\nb\r\x1b[31m\u202e\u009b\x00"

// factsFrom returns the facts that open the gate, with what the choices change.
func factsFrom(s *choice.Source) gate.Facts {
	f := good()
	answer := func(usual gate.Answer) gate.Answer {
		return choice.Of(s, usual, gate.Unknown, gate.No, gate.Yes, gate.Answer(7))
	}
	event, forge, checkout := &f.Event, &f.Forge, &f.Checkout
	event.Name = s.Text(event.Name, "push", "workflow_call", "", hostileText)
	event.Attempt = s.Text(event.Attempt, "2", "", "01", hostileText)
	event.Actor = s.Text(event.Actor, "Alice", "mallory", "", "аlice", hostileText)
	event.TriggeringActor = s.Text("", "alice", "mallory", hostileText)
	event.Ref = s.Text(event.Ref, "refs/tags/v1", "refs/heads/", "main", "", hostileText)
	event.Commit = s.Text(event.Commit, newer, "", hostileText)
	forge.Fork = answer(forge.Fork)
	for _, branch := range []*gate.Branch{&forge.Default, &forge.Dispatched} {
		branch.Protected, branch.Head, branch.Problem = answer(branch.Protected), s.Text(branch.Head, newer, ""), s.Text("", "timeout", hostileText)
	}
	s.Perhaps(func() { forge.Owners = []string{s.Text("alice", "ALICE", "", "mallory", hostileText)} })
	s.Perhaps(func() { forge.Owners = nil })
	s.Perhaps(func() { forge.OwnersProblem = s.Text("not there", hostileText) })
	checkout.Head, checkout.Problem = s.Text(checkout.Head, newer, ""), s.Text("", "no git", hostileText)
	checkout.Read, checkout.Changed = !s.Yes(), s.Int(3)
	s.Perhaps(func() { checkout.Manifests = nil })
	s.Perhaps(func() {
		checkout.Manifests = append(checkout.Manifests, gate.ManifestFile{Path: s.Text("w.yaml", hostileText), Problem: s.Text("", "is a link", hostileText), Digest: s.Text("sha256:2", "")})
	})
	f.Scan.Finished, f.Scan.Found, f.Scan.Problem = !s.Yes(), s.Int(3), s.Text("", "it took too long")
	s.Perhaps(func() { f.Scan.Findings = []gate.Finding{{Rule: "jwt"}} })
	return f
}

// mayOpen is what must be known before the gate opens, told otherwise than the
// conditions tell it.
func mayOpen(f gate.Facts) bool {
	isOwner := slices.ContainsFunc(f.Forge.Owners, func(owner string) bool {
		return owner != "" && len(owner) == len(f.Event.Actor) && strings.EqualFold(owner, f.Event.Actor)
	})
	read := !slices.ContainsFunc(f.Checkout.Manifests, func(m gate.ManifestFile) bool { return m.Problem != "" || m.Digest == "" })
	return f.Event.Name == "workflow_dispatch" && f.Event.Attempt == "1" && strings.HasPrefix(f.Event.Ref, "refs/heads/") &&
		f.Forge.Fork == gate.No && f.Forge.Default.Protected == gate.Yes && f.Forge.Dispatched.Protected == gate.Yes &&
		f.Event.Commit != "" && f.Forge.Dispatched.Head == f.Event.Commit && f.Checkout.Head == f.Event.Commit &&
		isOwner && f.Forge.OwnersProblem == "" && f.Checkout.Problem == "" && f.Checkout.Read && f.Checkout.Changed == 0 &&
		len(f.Checkout.Manifests) > 0 && read && f.Scan.Finished && f.Scan.Found == 0 && len(f.Scan.Findings) == 0
}

// FuzzJudge holds that the gate opens only where everything is known, that the
// same facts have one verdict, and that knowing less never opens it.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		facts := factsFrom(choice.From(data))
		got := gate.Judge(facts)
		if diff := cmp.Diff(facts, factsFrom(choice.From(data))); diff != "" {
			t.Fatalf("the facts were changed\n%s", diff)
		}
		if again := gate.Judge(facts); again.Open() != got.Open() || !cmp.Equal(again.Conditions, got.Conditions) {
			t.Fatal("the same facts have two verdicts")
		}
		if got.Open() && !mayOpen(facts) {
			t.Fatalf("open: %+v", facts)
		}
		if got.Open() != (got.Reason() == "") || got.Open() != (len(got.Refusals()) == 0) {
			t.Fatalf("open %v, reason %q, refusals %v", got.Open(), got.Reason(), got.Refusals())
		}
		for what, take := range map[string]func(*gate.Facts){
			"the owners":     func(f *gate.Facts) { f.Forge.Owners = nil },
			"the protection": func(f *gate.Facts) { f.Forge.Dispatched.Protected = gate.Unknown },
			"the checkout":   func(f *gate.Facts) { f.Checkout = gate.Checkout{} },
			"the scan":       func(f *gate.Facts) { f.Scan = gate.Scan{} },
			"the event":      func(f *gate.Facts) { f.Event = gate.Event{} },
		} {
			less := factsFrom(choice.From(data))
			take(&less)
			if gate.Judge(less).Open() {
				t.Fatalf("open without %s", what)
			}
		}
	})
}

// FuzzParseOwners holds that a list is accepted whole or not at all, and that what
// is accepted are names of accounts.
func FuzzParseOwners(f *testing.F) {
	for _, seed := range []string{"alice\nbob # the second\n", "", "#\n", "@alice", "a b", "\xff", "alice\r\n", "[bot]\n", "аlice"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		owners, err := gate.ParseOwners(data)
		if (err == nil) != (len(owners) > 0) {
			t.Fatalf("%d owners and %v", len(owners), err)
		}
		for _, owner := range owners {
			if owner == "" || strings.ContainsFunc(owner, func(r rune) bool { return r > '~' || r <= ' ' || r == '#' || r == '@' }) {
				t.Fatalf("%q is an owner", owner)
			}
			if !bytes.Contains(data, []byte(owner)) {
				t.Fatalf("%q is not in the list", owner)
			}
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b\u202e") {
			t.Fatalf("the error forges lines: %q", err)
		}
	})
}

// FuzzScan reads files that somebody made to break the scanner: no panic, the same
// findings again, each on one line of text, and no file that is only half read.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{"", "a: b\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n", "\xff\xfea\x00", "clusters:\nusers:\nserver: https://x\n", "\x00\x01", "x\n" + strings.Repeat("a", 9000)} {
		f.Add("v.yaml", []byte(seed))
		f.Add("a\nb", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		scanner, err := rules()
		if err != nil {
			t.Fatal(err)
		}
		first, err := scanner.File(t.Context(), name, bytes.NewReader(data))
		if err != nil {
			t.Fatalf("bytes that can be read are not: %v", err)
		}
		again, err := scanner.File(t.Context(), name, bytes.NewReader(data))
		if err != nil || !cmp.Equal(first, again) {
			t.Fatalf("read twice, it differs: %v\n%s", err, cmp.Diff(first, again))
		}
		for _, finding := range first.Findings {
			if strings.ContainsAny(finding.Path+finding.Rule+finding.Says, "\n\r\x1b\u202e\u009b") {
				t.Fatalf("a finding forges lines: %+v", finding)
			}
		}
	})
}
