package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var options = Options{Names: names, Instances: []string{"mooring-system/mooring", "mooring"}}

// cleanUp runs a cleanup in a time of its own, and returns how long it took.
func cleanUp(t *testing.T, w *world, o Options) (report *Report, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errors.New("not done in time"))
		defer cancel()
		o.Tell = func(sentence string) { t.Log(sentence) }
		report, err = Run(ctx, w, o)
		took = time.Since(began)
	})
	return report, took, err
}

// base is a cluster in which two origins have mirrors, and a replica leads.
func base() *world {
	w := &world{}
	w.heldBy("mooring-0_a", 15)
	w.setClaim("data", "1", ours)
	w.setClaim("shared", "2", "example.com/first", ours, foreign)
	w.setClaim("stranger", "3", foreign)
	w.mirrorVolume("m1", "data", "mooring-system/mooring", corev1.PersistentVolumeReclaimRetain)
	w.mirrorVolume("m2", "shared", "mooring", corev1.PersistentVolumeReclaimRetain)
	w.mirrorVolume("m3", "shared", "", corev1.PersistentVolumeReclaimRetain)
	w.volumes = append(w.volumes, corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "no mirror"}})
	return w
}

func TestCleanup(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(w *world)
		waits  time.Duration
	}{
		{"a replica leads", func(*world) {}, 15 * time.Second},
		{"nobody does", func(w *world) { w.heldBy("", 1) }, 15 * time.Second},
		{"there is no lease", func(w *world) { w.lease = nil }, 15 * time.Second},
		{"a replica holds it for longer", func(w *world) { w.heldBy("mooring-0_a", 60) }, time.Minute},
		{"a former cleanup holds it", func(w *world) { w.heldBy(holderPrefix+"a", 3600) }, 15 * time.Second},
		{"the leader renews it at the same moment, twice", func(w *world) {
			times := 0
			w.onUpdateLease = func() error {
				if times++; times <= 2 {
					w.heldBy("mooring-0_a", 15)
				}
				return nil
			}
		}, 15 * time.Second},
		{"somebody labels the lease while it is held", func(w *world) {
			times := 0
			w.onUpdateLease = func() error {
				if times++; times == 2 {
					w.lease.ResourceVersion = w.next()
				}
				return nil
			}
		}, 15 * time.Second},
		{"renewals fail for a while", func(w *world) {
			times := 0
			w.onUpdateLease = func() error {
				if times++; times == 2 || times == 3 {
					return errors.New("unavailable")
				}
				return nil
			}
		}, 15 * time.Second},
		{"somebody writes the claims", func(w *world) {
			times := 0
			w.onSetFinalizers = func() error {
				if times++; times <= 3 {
					return inConflict(anyClaim)
				}
				return nil
			}
		}, 15 * time.Second},
		{"the leader's last write arrives late", func(w *world) {
			times := 0
			w.onList = func() error {
				if times++; times == 2 {
					w.setClaim("late", "4", ours)
				}
				return nil
			}
		}, 15 * time.Second},
		{"a claim goes, and another gets its name", func(w *world) {
			times := 0
			w.onList = func() error {
				if times++; times == 2 {
					w.setClaim("data", "5", ours)
				}
				return nil
			}
		}, 15 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := base()
			tc.change(w)
			report, took, err := cleanUp(t, w, options)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string][]string{"data": {}, "shared": {"example.com/first", foreign}, "stranger": {foreign}} {
				if got := w.claims[name].Finalizers; !slices.Equal(got, want) {
					t.Errorf("claim %s has the finalizers %v, want %v", name, got, want)
				}
			}
			if late := w.claims["late"]; late != nil && len(late.Finalizers) > 0 {
				t.Errorf("a late finalizer was left: %v", late)
			}
			if !IsCleanup(*w.lease.Spec.HolderIdentity) || *w.lease.Spec.LeaseDurationSeconds != 3600 {
				t.Errorf("the lease is not held for an hour: %+v", w.lease.Spec)
			}
			if report.Lease != leaseName || !report.HeldUntil.Equal(w.lease.Spec.RenewTime.Add(time.Hour)) {
				t.Errorf("it says the lease %s is held until %v", report.Lease, report.HeldUntil)
			}
			if took < tc.waits || took > tc.waits+5*time.Second {
				t.Errorf("it took %v, want %v and a little", took, tc.waits)
			}
			if m := report.Mirrors; report.Removed < 2 || m.Count != 3 || m.Origins != 2 || len(m.NotRetain) != 0 {
				t.Errorf("it reports %+v", report)
			}
		})
	}
}

