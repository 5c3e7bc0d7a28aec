//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What mount.nfs would take; what else is asked for fails, as it does there.
var networkOptions = []string{"ro", "rw", "hard", "nosharecache", "nfsvers=4.1"}

// mountNetwork mounts a directory as a network file system would be: through a
// FUSE server that caches no names, so that each mount is a superblock of its
// own and sees what others write. The last of ro and rw counts, as in mount(8).
func mountNetwork(source, target string, options []string) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	for _, option := range strings.Split(strings.Join(options, ","), ",") {
		switch {
		case option == "":
		case !slices.Contains(networkOptions, option):
			return status.Errorf(codes.InvalidArgument, "mount option %q is not known", option)
		case option == "ro":
			flags |= unix.MS_RDONLY
		case option == "rw":
			flags &^= unix.MS_RDONLY
		}
	}
	root, err := fs.NewLoopbackRoot(source)
	if err != nil {
		return fmt.Errorf("serve %s: %w", source, err)
	}
	_, err = fs.Mount(target, root, &fs.Options{MountOptions: fuse.MountOptions{
		FsName: "test-network", Name: "testnetwork", AllowOther: true, DirectMountStrict: true, DirectMountFlags: flags,
	}})
	if err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// once does nothing where something is mounted already: a kubelet that was
// restarted asks again.
func once(target string, mount func() error) error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.Fields(line)[4] == target {
			return nil
		}
	}
	return mount()
}
