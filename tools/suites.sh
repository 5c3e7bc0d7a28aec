#!/bin/sh
# Runs the suites that need a control plane, three at a time: most of it is waiting
# (for binders, leases, delays), so that side by side they take little more than
# the longest. Shown are the integration suite as it goes, then the others' output.
#
#   tools/suites.sh TIMEOUT [FLAG...]   flags of `go test`
set -eu
cd "$(dirname "$0")/../test"
timeout=$1
shift

logs=../.cache/test/logs
mkdir -p "$logs"
# Of the servers' processor time a quarter goes into collecting garbage at once;
# eight planes of a gigabyte each are cheaper here.
export GOGC="${GOGC:-300}"
# The suites build the controller themselves; two that do so at the same time must
# find nothing left to do.
race=
case " $* " in *" -race "*) race=-race ;; esac
(cd .. && go build -o .cache/test/mooring-controller $race ./cmd/mooring-controller)
others=$(go list ./... | grep -v -e /test/integration -e /test/nfs -e /test/policies -e /test/permissions -e '/test/chaos$')

# Of all tests TestModel takes longest, and is not to begin when others end.
go test -count=1 -v "$@" -timeout "$timeout" -run '^TestModel$' ./integration >"$logs/model.log" 2>&1 &
model=$!
# shellcheck disable=SC2086 # one word a package
go test -count=1 -p 1 -parallel 6 "$@" $others >"$logs/others.log" 2>&1 &
rest=$!
trap 'kill "$model" "$rest" 2>/dev/null || true' EXIT

status=0
echo "test: integration, and beside it the random test, chart, control plane, pages, people, retained volumes"
go test -count=1 -v -parallel 16 "$@" -timeout "$timeout" -skip '^TestModel$' ./integration/... || status=1
echo "test: chart, control plane, pages, people, retained volumes"
wait "$rest" || status=1
cat "$logs/others.log"
echo "test: random operations"
wait "$model" || status=1
cat "$logs/model.log"
trap - EXIT
exit "$status"
