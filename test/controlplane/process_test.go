package controlplane

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServersComeBackWithTheirData(t *testing.T) {
	cp := ownPlane(t, Options{})
	api := clientFor(t, cp.Admin())
	namespace := newNamespace(t, api)

	before := newClaim(t, api, namespace, "before")
	for _, p := range []*Process{cp.APIServer(), cp.Etcd(), cp.ControllerManager()} {
		pid := p.PID()
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if p.PID() != 0 || alive(pid) {
			t.Fatalf("%s lives after Kill", p.Name())
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func(ctx context.Context) error { // its connection to etcd is new
		kept, err := api.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "before", metav1.GetOptions{})
		if err == nil && kept.UID != before.UID {
			t.Fatal("another claim has its place")
		}
		return err
	})
	volume := newVolumeFor(t, api, before)
	waitBound(t, api, before, volume.Name)

	if err := cp.APIServer().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cp.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := api.CoreV1().PersistentVolumes().Get(t.Context(), volume.Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestPausedAPIServerDoesNotAnswer(t *testing.T) {
	cp := ownPlane(t, Options{})
	api := clientFor(t, cp.Admin())
	if err := cp.APIServer().Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := api.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err == nil {
		t.Error("it answers")
	}
	if err := cp.APIServer().Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		_, err := api.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func TestCommandIsAProcessOfThePlane(t *testing.T) {
	cp := shared.ForTest(t)
	p, err := cp.Command(Command{
		Name: "greeter", Path: "/bin/sh", Args: []string{"-c", `echo "hello $WHO"; read -r _; exit 3`},
		Env: []string{"WHO=world"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cp.Command(Command{Name: "greeter", Path: "/bin/sh"}); err == nil {
		t.Error("two processes of one name")
	}
	for range 2 {
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code, err := p.Wait(t.Context()); code != 3 || err != nil {
			t.Fatalf("exit code %d (%v), want 3", code, err)
		}
	}
	if got := cp.LogTail("greeter", 5); got != "hello world\nhello world" {
		t.Errorf("log %q", got)
	}
	if err := p.Kill(); !errors.Is(err, errNotRunning) {
		t.Errorf("killing it gives %v", err)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	if useExisting() {
		t.Skip("an existing cluster is not started")
	}
	parent := t.TempDir()
	_, err := Start(t.Context(), Options{APIServerArgs: []string{"--no-such-flag"}, TempDir: parent})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestMissingBinariesAreNotSkipped(t *testing.T) {
	if useExisting() {
		t.Skip("an existing cluster needs no binaries")
	}
	_, err := Start(t.Context(), Options{Version: "v1.0.0"})
	if err == nil || !strings.Contains(err.Error(), `run "make controlplane K8S_VERSION=v1.0.0" first`) {
		t.Errorf("got %v", err)
	}
}

func TestPortTakenByAnotherIsReplaced(t *testing.T) {
	cp := shared.ForTest(t)
	if cp.Existing() {
		t.Skip("an existing cluster has its ports")
	}
	second := cp.newEtcd("")
	taken := cp.APIServer().ports[0]
	tries := 0
	second.name = "second-etcd"
	second.command = func() (Command, error) {
		port := second.ports[0]
		if tries++; tries == 1 {
			port = taken
		}
		bin, err := binaries(cp.Version())
		if err != nil {
			return Command{}, err
		}
		return Command{Path: bin + "/etcd", Args: []string{
			"--data-dir=" + t.TempDir(), "--listen-client-urls=http://127.0.0.1:" + strconv.Itoa(port),
			"--advertise-client-urls=http://127.0.0.1:" + strconv.Itoa(port), "--listen-peer-urls=http://127.0.0.1:" + strconv.Itoa(second.ports[1]),
			"--initial-advertise-peer-urls=http://127.0.0.1:" + strconv.Itoa(second.ports[1]), "--initial-cluster=default=http://127.0.0.1:" + strconv.Itoa(second.ports[1]),
		}}, nil
	}
	second.ready = func(ctx context.Context) error {
		return probe(ctx, nil, "http://127.0.0.1:"+strconv.Itoa(second.ports[0])+"/health")
	}
	if err := second.startFirst(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if tries != 2 {
		t.Errorf("%d tries, want 2", tries)
	}
	if err := second.Kill(); err != nil {
		t.Error(err)
	}
}
