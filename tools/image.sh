#!/bin/sh
# Builds the controller's image with whichever tool is there. Called by
# `make image`, which hands over the command that builds the binary.
set -eu
cd "$(dirname "$0")/.."
build=$1

if [ -z "${IMAGE:-}" ]; then
	cat >&2 <<'MESSAGE'
make image: IMAGE is not set. No image of Mooring is published, so name one in a
registry of yours:

  make image IMAGE=registry.example.com/you/mooring:0.1.0

and give the chart the same: --set image.repository=registry.example.com/you/mooring
--set image.tag=0.1.0
MESSAGE
	exit 2
fi

tool=${CONTAINER_TOOL:-}
if [ -z "$tool" ]; then
	for candidate in docker podman buildah; do
		if command -v "$candidate" >/dev/null; then
			tool=$candidate
			break
		fi
	done
fi
if [ -z "$tool" ]; then
	echo "make image: found none of docker, podman, buildah; CONTAINER_TOOL names another" >&2
	exit 2
fi

ARCH=${ARCH:-}
[ -n "$ARCH" ] || ARCH=$(go env GOARCH)
export ARCH
echo "image: binary for linux/$ARCH"
eval "$build"
echo "image: $IMAGE with $tool"
"$tool" build --platform "linux/$ARCH" --tag "$IMAGE" --file Dockerfile bin/image
echo "image: push it with: $tool push $IMAGE"
