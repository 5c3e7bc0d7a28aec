package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mooringCommand is the people's command, as it is typed in the checkout.
const mooringCommand = "bin/mooring"

// types shows a kubectl command, runs it as it stands, and shows its output.
func (s *stage) types(ctx context.Context, args ...string) error {
	s.tell.typed(append([]string{"kubectl"}, args...)...)
	out, err := s.kubectl.Run(ctx, args...)
	s.tell.shown(out)
	return err
}

// typesInto is types with the output going to a file.
func (s *stage) typesInto(ctx context.Context, file string, args ...string) error {
	s.tell.typedInto(file, append([]string{"kubectl"}, args...)...)
	out, err := s.kubectl.Output(ctx, args...)
	return errors.Join(err, s.write(file, out))
}

// mooring does for bin/mooring what types does for kubectl, and returns what
// it printed. It is an error if it does not end with the told exit code.
func (s *stage) mooring(ctx context.Context, exitCode int, args ...string) (string, error) {
	s.tell.typed(append([]string{mooringCommand}, args...)...)
	var out strings.Builder // of both, in the order of a terminal
	command := s.mooringProcess(ctx, args)
	command.Stdout, command.Stderr = &out, &out
	err := ends(command, exitCode)
	s.tell.shown(out.String())
	if err == nil && exitCode != 0 {
		s.tell.shown(fmt.Sprintf("(exit code %d)", exitCode))
	}
	return out.String(), err
}

// mooringInto is mooring with the output going to a file.
func (s *stage) mooringInto(ctx context.Context, file string, args ...string) error {
	s.tell.typedInto(file, append([]string{mooringCommand}, args...)...)
	var out, errOut strings.Builder
	command := s.mooringProcess(ctx, args)
	command.Stdout, command.Stderr = &out, &errOut
	err := ends(command, exitOK)
	s.tell.shown(errOut.String())
	return errors.Join(err, s.write(file, out.String()))
}

// write makes a file that only this user may read, as a careful umask does: it
// may hold a token.
func (s *stage) write(file, text string) error {
	return os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600)
}

func (s *stage) mooringProcess(ctx context.Context, args []string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(s.dir, mooringCommand), args...)
	command.Dir = s.dir
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubectl.Kubeconfig) // which retain does not look at
	return command
}

// ends runs a command, and sees that it ends with an exit code.
func ends(command *exec.Cmd, exitCode int) error {
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("run %s (`make build` builds it): %w", mooringCommand, err)
	}
	if got := command.ProcessState.ExitCode(); got != exitCode {
		return fmt.Errorf("%s %s ends with exit code %d, not %d", mooringCommand, strings.Join(command.Args[1:], " "), got, exitCode)
	}
	return nil
}

// prints sees that something is in what a command printed, which is shown
// already.
func prints(out, wanted string) error {
	if !strings.Contains(out, wanted) {
		return fmt.Errorf("the command prints %q", wanted)
	}
	return nil
}
