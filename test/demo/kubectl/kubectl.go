// Package kubectl is kubectl itself, Kubernetes' own code, inside a program of
// ours: what is shown to a person is then what kubectl really does and prints,
// and a machine without kubectl will do.
package kubectl

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// Name is the name under which a program that calls Become is kubectl.
const Name = "kubectl"

// Become makes this process kubectl, if it was started under that name, and
// does not return then. It is to be the first call of main.
func Become() {
	if filepath.Base(os.Args[0]) != Name {
		return
	}
	command := cmd.NewDefaultKubectlCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.Execute(); err != nil {
		cmdutil.CheckErr(err) // prints it as kubectl does, and exits
	}
	os.Exit(0)
}

// Kubectl runs kubectl against one cluster, and reads nothing of what the
// person who runs it has in the home directory.
type Kubectl struct {
	Kubeconfig string
	// Dir is the directory that relative paths on the command line start from.
	Dir string
	// Cache is the directory for what kubectl learns about the cluster.
	Cache string
}

// Run runs one command and returns its output. What it printed to its standard
// error is in the error, if it failed, and else the end of the output.
func (k Kubectl) Run(ctx context.Context, args ...string) (string, error) {
	return k.RunInput(ctx, "", args...)
}

// RunInput is Run with something on the standard input.
func (k Kubectl) RunInput(ctx context.Context, input string, args ...string) (string, error) {
	out, errOut, err := k.run(ctx, input, args)
	if err != nil {
		return out, err
	}
	return out + errOut, nil
}

// Output is Run with the standard output alone, as a shell writes it to a file.
func (k Kubectl) Output(ctx context.Context, args ...string) (string, error) {
	out, _, err := k.run(ctx, "", args)
	return out, err
}

func (k Kubectl) run(ctx context.Context, input string, args []string) (stdout, stderr string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("find this program, which is kubectl too: %w", err)
	}
	var out, errOut strings.Builder
	command := exec.CommandContext(ctx, self, args...)
	command.Args[0] = Name
	command.Dir = k.Dir
	command.Env = append(os.Environ(), "KUBECONFIG="+k.Kubeconfig, "KUBECACHEDIR="+k.Cache, "KUBECTL_KUBERC=false")
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &errOut
	if err := command.Run(); err != nil {
		return out.String(), errOut.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), errOut.String(), nil
}

// Install puts a kubectl into a directory, for whoever wants to type.
func Install(dir string) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program, which is kubectl too: %w", err)
	}
	from, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }()
	path = filepath.Join(dir, Name)
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return "", err
	}
	return path, to.Close()
}
