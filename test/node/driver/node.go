//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The kinds of driver.
const (
	network   = "network"
	directory = "directory"
)

// driver is the node service.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer

	name, kind, node, data string
}

// GetPluginInfo implements csi.IdentityServer.
func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "test"}, nil
}

// GetPluginCapabilities implements csi.IdentityServer.
func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

// Probe implements csi.IdentityServer.
func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// NodeGetInfo implements csi.NodeServer.
func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	if d.kind == directory {
		response.Capabilities = capabilities(
			csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME)
	}
	return response, nil
}

func capabilities(types ...csi.NodeServiceCapability_RPC_Type) []*csi.NodeServiceCapability {
	var capable []*csi.NodeServiceCapability
	for _, one := range types {
		capable = append(capable, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: one}}})
	}
	return capable
}

// NodeExpandVolume implements csi.NodeServer. There is nothing to grow: the line
// that it logs tells that, and for whose mount, the kubelet asked.
func (d *driver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	return &csi.NodeExpandVolumeResponse{}, told("expand", r.GetVolumePath(), nil)
}

// NodeStageVolume implements csi.NodeServer.
func (d *driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	source, err := d.directory(r.GetVolumeContext()["path"])
	if err == nil {
		readOnly := slices.Contains(r.GetVolumeCapability().GetMount().GetMountFlags(), "ro")
		err = once(r.GetStagingTargetPath(), func() error { return bind(source, r.GetStagingTargetPath(), readOnly) })
	}
	return &csi.NodeStageVolumeResponse{}, told("stage", r.GetVolumeId(), err)
}

// NodeUnstageVolume implements csi.NodeServer.
func (d *driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, told("unstage", r.GetVolumeId(), unmount(r.GetStagingTargetPath()))
}

// NodePublishVolume implements csi.NodeServer.
func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	err := os.MkdirAll(r.GetTargetPath(), 0o750)
	if err == nil {
		err = once(r.GetTargetPath(), func() error { return d.publish(r) })
	}
	return &csi.NodePublishVolumeResponse{}, told("publish", r.GetVolumeId(), err)
}

func (d *driver) publish(r *csi.NodePublishVolumeRequest) error {
	options := slices.Clone(r.GetVolumeCapability().GetMount().GetMountFlags())
	if r.GetReadonly() {
		options = append(options, "ro")
	}
	if d.kind == directory {
		return bind(r.GetStagingTargetPath(), r.GetTargetPath(), slices.Contains(options, "ro"))
	}
	attributes := r.GetVolumeContext()
	if attributes["server"] == "" || attributes["share"] == "" {
		return status.Error(codes.InvalidArgument, "the attributes server and share are needed")
	}
	source, err := d.directory(filepath.Join(attributes["server"], filepath.Clean("/"+attributes["share"])))
	if err != nil {
		return err
	}
	return mountNetwork(source, r.GetTargetPath(), options)
}

// NodeUnpublishVolume implements csi.NodeServer.
func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	err := unmount(r.GetTargetPath())
	if err == nil {
		if err = os.Remove(r.GetTargetPath()); errors.Is(err, os.ErrNotExist) {
			err = nil // done before: the specification wants success
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, told("unpublish", r.GetVolumeId(), err)
}

// directory is what of the data a volume's attributes name.
func (d *driver) directory(name string) (string, error) {
	path := filepath.Join(d.data, filepath.Clean("/"+name))
	if info, err := os.Stat(path); name == "" || err != nil || !info.IsDir() {
		return "", status.Errorf(codes.InvalidArgument, "%q is no directory of the data (%v)", name, err)
	}
	return path, nil
}

// told logs a call and makes its error one of the driver's.
func told(call, handle string, err error) error {
	fmt.Printf("%s %s: %v\n", call, handle, err)
	if err == nil {
		return nil
	}
	if _, is := status.FromError(err); is {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}

func bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

func unmount(target string) error {
	err := unix.Unmount(target, 0)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil // not mounted: the specification wants success
	}
	return err
}
