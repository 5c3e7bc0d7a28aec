package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Detached says how to reach and how to end a control plane that was left
// running.
type Detached struct {
	Dir        string         // all that it has on disk
	Kubeconfig string         // the administrator's
	StopScript string         // kills exactly PIDs and removes Dir
	PIDs       map[string]int // by process name
}

// String tells a person both in two lines.
func (d Detached) String() string {
	return fmt.Sprintf("reach it:  export KUBECONFIG=%s\nstop it:   sh %s", d.Kubeconfig, d.StopScript)
}

// Detach leaves the control plane, and every Command, running after this
// process ends. The plane cannot be controlled through cp afterwards.
func (cp *ControlPlane) Detach() (Detached, error) {
	if !cp.end() {
		return Detached{}, errors.New("detach the control plane: it was stopped or detached before")
	}
	d := Detached{
		Dir: cp.dir, Kubeconfig: cp.AdminKubeconfigFile(),
		StopScript: filepath.Join(cp.dir, "stop"), PIDs: map[string]int{},
	}
	for _, p := range cp.processes() {
		if pid := p.PID(); pid != 0 {
			d.PIDs[p.name] = pid
		}
	}
	known, err := cp.guard.release()
	if err != nil {
		return d, fmt.Errorf("detach the control plane: %w", err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s\nfinish %s %s\n", guardianFunctions, shellQuote(cp.dir), strings.Join(known, " "))
	if err := os.WriteFile(d.StopScript, []byte(script), 0o700); err != nil {
		return d, fmt.Errorf("detach the control plane, which goes on running: %w", err)
	}
	return d, nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
