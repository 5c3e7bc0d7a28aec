// Package csinode carries real CSI traffic: a node service of a test driver
// on a real socket, called as kubelet calls one, with origin and mirror volumes
// that the recipes make. It is the fast form of what test/node does with a real
// kubelet.
package csinode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// driver is the node service of a driver whose volumes are directories: the
// attribute "path" names one below data. Its mounts are bind mounts; with the
// mount option "own" they are superblocks of their own, which stand in for a
// network file system's with its unsharing option, and "ro" makes those
// read-only. It does not look at the handle.
type driver struct {
	csi.UnimplementedNodeServer
	csi.UnimplementedIdentityServer

	name   string
	stages bool
	data   string // the "server": one directory a volume
	work   string // on the same file system; for mounts of their own

	mutex    sync.Mutex
	requests []any // everything that was asked, for assertions
}

// serve serves the driver on a socket until stop is called.
func (d *driver) serve(socket string) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen on the driver's socket: %w", err)
	}
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, d)
	csi.RegisterIdentityServer(server, d)
	go func() { _ = server.Serve(listener) }()
	return server.Stop, nil
}

func (d *driver) note(request any) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.requests = append(d.requests, request)
}

// GetPluginInfo implements csi.IdentityServer.
func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "test"}, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	if d.stages {
		response.Capabilities = []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
		}}}
	}
	return response, nil
}

// NodeStageVolume implements csi.NodeServer.
func (d *driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	d.note(r)
	flags := r.GetVolumeCapability().GetMount().GetMountFlags()
	return &csi.NodeStageVolumeResponse{}, d.mount(r.GetVolumeId(), r.GetVolumeContext(), r.GetStagingTargetPath(), flags)
}

// NodePublishVolume implements csi.NodeServer.
func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	d.note(r)
	flags := slices.Clone(r.GetVolumeCapability().GetMount().GetMountFlags())
	if r.GetReadonly() {
		flags = append(flags, "ro")
	}
	if err := os.MkdirAll(r.GetTargetPath(), 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if d.stages {
		return &csi.NodePublishVolumeResponse{}, bind(r.GetStagingTargetPath(), r.GetTargetPath(), r.GetReadonly())
	}
	return &csi.NodePublishVolumeResponse{}, d.mount(r.GetVolumeId()+filepath.Base(filepath.Dir(r.GetTargetPath())), r.GetVolumeContext(), r.GetTargetPath(), flags)
}

// NodeUnpublishVolume implements csi.NodeServer.
func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	d.note(r)
	if err := unmount(r.GetTargetPath()); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, os.Remove(r.GetTargetPath())
}

// NodeUnstageVolume implements csi.NodeServer.
func (d *driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	d.note(r)
	return &csi.NodeUnstageVolumeResponse{}, unmount(r.GetStagingTargetPath())
}

// mount mounts a volume's directory at a target.
func (d *driver) mount(id string, attributes map[string]string, target string, flags []string) error {
	source := filepath.Join(d.data, filepath.Clean("/"+attributes["path"]))
	if _, err := os.Stat(source); attributes["path"] == "" || err != nil {
		return status.Errorf(codes.InvalidArgument, "attribute path names no directory: %v", err)
	}
	options := strings.Split(strings.Join(flags, ","), ",")
	readOnly := slices.Contains(options, "ro")
	if slices.Contains(options, "own") {
		return d.mountOwn(id, source, target, readOnly)
	}
	return bind(source, target, readOnly)
}

// mountOwn mounts a directory as a superblock of its own: an overlay that
// writes into the directory itself.
func (d *driver) mountOwn(id, source, target string, readOnly bool) error {
	empty, work := filepath.Join(d.work, "empty"), filepath.Join(d.work, strings.ReplaceAll(id, "/", "_"))
	for _, dir := range []string{empty, work} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	var flags uintptr
	if readOnly {
		flags = unix.MS_RDONLY
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,index=off", empty, source, work)
	if err := unix.Mount("overlay", target, "overlay", flags, options); err != nil {
		return status.Errorf(codes.Internal, "mount an overlay (%s) at %s: %v", options, target, err)
	}
	return nil
}

// bind makes a bind mount, and remounts it read-only as mount(8) does.
func bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return status.Errorf(codes.Internal, "bind %s to %s: %v", source, target, err)
	}
	if !readOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return status.Errorf(codes.Internal, "remount %s read-only: %v", target, err)
	}
	return nil
}

func unmount(target string) error {
	err := unix.Unmount(target, 0)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil // not mounted: the specification wants success
	}
	return status.Errorf(codes.Internal, "unmount %s: %v", target, err)
}
