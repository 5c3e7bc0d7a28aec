package controlplane

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDetachedPlaneGoesOnUntilItsStopScript(t *testing.T) {
	cp, err := Start(t.Context(), Options{})
	failOrSkip(t, err)
	if cp.Existing() {
		t.Skip("an existing cluster goes on anyway")
	}
	left, err := cp.Detach()
	if err != nil {
		t.Fatal(err)
	}
	stop := exec.Command("sh", left.StopScript)
	if err := cp.Stop(); err != nil {
		t.Errorf("Stop after Detach gives %v", err)
	}
	if len(left.PIDs) != 3 {
		t.Errorf("processes %v, want three", left.PIDs)
	}
	if _, err := clientFor(t, cp.Admin()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("it does not answer: %v", err)
	}
	if output, err := stop.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("the stop script gives %v: %s", err, output)
	}
	for name, pid := range left.PIDs {
		if alive(pid) {
			t.Errorf("%s still lives", name)
		}
	}
	if _, err := os.Stat(left.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there (%v)", err)
	}
}
