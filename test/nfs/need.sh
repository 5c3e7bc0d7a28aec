#!/bin/sh
# Says in one line what this machine lacks for the tests of NFS data, and fails
# if it lacks something. The tests and the Makefile both ask here.

missing=
command -v ganesha.nfsd >/dev/null || missing="$missing nfs-ganesha"
vfs=
for library in /usr/lib/*/ganesha/libfsalvfs.so /usr/lib*/ganesha/libfsalvfs.so; do
	[ -e "$library" ] && vfs=$library
done
[ -n "$vfs" ] || missing="$missing nfs-ganesha-vfs"
for program in nfs-cat nfs-cp nfs-ls; do
	command -v $program >/dev/null || { missing="$missing libnfs-utils" && break; }
done

if [ -n "$missing" ]; then
	echo "a user-space NFS server and client are missing; on Debian: apt-get install$missing"
	exit 1
fi
# CAP_DAC_READ_SEARCH, bit 2, which root has, but in most containers has not.
held=$(sed -n 's/^CapEff:[[:space:]]*/0x/p' /proc/self/status)
if [ $((held & 4)) = 0 ]; then
	echo "the NFS server opens files by their handles: run this as root (in a container, with CAP_DAC_READ_SEARCH)"
	exit 1
fi
