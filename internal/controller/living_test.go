package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// TestBeginning is the first time that anything asked, whoever did.
func TestBeginning(t *testing.T) {
	var b beginning
	first := time.Now()
	if b.at(first) != first || b.at(first.Add(time.Second)) != first {
		t.Error("it began twice")
	}
}

// TestRefrains has what is told again told at the version of the first time, so
// that the API's client counts it up.
func TestRefrains(t *testing.T) {
	var r refrains
	now := time.Now()
	claim := func(uid types.UID, version string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	for _, step := range []struct {
		name         string
		uid          types.UID
		version      string
		reason, text string
		after        time.Duration
		want         string
	}{
		{"the first time", "u", "1", "R", "x", 0, "1"},
		{"again", "u", "2", "R", "x", 0, "1"},
		{"another text", "u", "3", "R", "y", 0, "3"},
		{"another reason", "u", "4", "S", "x", 0, "4"},
		{"another claim", "v", "5", "R", "x", 0, "5"},
		{"the other text again", "u", "6", "R", "y", 0, "3"},
		{"the first again, while it goes on", "u", "7", "R", "x", refrainTime - time.Second, "1"},
		{"and on", "u", "8", "R", "x", 2*refrainTime - 2*time.Second, "1"},
		{"after a long time", "u", "9", "R", "x", 4 * refrainTime, "9"},
	} {
		object := claim(step.uid, step.version)
		told := r.at(object, step.reason, step.text, now.Add(step.after)).(*corev1.PersistentVolumeClaim)
		if told.ResourceVersion != step.want || object.ResourceVersion != step.version {
			t.Errorf("%s: told at version %s, want %s; the object's own is %s now", step.name, told.ResourceVersion, step.want, object.ResourceVersion)
		}
	}
	for i := range 2 * mostNotes {
		r.at(claim(types.UID(time.Duration(i).String()), "1"), "R", "x", now.Add(time.Duration(i)*refrainTime))
	}
	if len(r.told) > mostNotes {
		t.Errorf("%d texts are remembered", len(r.told))
	}
	if got := r.at(nil, "R", "x", now); got != nil {
		t.Errorf("nothing is told of %v", got)
	}
}

// TestWhyEnded has a sentence for each reason of a revocation.
func TestWhyEnded(t *testing.T) {
	said := map[string]bool{}
	for _, reason := range []mirror.Reason{mirror.NotShared, mirror.GrantReadOnly, mirror.OriginReplaced, mirror.OriginTerminating} {
		said[whyEnded(reason)] = true
		if !mirror.EndsGrant(reason) {
			t.Errorf("%s does not count as a revocation", reason)
		}
	}
	if len(said) != 4 || mirror.EndsGrant(mirror.VolumeLost) {
		t.Errorf("four reasons are said in %d sentences", len(said))
	}
}
