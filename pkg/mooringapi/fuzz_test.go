package mooringapi_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const oneLine = "the text is not one line of printable characters: %q"

func isOneLine(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// FuzzParseSelector holds that a grant means what kubectl's -l means, that it lets
// in nobody who has no labels, and that what is refused is told in one line.
func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{"a=b", "a in (b,c)", "!a", "", " ", "a,!b", "a>1", "((", "a=b,a=c", "\x00", "a\nb\x1b[31m\u202e", "a notin (b),c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		selector, err := mooringapi.ParseSelector(text)
		if err != nil {
			if selector != nil || !isOneLine(err.Error()) {
				t.Fatalf(oneLine, err)
			}
			return
		}
		theirs, err := labels.Parse(text)
		if err != nil || theirs.String() != selector.String() {
			t.Fatalf("%q means %v here, and %v (%v) to kubectl", text, selector, theirs, err)
		}
		if selector.Matches(labels.Set{}) {
			t.Fatalf("%q lets in who has no labels", text)
		}
	})
}

// FuzzParseExpiry holds that an end that is accepted is a time that comes again.
func FuzzParseExpiry(f *testing.F) {
	for _, seed := range []string{"2027-01-01T12:00:00Z", "2027-01-01T12:00:00.5+14:00", "0001-01-01T00:00:00Z", "", "tomorrow", "2027-02-30T00:00:00Z", "9999-12-31T23:59:60Z", "2027-01-01t12:00:00z", "2027-01-01T12:00:00." + strings.Repeat("0", 50) + "Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := mooringapi.ParseExpiry(text)
		if err != nil {
			if !at.IsZero() || !isOneLine(err.Error()) {
				t.Fatalf(oneLine, err)
			}
			return
		}
		if again, err := mooringapi.ParseExpiry(at.Format(time.RFC3339Nano)); at.IsZero() || err != nil || !again.Equal(at) {
			t.Fatalf("%q is %v, and that is %v (%v)", text, at, again, err)
		}
	})
}

// FuzzNewNames holds that every name that is accepted gives keys that Kubernetes
// accepts, and that none of Kubernetes' own are among them.
func FuzzNewNames(f *testing.F) {
	for _, seed := range []string{"mirror.example.com", "kubernetes.io", "x.k8s.io", "", "A", "a..b", strings.Repeat("a", 64), "k8s.io.example.com"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, provisioner string) {
		names, err := mooringapi.NewNames(provisioner)
		if err != nil {
			if !isOneLine(err.Error()) {
				t.Fatalf(oneLine, err)
			}
			return
		}
		for _, key := range []string{names.ReadWriteGrant(), names.Origin(), names.Finalizer(), names.Condition(), names.OriginReleasedAt()} {
			if problems := validation.IsQualifiedName(key); len(problems) > 0 {
				t.Fatalf("%q: %v", key, problems)
			}
		}
		if strings.HasSuffix("."+names.Provisioner(), ".kubernetes.io") || strings.HasSuffix("."+names.Provisioner(), ".k8s.io") {
			t.Fatalf("%q belongs to Kubernetes", provisioner)
		}
	})
}

// FuzzStateOf reads claims whose annotations and condition somebody made up.
func FuzzStateOf(f *testing.F) {
	f.Add("drives/mydrive", "Bound", "True", "Mirrored", "until")
	f.Add("/", "Pending", "Unknown", "\n", "\x1b")
	f.Fuzz(func(t *testing.T, origin, phase, status, reason, message string) {
		var names mooringapi.Names
		claim := &corev1.PersistentVolumeClaim{}
		claim.Annotations = map[string]string{names.Origin(): origin}
		claim.Status.Phase = corev1.PersistentVolumeClaimPhase(phase)
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: corev1.ConditionStatus(status), Reason: reason, Message: message,
		}}
		if one, two := names.StateOf(claim), names.StateOf(claim); one != two {
			t.Fatalf("%v and then %v", one, two)
		}
		made, err := names.NewMirrorClaim(types.NamespacedName{Namespace: phase, Name: origin}, status, reason, mooringapi.MirrorOptions{})
		if (err == nil) != (made != nil) {
			t.Fatalf("%v and %v", made, err)
		}
	})
}