func TestRefusalsAndFailures(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(w *world)
		wants  string
		writes bool
	}{
		{"another instance serves mirrors", func(w *world) {
			w.mirrorVolume("m4", "data", "staging/mooring", corev1.PersistentVolumeReclaimRetain)
		}, "served by other instances (staging/mooring)", false},
		{"another controller puts a finalizer back", func(w *world) {
			w.onList = func() error { w.setClaim("data", "1", ours); return nil }
		}, "claim owner/data got the finalizer " + ours + " back", true},
		{"claims cannot be listed", func(w *world) { w.onList = func() error { return errors.New("forbidden") } }, "list the claims: forbidden", true},
		{"a claim cannot be written", func(w *world) { w.onSetFinalizers = func() error { return errors.New("forbidden") } },
			"remove the finalizer from claim owner/", true},
		{"the lease cannot be taken", func(w *world) { w.onUpdateLease = func() error { return errors.New("forbidden") } },
			"take the lease " + leaseName + ": forbidden", false},
		{"another cleanup takes the lease", func(w *world) { w.lostTo(holderPrefix + "b") }, "the lease was lost to " + holderPrefix + "b", true},
		{"it is always too slow", func(w *world) {
			w.onSetFinalizers = func() error { return inConflict(anyClaim) }
		}, "not done in time", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := base()
			tc.change(w)
			report, _, err := cleanUp(t, w, options)
			if err == nil || !strings.Contains(err.Error(), tc.wants) || report != nil {
				t.Fatalf("got %v, %v; want an error with %q", report, err, tc.wants)
			}
			if (w.writes > 0) != tc.writes {
				t.Errorf("it wrote %d times, want any: %v", w.writes, tc.writes)
			}
			if *w.lease.Spec.LeaseDurationSeconds > 30 {
				t.Errorf("a cleanup that failed keeps the replicas away: %+v", w.lease.Spec)
			}
		})
	}
}

// lostTo lets somebody else hold the lease at its first renewal.
func (w *world) lostTo(who string) {
	times := 0
	w.onUpdateLease = func() error {
		if times++; times == 2 {
			w.heldBy(who, 15)
		}
		return nil
	}
}

// A leader that ended right after its lease was taken gave it away; another
// replica took it, and put a finalizer back.
func TestLeaseIsTakenAgain(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a replica took it":     func(w *world) { w.lostTo("mooring-1_b") },
		"the leader gave it up": func(w *world) { w.lostTo("") },
		"somebody deleted it": func(w *world) {
			times := 0
			w.onUpdateLease = func() error {
				if times++; times == 2 {
					w.lease = nil
				}
				return nil
			}
		},
		"renewals failed for too long": func(w *world) {
			times := 0
			w.onUpdateLease = func() error {
				if times++; times > 1 && times < 8 {
					return errors.New("unavailable")
				}
				return nil
			}
			w.onSetFinalizers = func() error {
				if times < 8 {
					return inConflict(anyClaim) // busy until then
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := base()
			change(w)
			report, took, err := cleanUp(t, w, options)
			if err != nil || report.Removed != 2 {
				t.Fatalf("got %+v, %v", report, err)
			}
			if took < 20*time.Second {
				t.Errorf("it took only %v: nobody waited for the leader in between", took)
			}
			if !IsCleanup(*w.lease.Spec.HolderIdentity) || *w.lease.Spec.LeaseDurationSeconds != 3600 {
				t.Errorf("the lease is not held for an hour: %+v", w.lease.Spec)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := base()
	o := options
	o.Tell = func(string) { cancel() }
	if report, err := Run(ctx, w, o); report != nil || err == nil || err.Error() != "interrupted: repeat it" {
		t.Errorf("got %v, %v", report, err)
	}
	if !slices.Contains(w.claims["data"].Finalizers, ours) || *w.lease.Spec.LeaseDurationSeconds != 30 {
		t.Errorf("it went on: claim %v, lease %v", w.claims["data"], w.lease.Spec)
	}
}

func TestAllInstances(t *testing.T) {
	w := base()
	w.mirrorVolume("m4", "data", "staging/mooring", corev1.PersistentVolumeReclaimDelete)
	o := options
	o.AllInstances = true
	report, _, err := cleanUp(t, w, o)
	if err != nil || report.Removed != 2 || report.Mirrors.Count != 4 || !slices.Equal(report.Mirrors.NotRetain, []string{"pvc-m4"}) {
		t.Fatalf("got %+v, %v", report, err)
	}
}

func TestWithoutLease(t *testing.T) {
	w := base()
	w.lease = nil
	now := metav1.Now()
	w.claims["data"].DeletionTimestamp = &now
	o := options
	o.NoLease = true
	report, took, err := cleanUp(t, w, o)
	if err != nil || report.Removed != 2 || report.Deleting != 1 || w.lease != nil || took > time.Second {
		t.Fatalf("got %+v, %v after %v; the lease is %v", report, err, took, w.lease)
	}
	text, err := json.Marshal(report)
	want := `{"provisionerName":"pmp.crownlabs.polito.it","finalizer":"pmp.crownlabs.polito.it/mirrored","finalizersRemoved":2,` +
		`"claimsBeingDeleted":1,"mirrorVolumes":{"count":3,"origins":2,"notRetain":[]}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
}

// A list that the API server forgot half-way begins anew.
func TestPages(t *testing.T) {
	var tokens []string
	begun := 0
	err := pages(func() { begun++ }, func(o metav1.ListOptions) (string, error) {
		tokens = append(tokens, o.Continue)
		switch len(tokens) {
		case 1, 3:
			return "second", nil
		case 2:
			return "", apierrors.NewResourceExpired("too old")
		}
		return "", nil
	})
	if want := []string{"", "second", "", "second"}; err != nil || begun != 2 || !slices.Equal(tokens, want) {
		t.Errorf("got %q, begun %d times, %v", tokens, begun, err)
	}
	if err := pages(func() {}, func(metav1.ListOptions) (string, error) { return "", apierrors.NewResourceExpired("too old") }); err == nil {
		t.Error("a first page that has expired is no list")
	}
}
