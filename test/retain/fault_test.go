package retain_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// at lets one step fail.
func at(step string, before, after fault) rulebook {
	return func(s string) (fault, fault) {
		if s == step {
			return before, after
		}
		return none, none
	}
}

// createThrough runs create through a failing proxy.
func (w *world) createThrough(p *proxy, name string) (receipt.Receipt, result) {
	w.Helper()
	file := w.file("receipt.json")
	r := w.run(p.documented(), "create", w.write(w.volume(name)), "-o", file, "--without-approval", "--request-timeout", "2s")
	return w.receipt(file), r
}

// Whatever fails before the create, nothing is written, and the failure is never
// taken for absence.
func TestFaultsBeforeTheWrite(t *testing.T) {
	for _, step := range []string{"version", "namespace", "whoami", "rules", "may", "list", "volume", "claim", "dry-run"} {
		for _, f := range []fault{error500, error429, reset, hang, redirect, html404} {
			t.Run(fmt.Sprintf("%s %s", step, f), func(t *testing.T) {
				w := newWorld(t)
				p := w.proxy(at(step, f, none))
				record, r := w.createThrough(p, "v")
				w.want(r, retain.ReadFailed)
				if record.Outcome != receipt.Refused || p.count("create") != 0 || w.live("v") != nil {
					t.Fatalf("got %s, %d writes; live %+v", record.Outcome, p.count("create"), w.live("v"))
				}
			})
		}
	}
}

// A fault at the create itself: what cannot be known is called unknown, what is
// known is not, and there is never a second write. The next preview tells the
// truth.
func TestFaultsAtTheWrite(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after fault
		want          retain.Reason
		outcome       receipt.Outcome
		made          bool
	}{
		{"500 instead", error500, none, retain.OutcomeUnknown, receipt.Unknown, false},
		{"500 afterwards", none, error500, retain.OutcomeUnknown, receipt.Unknown, true},
		{"429 instead", error429, none, retain.CreateRefused, receipt.Refused, false},
		{"reset instead", reset, none, retain.OutcomeUnknown, receipt.Unknown, false},
		{"reset afterwards", none, reset, retain.OutcomeUnknown, receipt.Unknown, true},
		{"hang instead", hang, none, retain.OutcomeUnknown, receipt.Unknown, false},
		{"hang afterwards", none, hang, retain.OutcomeUnknown, receipt.Unknown, true},
		{"a page instead", html404, none, retain.OutcomeUnknown, receipt.Unknown, false},
		{"a page afterwards", none, html404, retain.OutcomeUnknown, receipt.Unknown, true},
		{"redirect", redirect, none, retain.OutcomeUnknown, receipt.Unknown, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			p := w.proxy(at("create", tc.before, tc.after))
			record, r := w.createThrough(p, "v")
			w.want(r, tc.want)
			if record.Outcome != tc.outcome || record.Volumes[0].Outcome != tc.outcome || p.count("create") != 1 || (w.live("v") != nil) != tc.made {
				t.Fatalf("got %s, %d writes; live %+v", record.Outcome, p.count("create"), w.live("v"))
			}
			next, r := w.preview(w.volume("v"))
			w.want(r, "")
			if want := map[bool]receipt.Outcome{true: receipt.Unchanged, false: receipt.WouldCreate}[tc.made]; next.Outcome != want {
				t.Fatalf("the next preview says %s; want %s", next.Outcome, want)
			}
		})
	}
}

// A fault after the create: the volume was made, which is known, and could not be
// read back, which is told.
func TestFaultsAtTheReadBack(t *testing.T) {
	for _, step := range []string{"volume2", "claim2", "list2"} {
		for _, f := range []fault{error500, error429, reset, hang, html404} {
			t.Run(fmt.Sprintf("%s %s", step, f), func(t *testing.T) {
				w := newWorld(t)
				p := w.proxy(at(step, f, none))
				record, r := w.createThrough(p, "v")
				w.want(r, retain.CreatedNeedsReview)
				if record.Outcome != receipt.NeedsReview || record.Volumes[0].Live == nil || record.Volumes[0].Live.UID != string(w.live("v").UID) || p.count("create") != 1 {
					t.Fatalf("got %+v", record)
				}
			})
		}
	}
}

// Two runs for one backend can both have seen no other volume. What came to be
// meanwhile is seen at the read-back.
func TestBackendSharedMeanwhile(t *testing.T) {
	w := newWorld(t)
	p := w.proxy(nil)
	p.onEnd = func(step string) {
		if step == "dry-run" {
			w.make(w.volume("other", change{"spec/nfs/path": w.path("v")}))
		}
	}
	_, r := w.createThrough(p, "v")
	w.want(r, retain.CreatedNeedsReview)
	if !strings.Contains(r.err, string(retain.BackendShared)) || !strings.Contains(r.err, w.volumeName("other")) {
		t.Fatal(r.err)
	}
}

