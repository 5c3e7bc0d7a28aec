package main

import (
	"os/exec"
	"testing"
)

func TestAnotherExitCodeIsNotAsTold(t *testing.T) {
	for _, told := range []int{0, 3, 4} {
		err := ends(exec.CommandContext(t.Context(), "sh", "-c", "exit 3"), told)
		if (err == nil) != (told == 3) {
			t.Errorf("ends with 3, told %d: %v", told, err)
		}
	}
	if err := ends(exec.CommandContext(t.Context(), "/nonexistent/mooring"), exitOK); err == nil {
		t.Error("a command that cannot be started is an error")
	}
}
