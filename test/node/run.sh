#!/bin/sh
# Checks that this machine can run nodes, builds what they are made of, and runs
# the tests. Everything that is built goes to .cache/ and bin/.
#
#   test/node/run.sh [flags of go test, such as -run TestReadOnly]
set -eu
cd "$(dirname "$0")/../.."

say() { echo "node: $*"; }

problems=0
problem() {
	echo "node: $*" >&2
	problems=$((problems + 1))
}

[ "$(uname -s)" = Linux ] || problem "kubelets run on Linux only, this is $(uname -s)."
if [ "$(id -u)" != 0 ]; then
	problem "kubelets, containers and their mounts need root: run this as root."
elif ! grep -Eq '^ *0 +0 +4294967295$' /proc/self/uid_map; then
	problem "this is root of a user namespace only, which may not run containers: run this as the machine's root."
elif ! unshare --mount --pid --net --uts --ipc --fork true 2>/dev/null; then
	problem "this machine or container does not permit namespaces of its own (unshare fails): run it where they are permitted, such as in a virtual machine or a privileged container."
elif ! unshare --mount sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
	problem "this machine or container does not permit mounting (CAP_SYS_ADMIN is missing)."
fi
for command in go gcc pkg-config nsenter unshare mount; do
	command -v $command >/dev/null || problem "the command $command is not there."
done
if command -v pkg-config >/dev/null && ! pkg-config --exists libseccomp; then
	problem "libseccomp's headers are not there, without which runc cannot be built."
fi
[ -c /dev/fuse ] || problem "/dev/fuse is not there: the test driver's mounts are FUSE mounts."
grep -qw overlay /proc/filesystems || problem "the kernel has no overlay file system, which containerd puts containers on."
grep -q '^[0-9]*:memory:' /proc/self/cgroup 2>/dev/null ||
	problem "the memory controller is not in a control group hierarchy of version 1: these tests set up nodes on version 1 only, nobody has tried them on version 2."
if [ "$problems" -gt 0 ]; then
	echo "node: nothing was run. On Debian the packages are: gcc libc6-dev pkg-config libseccomp-dev util-linux" >&2
	exit 1
fi

out=$PWD/.cache/node
mkdir -p "$out"
export GOWORK=off GOFLAGS="${GOFLAGS:-} -buildvcs=false"

(cd test && go run ./controlplane/build -with kubelet,kube-scheduler)
make build
say "building containerd and runc from their Go modules (minutes, once)"
(
	cd test/node/tools
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$out/" \
		-tags 'no_btrfs no_zfs no_devmapper no_tracing no_systemd' \
		github.com/containerd/containerd/v2/cmd/containerd \
		github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 \
		github.com/containerd/containerd/v2/cmd/ctr
	# containerd always sends a seccomp profile, which runc refuses without this.
	CGO_ENABLED=1 go build -trimpath -ldflags='-s -w' -o "$out/" -tags seccomp github.com/opencontainers/runc
)
say "building the test driver and the containers' program"
cd test/node
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$out/" ./driver ./workload
say "starting nodes in namespaces of their own; nothing of them stays behind"
exec go test -count=1 -v -timeout 15m "$@" .
