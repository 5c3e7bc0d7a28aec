package integration_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/test/controlplane"
)

// TestBrakeIsLiftedLater has deletions stopped by an installation whose class
// deleted claims, and an administrator who lets the class report, as one does after
// a fright, before the brake is lifted: with the role that is left, the controller
// can still confirm that.
func TestBrakeIsLiftedLater(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	w.must(w.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring-brake"},
		Data:       map[string]string{"state": "engaged", "since": "2027-01-01T00:00:00Z"},
	}), "record that deletions are stopped")
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	w.measures(controller, "mooring_deletions_stopped 1")
	w.lift()
	w.must(controller.Kill(), "kill the controller")
	w.must(controller.Start(t.Context()), "start the controller again, which looks at once")
	w.measures(controller, "mooring_deletions_stopped 0")
	w.brakeSays("DeletionsResumed", "lifted by an administrator")
	if record := w.brakeIs("lifted"); record.Data["liftedAt"] == "" {
		t.Errorf("it is not confirmed that it was lifted: %v", record.Data)
	}
}
