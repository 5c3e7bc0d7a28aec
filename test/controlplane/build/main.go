// Command build compiles the binaries of a Kubernetes control plane (etcd,
// kube-apiserver, kube-controller-manager) from their Go modules, so that no
// download site but the Go module proxy is needed. Run it in the directory
// test as
//
//	go run ./controlplane/build [-version v1.37.2] [-with kubelet,kube-scheduler]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/mooring-k8s/mooring/test/controlplane/internal/layout"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		cancel()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ExitOnError)
	version := flags.String("version", layout.Version(), "Kubernetes release to build; the default comes from "+layout.VersionEnv)
	with := flags.String("with", "", "further commands of Kubernetes to build, separated by commas, such as kubelet,kube-scheduler")
	if err := flags.Parse(args); err != nil {
		return err
	}
	t, err := newTarget(*version, *with)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, t.dir)
	if err != nil {
		return err
	}
	defer unlock()
	return t.bringUpToDate(ctx)
}

var (
	releasePattern = regexp.MustCompile(`^v1\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?$`)
	commandPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// target is one release and the binaries of it that are wanted.
type target struct {
	root    string            // of the repository
	dir     string            // where the binaries go
	version string            // v1.N.P
	minor   string            // N
	wanted  map[string]string // binary → package
}

func newTarget(version, with string) (*target, error) {
	parts := releasePattern.FindStringSubmatch(version)
	if parts == nil {
		return nil, fmt.Errorf("%q is not a Kubernetes release; write it like %s", version, layout.DefaultVersion)
	}
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := layout.Root(wd)
	if err != nil {
		return nil, err
	}
	wanted := map[string]string{layout.Etcd: etcdModule}
	for _, name := range append(strings.Split(with, ","), layout.APIServer, layout.ControllerManager) {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !commandPattern.MatchString(name) {
			return nil, fmt.Errorf("%q is not the name of a command of Kubernetes", name)
		}
		wanted[name] = kubernetesModule + "/cmd/" + name
	}
	return &target{
		root: root, dir: layout.Dir(root, version),
		version: version, minor: parts[1], wanted: wanted,
	}, nil
}

// bringUpToDate builds what is missing or older than its inputs.
func (t *target) bringUpToDate(ctx context.Context) error {
	start := time.Now()
	moduleDir, err := t.module(ctx)
	if err != nil {
		return err
	}
	inputs, err := t.inputs(moduleDir)
	if err != nil {
		return err
	}
	stamp, err := layout.ReadStamp(t.dir)
	if err != nil {
		return err
	}
	if stamp.Inputs != inputs {
		stamp = layout.Stamp{Inputs: inputs, Binaries: map[string]int64{}}
	}
	missing := map[string]string{}
	for name, pkg := range t.wanted {
		if !stamp.Has(t.dir, name) {
			missing[name] = pkg
		}
	}
	if len(missing) == 0 {
		fmt.Printf("Kubernetes %s is up to date in %s\n", t.version, t.dir)
		return nil
	}
	if err := t.build(ctx, moduleDir, missing, stamp); err != nil {
		return err
	}
	fmt.Printf("Kubernetes %s is ready in %s after %s\n", t.version, t.dir, time.Since(start).Round(time.Second))
	return nil
}
