//go:build linux

// Command driver is the node part of a test CSI driver, and registers itself
// with the kubelet as node-driver-registrar does. In two kinds:
//
//	network    A stand-in for a network file system, in the manner of
//	           nfs.csi.k8s.io: nothing is staged, the attributes server and
//	           share say what to mount, and each mount is a FUSE mount, so a
//	           superblock of its own that the option ro makes read-only.
//	directory  A driver that stages: the attribute path names a directory, which
//	           is bind-mounted at the staging path and from there to each Pod.
//	           With ro these mounts are remounted read-only; their superblock is
//	           everybody's and stays as it is.
//
// Neither looks at the handle, so what is reached depends on what the recipes
// make of the attributes and options.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	d := &driver{}
	flag.StringVar(&d.name, "name", "", "the driver's name")
	flag.StringVar(&d.kind, "kind", network, network+" or "+directory)
	flag.StringVar(&d.node, "node", "", "the node's name")
	flag.StringVar(&d.data, "data", "", "the directory that holds what volumes hold")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "the kubelet's directory")
	flag.Parse()
	if err := d.run(*kubelet); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// run serves both sockets until the process is told to end.
func (d *driver) run(kubelet string) error {
	endpoint := filepath.Join(kubelet, "plugins", d.name, "csi.sock")
	err := listen(endpoint, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, d)
		csi.RegisterNodeServer(s, d)
	})
	if err != nil {
		return err
	}
	err = listen(filepath.Join(kubelet, "plugins_registry", d.name+"-reg.sock"), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, &registrar{name: d.name, endpoint: endpoint})
	})
	if err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM, unix.SIGINT)
	<-end
	return nil
}

func listen(socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(listener) }()
	return nil
}

// registrar tells the kubelet where the driver listens.
type registrar struct {
	registration.UnimplementedRegistrationServer

	name, endpoint string
}

// GetInfo implements registration.RegistrationServer.
func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer.
func (r *registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Printf("registered=%t %s\n", s.GetPluginRegistered(), s.GetError())
	return &registration.RegistrationStatusResponse{}, nil
}
