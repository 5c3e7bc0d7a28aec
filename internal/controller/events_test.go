package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// manyNames returns n names of namespaces, as long as there are any.
func manyNames(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%05d", strings.Repeat("n", 58), i))
	}
	return all
}

// longestNames are of a provisioner with the longest name that there is.
func longestNames(t *testing.T) mooringapi.Names {
	t.Helper()
	longest, err := mooringapi.NewNames(strings.Repeat("a.", 31) + "a")
	if err != nil {
		t.Fatal(err)
	}
	return longest
}

// Every event fits into what the API takes, and still says what matters,
// whatever the names are.
func TestNotesFit(t *testing.T) {
	long := strings.Repeat("d", 253)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: strings.Repeat("n", 63), Name: long, UID: "u"}}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: long}}
	key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	going := newNamespace()
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, tc := range map[string]struct {
		say  func(*teller)
		says []string
	}{
		"access ended": {func(s *teller) { s.accessEnded(claim, manyNames(500), mirror.GrantReadOnly) },
			[]string{"500 namespaces lost access", "00009, … (the grant is read-only now"}},
		"access regained":  {func(s *teller) { s.accessRegained(claim, manyNames(500)) }, []string{"500 namespaces have again access", "00009, …"}},
		"deletion held":    {func(s *teller) { s.deletionHeld(claim, nil, manyNames(500)) }, []string{"500 namespaces mirror it", "their mirror claims go", `/allow-deletion: "true"`}},
		"namespace going":  {func(s *teller) { s.deletionHeld(claim, going, manyNames(500)) }, []string{"500 namespaces mirror it", "their mirror claims go", `/allow-deletion: "true"`}},
		"deletion allowed": {func(s *teller) { s.deletionAllowed(claim, manyNames(500)) }, []string{"/allow-deletion says so", "500 namespaces mirror it"}},
		"claim deleted": {func(s *teller) {
			s.ended(claim, mirror.Review{Message: key.String() + " is not shared any more"}, mirror.Record{RevokedAt: time.Now()}, mirror.Policy{After: time.Hour})
		}, []string{"is not shared any more", "1h0m0s after that", "the data stay"}},
		"recorded anew":    {func(s *teller) { s.rerecorded(claim, key) }, []string{"came back under another UID"}},
		"reference edited": {func(s *teller) { s.referenceDrifted(claim, key, key.String()) }, []string{"create a new claim"}},
		"volume edited":    {func(s *teller) { s.repaired(volume, strings.Repeat("spec.mountOptions, ", 100)) }, []string{"put back: spec.mountOptions"}},
		"affinity differs": {func(s *teller) { s.affinityDiffers(volume, volume) }, []string{"create it anew"}},
		"adopted":          {func(s *teller) { s.adopted(claim, key) }, []string{"recorded, and kept"}},
		"not adopted":      {func(s *teller) { s.notAdopted(volume, "the origin "+key.String()+" is itself a mirror") }, []string{"Nothing is done to it"}},
		"brake engaged":    {func(s *teller) { s.brakeEngaged(&corev1.ConfigMap{}, 5000, 250) }, []string{"5000 mirrors", "more than 250", "data.state of this ConfigMap to lifted"}},
		"brake lifted":     {func(s *teller) { s.brakeLifted(&corev1.ConfigMap{}) }, []string{"deletions go on"}},
		"broken grant":     {func(s *teller) { s.brokenGrant(claim, strings.Repeat("é", 2000)) }, []string{"é…"}},
	} {
		t.Run(name, func(t *testing.T) {
			say, recorder := heard(t, cluster(t))
			say.names = longestNames(t)
			tc.say(say)
			notes := said(recorder)
			if len(notes) == 0 {
				t.Fatal("nothing is told")
			}
			for _, note := range notes {
				_, text, _ := strings.Cut(note, " ") // the kind, and then the reason
				_, text, _ = strings.Cut(text, " ")
				if len(text) > longestNote {
					t.Errorf("%d bytes", len(text))
				}
				for _, says := range tc.says {
					if !strings.Contains(text, says) {
						t.Errorf("no %q in %q", says, text)
					}
				}
			}
		})
	}
}

func TestOneAndMany(t *testing.T) {
	say, recorder := heard(t, cluster(t))
	origin, _ := shared()
	for _, tc := range []struct {
		namespaces []string
		want       [3]string
	}{
		{[]string{"a"}, [3]string{"1 namespace lost access: a (", "1 namespace has again access: a", "1 namespace mirrors it. "}},
		{[]string{"b", "a"}, [3]string{"2 namespaces lost access: a, b (", "2 namespaces have again access: a, b", "2 namespaces mirror it. "}},
	} {
		say.accessEnded(origin, tc.namespaces, mirror.NotShared)
		say.accessRegained(origin, tc.namespaces)
		say.deletionHeld(origin, newNamespace(), tc.namespaces)
		notes := said(recorder)
		if len(notes) != 3 {
			t.Fatalf("told %q; a namespace that stays is told nothing", notes)
		}
		for i, want := range tc.want {
			if !strings.Contains(notes[i], want) {
				t.Errorf("%q, want %q in it", notes[i], want)
			}
		}
	}
}

func TestSomeNames(t *testing.T) {
	given := []string{"c", "a", "b", "a"}
	if got := someNames(given); got != "a, b, c" || given[0] != "c" {
		t.Errorf("got %q, of %v", got, given)
	}
	if got := someNames(nil); got != "" {
		t.Errorf("of none: %q", got)
	}
	ten := strings.Split("abcdefghij", "")
	if got := someNames(ten); got != "a, b, c, d, e, f, g, h, i, j" {
		t.Errorf("of ten: %q", got)
	}
	if got := someNames(append(ten, "k")); got != "a, b, c, d, e, f, g, h, i, j, …" {
		t.Errorf("of eleven: %q", got)
	}
}

func TestNameSet(t *testing.T) {
	var set nameSet
	set.remove("a")
	set.add("a")
	set.add("a")
	set.add("b")
	if set.size() != 2 {
		t.Errorf("%d names, want 2", set.size())
	}
	set.remove("a")
	if set.size() != 1 {
		t.Errorf("%d names, want 1", set.size())
	}
}
