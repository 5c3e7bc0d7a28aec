#!/bin/sh
# Checks that this machine can run the forge's tests, builds Gitea, act and mooring,
# and runs them. Everything that is built goes to .cache/ and bin/.
#
#   test/forge/run.sh [flags of go test, such as -run TestGitea]
set -eu
cd "$(dirname "$0")/../.."

say() { echo "forge: $*"; }

problems=0
for command in go gcc git curl sha256sum; do
	command -v $command >/dev/null || {
		echo "forge: the command $command is not there." >&2
		problems=1
	}
done
if [ "$problems" -gt 0 ]; then
	echo "forge: nothing was run. On Debian the packages are: gcc libc6-dev git curl coreutils" >&2
	exit 1
fi

out=$PWD/.cache/forge
mkdir -p "$out"
export GOWORK=off GOFLAGS="${GOFLAGS:-} -buildvcs=false"

(cd test && go run ./controlplane/build)
make build
say "building Gitea and act from their Go modules (ten minutes, once)"
(
	cd test/forge/act
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$out/" github.com/nektos/act
)
cd test/forge/gitea
CGO_ENABLED=1 go build -trimpath -ldflags='-s -w' -tags 'sqlite sqlite_unlock_notify' -o "$out/gitea" code.gitea.io/gitea
# Its templates and texts are files of its module.
go list -m -f '{{.Dir}}' code.gitea.io/gitea >"$out/gitea.source"
cd ..
exec go test -count=1 -v -timeout 20m "$@" ./...
