package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/doctor"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/model"
)

// etcdWorld is a model of some mirrors, two for each origin.
func etcdWorld(t *testing.T) (*controlplane.ControlPlane, *replica, *model.Model) {
	t.Helper()
	plane := ownPlane(t)
	controller := install(t, plane).replica(t, "mooring-0", "--leader-elect=false")
	return plane, controller, model.New(t, model.Options{
		Plane: plane, Controller: controller, Seed: chosen.seed, Origins: 4, Owners: 2, Claims: 8, Tenants: 4,
	})
}

// TestEtcdStopped stops the data base while claims are being served, for some
// seconds, and starts it again, a few times.
func TestEtcdStopped(t *testing.T) {
	t.Parallel()
	plane, _, m := etcdWorld(t)
	m.Claims()
	for range shortOr(1, 5) {
		noError(t, plane.Etcd().Kill(), "kill etcd")
		until(t, "some seconds without etcd", elapsed(5*time.Second))
		noError(t, plane.Etcd().Start(t.Context()), "start etcd again")
		answers(t, plane)
		m.Rest()
		m.EndGrant(0)
		m.Rest()
		m.Grant(0)
	}
	m.Rest()
}

// answers waits until the API server reads and writes again.
func answers(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	admin, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	until(t, "the API server answers", func(ctx context.Context) string {
		namespace := &corev1.Namespace{}
		namespace.GenerateName = "probe-"
		if err := admin.Create(ctx, namespace, client.DryRunAll); err != nil {
			return err.Error()
		}
		if err := admin.List(ctx, &corev1.PersistentVolumeList{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestEtcdRestored puts the data base back to what it was before mirrors were
// made, revoked, released and grown: what is there afterwards must be right for
// the objects that are there, whatever the controller remembers.
func TestEtcdRestored(t *testing.T) {
	etcdutl, err := filepath.Abs("../../.cache/tools/etcdutl")
	noError(t, err, "find etcdutl")
	if _, err := os.Stat(etcdutl); err != nil {
		t.Fatalf("etcdutl is not built (%v): run these tests by `make chaos`", err)
	}
	for _, row := range []struct {
		name       string
		bump       uint64
		everything bool // starts again
	}{
		{"with --bump-revision, and nothing else starts again", 1_000_000, false},
		{"and everything starts again", 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			plane, controller, m := etcdWorld(t)
			m.ClaimsOf(0, 6)
			m.Rest()
			backup := filepath.Join(t.TempDir(), "db")
			noError(t, plane.SaveEtcd(t.Context(), backup), "save")
			answers(t, plane)

			m.ClaimsOf(6, 8) // these will never have been
			m.Grow(1)
			m.EndGrant(2)
			m.DeleteClaim(0)
			m.DeleteOrigin(3)
			m.Rest()

			noError(t, plane.RestoreEtcd(t.Context(), etcdutl, backup, row.bump), "restore")
			if row.everything {
				noError(t, plane.ControllerManager().Kill(), "end the controller manager")
				noError(t, plane.APIServer().Kill(), "end the API server")
				noError(t, plane.APIServer().Start(t.Context()), "start the API server")
				noError(t, plane.ControllerManager().Start(t.Context()), "start the controller manager")
				controller.crash()
			}
			answers(t, plane)
			m.WentBack()
			m.Rest()
			m.AreBound(0, 6)
			m.AreAbsent(6, 8)
			examined(t, plane)

			// And everything goes on.
			m.ClaimsOf(6, 8)
			m.Rest()
			m.AreBound(0, 8)
			m.Grow(1)
			m.EndGrant(2)
			m.DeleteOrigin(3)
			m.Rest()
		})
	}
}

// examined runs mooring doctor, and fails if it finds mirrors or origins that are
// not as they should be. That no Deployment runs the controller it finds as well,
// and rightly: here replicas are processes.
func examined(t *testing.T, plane *controlplane.ControlPlane) {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), []string{"doctor", "-o", "json", "--kubeconfig", plane.AdminKubeconfigFile()}, cli.Env{Out: &out, Err: &errs, Version: "test"})
	var found struct {
		Findings []doctor.Finding `json:"findings"`
	}
	noError(t, json.Unmarshal(out.Bytes(), &found), "read what doctor says (exit code %d):\n%s%s", code, out.String(), errs.String())
	for _, finding := range found.Findings {
		if finding.Check == "mirrors" || finding.Check == "origins" {
			t.Errorf("doctor finds: %+v", finding)
		}
	}
}
