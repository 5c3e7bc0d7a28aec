package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// SaveEtcd copies the data base to a file, as a backup does that stops etcd for
// the while. The API server notices.
func (cp *ControlPlane) SaveEtcd(ctx context.Context, file string) error {
	if cp.existing {
		return fmt.Errorf("save etcd: %w", ErrExistingCluster)
	}
	if err := cp.etcd.Stop(ctx); err != nil {
		return fmt.Errorf("save etcd: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(cp.etcdDir(), "member", "snap", "db"))
	if err != nil {
		return fmt.Errorf("save etcd: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("save etcd: %w", err)
	}
	return cp.etcd.Start(ctx)
}

// RestoreEtcd gives etcd the data of a file of SaveEtcd back, by etcd's own
// program etcdutl, and starts it. With bump, revisions go on that far above those
// of the file, and what was before counts as compacted: then clients notice that
// their watches are void, as the recovery of a Kubernetes cluster wants it. Without,
// whoever remembers a revision must be started again.
func (cp *ControlPlane) RestoreEtcd(ctx context.Context, etcdutl, file string, bump uint64) error {
	if cp.existing {
		return fmt.Errorf("restore etcd: %w", ErrExistingCluster)
	}
	if err := cp.etcd.Stop(ctx); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.RemoveAll(cp.etcdDir()); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	peer := address(cp.etcd.ports[1])
	args := []string{
		"snapshot", "restore", file, "--skip-hash-check", // a copied file has no hash
		"--data-dir=" + cp.etcdDir(), "--name=" + EtcdName,
		"--initial-cluster=" + EtcdName + "=" + peer, "--initial-advertise-peer-urls=" + peer,
	}
	if bump > 0 {
		args = append(args, "--bump-revision="+strconv.FormatUint(bump, 10), "--mark-compacted")
	}
	if output, err := exec.CommandContext(ctx, etcdutl, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("restore etcd: %w\n%s", err, output)
	}
	return cp.etcd.Start(ctx)
}

func (cp *ControlPlane) etcdDir() string { return filepath.Join(cp.dir, "etcd") }