// The receipt's directory vanishes before the write, or after it.
func TestReceiptCannotBeWritten(t *testing.T) {
	for step, want := range map[string]retain.Reason{"dry-run": retain.ReceiptUnwritable, "create": retain.ReceiptUnfinished} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			dir := w.file("dir")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			p := w.proxy(nil)
			p.onEnd = func(s string) {
				if s == step {
					if err := os.RemoveAll(dir); err != nil {
						t.Error(err)
					}
				}
			}
			r := w.run(p.documented(), "create", w.write(w.volume("v")), "-o", dir+"/receipt.json", "--without-approval")
			w.want(r, want)
			live := w.live("v")
			if (live != nil) != (want == retain.ReceiptUnfinished) || live != nil && !strings.Contains(r.err, string(live.UID)) {
				t.Fatalf("live %+v; told %s", live, r.err)
			}
			if r.out != "" || !strings.Contains(r.err, "outcome ") {
				t.Errorf("a result without a receipt is printed as one: %q", r.out)
			}
		})
	}
}

// Somebody creates the volume between plan and create: it is not adopted, even
// if it is the same.
func TestCreatedBySomebodyElseMeanwhile(t *testing.T) {
	w := newWorld(t)
	p := w.proxy(nil)
	p.onEnd = func(step string) {
		if step == "dry-run" {
			w.make(w.volume("v"))
		}
	}
	record, r := w.createThrough(p, "v")
	w.want(r, retain.AlreadyExists)
	if record.Outcome != receipt.Refused {
		t.Fatalf("got %+v", record)
	}
}

// The real binder binds the volume in the middle of the read-back. That is what
// the volume is for: proven by the claim, it is a success.
func TestBoundDuringTheReadBack(t *testing.T) {
	w := newWorld(t)
	w.claim("v")
	p := w.proxy(nil)
	p.onEnd = func(step string) {
		if step == "create" {
			w.awaitPhase("v", corev1.VolumeBound)
		}
	}
	record, r := w.createThrough(p, "v")
	w.want(r, "")
	if record.Outcome != receipt.Created || record.Volumes[0].Live.ClaimUID == "" || record.Volumes[0].Live.Phase != "Bound" {
		t.Fatalf("got %+v", record.Volumes[0].Live)
	}
}

// Bound during the read-back to something that does not prove it: created, and a
// person must look.
func TestReadBackShowsSomethingElse(t *testing.T) {
	for name, meddle := range map[string]func(w *world){
		"another label value": func(w *world) { w.patch("v", `{"metadata":{"labels":{"owner":"somebody"}}}`) },
		"policy Delete":       func(w *world) { w.patch("v", `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`) },
		"bound to no claim":   func(w *world) { w.patch("v", `{"spec":{"claimRef":{"uid":"00000000-0000-0000-0000-000000000000"}}}`) },
		"gone":                func(w *world) { w.removeVolume(w.Context(), w.volumeName("v")) },
		"made anew":           func(w *world) { w.removeVolume(w.Context(), w.volumeName("v")); w.make(w.volume("v")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.proxy(nil)
			p.onEnd = func(step string) {
				if step == "create" {
					meddle(w)
				}
			}
			record, r := w.createThrough(p, "v")
			w.want(r, retain.CreatedNeedsReview)
			if record.Outcome != receipt.NeedsReview {
				t.Fatalf("got %+v", record)
			}
		})
	}
}

// A proxy in the environment is ignored, and that is said.
func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	w := newWorld(t)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	r := w.mooring("preview", w.write(w.volume("v")))
	w.want(r, "")
	if !strings.Contains(r.err, "HTTPS_PROXY is set and ignored") || strings.Contains(r.err, "127.0.0.1:1") {
		t.Fatal(r.err)
	}
}

// A server of a later version writes a field that this one does not know: in the
// dry run, in the create, or in what is there.
func TestFieldsOfALaterAPI(t *testing.T) {
	for step, want := range map[string]retain.Reason{
		"dry-run": retain.DryRunChanged, "create": retain.CreatedNeedsReview, "volume2": retain.CreatedNeedsReview,
	} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			p := w.proxy(nil)
			p.rewrite = func(s string, answer object) {
				if s == step {
					set(answer, []string{"spec", "sharing"}, "everybody")
				}
			}
			_, r := w.createThrough(p, "v")
			w.want(r, want)
			if !strings.Contains(r.err, "spec.sharing") || (w.live("v") == nil) != (want == retain.DryRunChanged) {
				t.Fatal(r.err)
			}
		})
	}
}

// An answer that is about something else says nothing about what was asked.
func TestAnswersAboutSomethingElse(t *testing.T) {
	for step, want := range map[string]retain.Reason{
		"version": retain.ReadFailed, "namespace": retain.ReadFailed, "whoami": retain.ReadFailed, "rules": retain.ReadFailed, "may": retain.ReadFailed,
		"list": retain.ReadFailed, "dry-run": retain.DryRunChanged, "create": retain.OutcomeUnknown, "volume2": retain.CreatedNeedsReview,
	} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			p := w.proxy(nil)
			p.rewrite = func(s string, answer object) {
				if s == step {
					for name := range answer {
						delete(answer, name)
					}
					answer["kind"], answer["apiVersion"] = "Something", "v1"
				}
			}
			_, r := w.createThrough(p, "v")
			w.want(r, want)
		})
	}
}
