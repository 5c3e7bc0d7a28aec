package csinode

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
)

// kubelet calls a driver's node service as kubelet's CSI plugin does
// (kubernetes v1.37.2, pkg/volume/csi: csi_attacher.go MountDevice and
// UnmountDevice, csi_mounter.go SetUpAt and TearDownAt; pkg/volume/util:
// HasMountRefs). One volume is what has one driver and one handle: staged once
// for the first Pod, unstaged after the last.
type kubelet struct {
	root    string
	node    csi.NodeClient
	stages  bool
	secrets map[string]map[string]string // by namespace/name

	// users are the Pods that use a volume, by unique name.
	users map[string][]string
}

func newKubelet(ctx context.Context, root, socket string) (*kubelet, func() error, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, fmt.Errorf("dial the driver: %w", err)
	}
	k := &kubelet{root: root, node: csi.NewNodeClient(connection), users: map[string][]string{}, secrets: map[string]map[string]string{}}
	capabilities, err := k.node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return nil, nil, errors.Join(err, connection.Close())
	}
	for _, c := range capabilities.GetCapabilities() {
		k.stages = k.stages || c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
	}
	return k, connection.Close, nil
}

// uniqueName is what kubelet knows a volume by: neither the PersistentVolume's
// name nor a claim or namespace is in it.
func uniqueName(volume *corev1.PersistentVolume) string {
	return "kubernetes.io/csi/" + volume.Spec.CSI.Driver + "^" + volume.Spec.CSI.VolumeHandle
}

func (k *kubelet) stagingPath(volume *corev1.PersistentVolume) string {
	sum := sha256.Sum256([]byte(volume.Spec.CSI.VolumeHandle))
	return filepath.Join(k.root, "plugins/kubernetes.io/csi", volume.Spec.CSI.Driver, fmt.Sprintf("%x", sum), "globalmount")
}

func (k *kubelet) targetPath(pod string, volume *corev1.PersistentVolume) string {
	return filepath.Join(k.root, "pods", pod, "volumes/kubernetes.io~csi", volume.Name, "mount")
}

// start mounts a volume for a Pod and returns the path that a container of it
// would get. readOnly is the Pod's persistentVolumeClaim.readOnly.
func (k *kubelet) start(ctx context.Context, pod string, volume *corev1.PersistentVolume, readOnly bool) (string, error) {
	if err := k.stage(ctx, volume); err != nil {
		return "", err
	}
	source, target := volume.Spec.CSI, k.targetPath(pod, volume)
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return "", err
	}
	request := &csi.NodePublishVolumeRequest{
		VolumeId: source.VolumeHandle, TargetPath: target, Readonly: readOnly, VolumeCapability: capability(volume),
		VolumeContext: source.VolumeAttributes, Secrets: k.secret(source.NodePublishSecretRef),
	}
	if k.stages {
		request.StagingTargetPath = k.stagingPath(volume)
	}
	if _, err := k.node.NodePublishVolume(ctx, request); err != nil {
		return "", fmt.Errorf("NodePublishVolume %s: %w", volume.Name, err)
	}
	k.users[uniqueName(volume)] = append(k.users[uniqueName(volume)], pod)
	return target, nil
}

// stage stages a volume, unless it is: then the first volume's attributes,
// secrets and options serve all others of its handle.
func (k *kubelet) stage(ctx context.Context, volume *corev1.PersistentVolume) error {
	if !k.stages || len(k.users[uniqueName(volume)]) > 0 {
		return nil
	}
	path := k.stagingPath(volume)
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	source := volume.Spec.CSI
	_, err := k.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: source.VolumeHandle, StagingTargetPath: path, VolumeCapability: capability(volume),
		VolumeContext: source.VolumeAttributes, Secrets: k.secret(source.NodeStageSecretRef),
	})
	if err != nil {
		return fmt.Errorf("NodeStageVolume %s: %w", volume.Name, err)
	}
	return nil
}

// errStillMounted is kubelet's refusal to unstage a volume whose staging mount
// it sees a second time: it tries again for ever, and neither is unstaged.
var errStillMounted = errors.New("the device mount path is still mounted by other references")

// stop unmounts a volume for a Pod, and unstages it after the last.
func (k *kubelet) stop(ctx context.Context, pod string, volume *corev1.PersistentVolume) error {
	source := volume.Spec.CSI
	_, err := k.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: source.VolumeHandle, TargetPath: k.targetPath(pod, volume)})
	if err != nil {
		return fmt.Errorf("NodeUnpublishVolume %s: %w", volume.Name, err)
	}
	name := uniqueName(volume)
	k.users[name] = slices.DeleteFunc(k.users[name], func(user string) bool { return user == pod })
	if !k.stages || len(k.users[name]) > 0 {
		return nil
	}
	return k.unstage(ctx, volume)
}

func (k *kubelet) unstage(ctx context.Context, volume *corev1.PersistentVolume) error {
	path := k.stagingPath(volume)
	others, err := mountReferences(path)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return fmt.Errorf("%w: %v", errStillMounted, others)
	}
	_, err = k.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle, StagingTargetPath: path})
	if err != nil {
		return fmt.Errorf("NodeUnstageVolume %s: %w", volume.Name, err)
	}
	return nil
}

func (k *kubelet) secret(ref *corev1.SecretReference) map[string]string {
	if ref == nil {
		return nil
	}
	return k.secrets[ref.Namespace+"/"+ref.Name]
}

// capability is what kubelet makes of a PersistentVolume: its first access mode,
// its mount options and its file system type.
func capability(volume *corev1.PersistentVolume) *csi.VolumeCapability {
	mode := map[corev1.PersistentVolumeAccessMode]csi.VolumeCapability_AccessMode_Mode{
		corev1.ReadWriteOnce: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		corev1.ReadOnlyMany:  csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		corev1.ReadWriteMany: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
	}[volume.Spec.AccessModes[0]]
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
			FsType: volume.Spec.CSI.FSType, MountFlags: volume.Spec.MountOptions,
		}},
	}
}

// mount is a line of /proc/self/mountinfo.
type mount struct{ device, root, path string }

func mounts() ([]mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mount
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		all = append(all, mount{device: fields[2], root: fields[3], path: fields[4]})
	}
	return all, nil
}

// mountReferences returns where else the mount at a path is seen: mounts of the
// same device and root, as mount-utils' SearchMountPoints finds them.
func mountReferences(path string) ([]string, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(m mount) bool { return m.path == path })
	if at < 0 {
		return nil, nil
	}
	var others []string
	for _, m := range all {
		if m.device == all[at].device && m.root == all[at].root && m.path != path {
			others = append(others, m.path)
		}
	}
	return others, nil
}
