package nfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// place is where a volume's data is: a node mounts server:directory.
type place struct{ server, directory string }

func (p place) String() string { return p.server + ":" + p.directory }

// placeOf resolves a volume's coordinates as a node does. It is written from
// the sources of Kubernetes (pkg/volume/nfs, SetUpAt) and of csi-driver-nfs
// (pkg/nfs/nodeserver.go, NodePublishVolume), and not from Mooring's recipes.
func placeOf(volume *corev1.PersistentVolume) (place, error) {
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.NFS != nil:
		return place{source.NFS.Server, path.Clean(source.NFS.Path)}, nil
	case source.CSI != nil && source.CSI.Driver == csiDriver:
		return placeOfAttributes(source.CSI.VolumeAttributes)
	default:
		return place{}, fmt.Errorf("volume %s is not on NFS: %+v", volume.Name, source)
	}
}

func placeOfAttributes(attributes map[string]string) (place, error) {
	folded := map[string]string{}
	for key, value := range attributes {
		key = strings.ToLower(key)
		if other, twice := folded[key]; twice {
			return place{}, fmt.Errorf("attribute %s stands twice, and either of %q and %q may be taken", key, other, value)
		}
		folded[key] = value
	}
	if folded["server"] == "" || folded["share"] == "" {
		return place{}, fmt.Errorf("server or share is missing in %v", attributes)
	}
	subdir := strings.NewReplacer(
		"${pvc.metadata.namespace}", folded["csi.storage.k8s.io/pvc/namespace"],
		"${pvc.metadata.name}", folded["csi.storage.k8s.io/pvc/name"],
		"${pv.metadata.name}", folded["csi.storage.k8s.io/pv/name"],
	).Replace(folded["subdir"])
	return place{folded["server"], path.Join(folded["share"], subdir)}, nil
}

// user is somebody with an NFS client, who goes where volumes point. Volumes
// name no port; this one's is the test's own knowledge.
type user struct{ port int }

func (u user) url(p place, name string) string {
	return fmt.Sprintf("nfs://%s?version=4&nfsport=%d", p.server+path.Join(p.directory, name), u.port)
}

func (u user) read(ctx context.Context, p place, name string) (string, error) {
	return run(ctx, "nfs-cat", u.url(p, name))
}

// write makes a file, which must not be there yet.
func (u user) write(ctx context.Context, p place, name, content string) error {
	local, err := os.CreateTemp("", "nfs-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(local.Name()) }()
	_, err = local.WriteString(content)
	if err = errors.Join(err, local.Close()); err != nil {
		return err
	}
	_, err = run(ctx, "nfs-cp", local.Name(), u.url(p, name))
	return err
}

// list returns a directory's entries, each with mode, owner and size.
func (u user) list(ctx context.Context, p place) ([]string, error) {
	output, err := run(ctx, "nfs-ls", u.url(p, ""))
	if err != nil {
		return nil, err
	}
	entries := strings.Split(strings.TrimSpace(output), "\n")
	slices.Sort(entries)
	return entries, nil
}

func run(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
