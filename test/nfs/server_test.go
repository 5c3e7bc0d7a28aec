package nfs_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/mooring-k8s/mooring/test/controlplane"
)

const (
	serverName = "nfs-ganesha"
	// host and export are what volumes say to reach the exported directory.
	host   = "127.0.0.1"
	export = "/srv"
)

// Everything that it writes stays in the test's directory, and it asks neither
// Kerberos nor, since nobody was connected before it started, for old clients.
const serverConfig = `
NFS_CORE_PARAM {
	NFS_Port = %d;
	Bind_addr = ` + host + `;
	Protocols = 4;
	Enable_NLM = false;
	Enable_RQUOTA = false;
	Enable_UDP = false;
}
NFS_KRB5 { Active_krb5 = false; }
NFSv4 {
	Graceless = true;
	RecoveryBackend = fs;
	RecoveryRoot = %q;
}
EXPORT {
	Export_Id = 1;
	Path = %q;
	Pseudo = ` + export + `;
	Access_Type = RW;
	Squash = No_Root_Squash;
	SecType = sys;
	Protocols = 4;
	Transports = TCP;
	FSAL { Name = VFS; }
}
`

// server is a running NFS server.
type server struct {
	port int
	// root is the directory that it exports.
	root string
}

// startServer starts a server as a process of the plane, with which it ends.
func startServer(t *testing.T, plane *controlplane.ControlPlane) server {
	t.Helper()
	s := server{port: freePort(t), root: filepath.Join(plane.Dir(), "exported")}
	recovery, config := filepath.Join(plane.Dir(), "recovery"), filepath.Join(plane.Dir(), "ganesha.conf")
	noError(t, os.Mkdir(s.root, 0o750), "make the exported directory")
	noError(t, os.Mkdir(recovery, 0o750), "make the server's own directory")
	text := fmt.Sprintf(serverConfig, s.port, recovery, s.root)
	noError(t, os.WriteFile(config, []byte(text), 0o600), "configure the server")
	process, err := plane.Command(controlplane.Command{
		Name: serverName, Path: "ganesha.nfsd",
		Args: []string{"-F", "-f", config, "-L", "STDOUT", "-p", filepath.Join(plane.Dir(), "ganesha.pid")},
		Ready: func(ctx context.Context) error {
			_, err := user{port: s.port}.list(ctx, place{host, export})
			return err
		},
	})
	noError(t, err, "prepare the server")
	noError(t, process.Start(t.Context()), "export %s (on overlayfs, as in containers, there are no file handles: set TMPDIR to another file system)", s.root)
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", host+":0")
	noError(t, err, "find a free port")
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
