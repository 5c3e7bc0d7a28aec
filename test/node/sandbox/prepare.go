//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sysctls are what a kubelet writes to the whole machine's kernel. It gets
// files that hold the values it wants instead.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// prepare makes the namespaces a machine of their own.
func prepare(dir string) error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{target: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
		{source: "proc", target: "/proc", kind: "proc", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{source: "mooring-node", target: dir, kind: "tmpfs"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	for name, value := range sysctls {
		stand := filepath.Join(dir, "sysctl", filepath.Base(name))
		if err := os.MkdirAll(filepath.Dir(stand), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(stand, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(stand, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover the sysctl %s: %w", name, err)
		}
	}
	return loopbackUp()
}

func loopbackUp() error {
	return onLoopback("lo", func(socket int, request *unix.Ifreq) error {
		request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	})
}

// AddAddress gives the loopback interface a further address, number n: nodes
// need one that is not 127.0.0.1.
func AddAddress(n int, address netip.Addr) error {
	return onLoopback(fmt.Sprintf("lo:%d", n), func(socket int, request *unix.Ifreq) error {
		if err := request.SetInet4Addr(address.AsSlice()); err != nil {
			return err
		}
		return unix.IoctlIfreq(socket, unix.SIOCSIFADDR, request)
	})
}

func onLoopback(name string, change func(int, *unix.Ifreq) error) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		err = change(socket, request)
	}
	if err != nil {
		err = fmt.Errorf("set up %s: %w", name, err)
	}
	return errors.Join(err, unix.Close(socket))
}
