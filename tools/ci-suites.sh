#!/usr/bin/env bash
# Prints which heavy suites a change is checked with: those that it touches, or, if
# it touches none, one of them in turn. The change is what was committed since
# $CI_BASE, or within the last day.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each suite, and the paths that it is about. `make test-roles` and `make chaos` are
# not among them until each was seen to pass in one piece.
suites=(
	"test-node ^(internal/(recipe|mirror|controller)|cmd/mooring-controller|test/(node|csinode))/"
	"test-chart ^(charts|tools/chart|test/(chart|policies|observe)|docs/policies|internal/controller/(metrics|collector|census))"
	"test-rules ^(charts/mooring/alerts|tools/prometheus|docs/(alerts|operating))"
	"test-bench ^test/bench/"
	"test-forge ^(internal/gate/|internal/cli/ci|[.](github|gitea|forgejo)/|test/(forge|workflows)/|examples/ci/)"
	"test-release ^(tools/release/|tools/image|Dockerfile|cmd/)"
)

if ! git rev-parse --verify --quiet HEAD >/dev/null; then
	echo "test-node" # a checkout without history says nothing of the change
	exit
fi
base=${CI_BASE:-$(git rev-list -1 --before='24 hours ago' HEAD)}
changed=$(git diff --name-only "${base:-$(git hash-object -t tree /dev/null)}" HEAD)
found=0
for suite in "${suites[@]}"; do
	if grep --quiet --extended-regexp "${suite#* }" <<<"$changed"; then
		echo "${suite%% *}"
		found=1
	fi
done
if [ "$found" -eq 0 ]; then
	turn=$(($(git rev-list --count HEAD) % ${#suites[@]}))
	echo "${suites[$turn]%% *}"
fi
