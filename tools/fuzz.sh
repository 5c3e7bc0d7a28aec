#!/bin/sh
# Runs every fuzz target of the root module, for a time or a number of executions, beyond its
# seed corpus. The targets are discovered: a new one needs no entry anywhere.
#
#   tools/fuzz.sh 1000x
set -eu
cd "$(dirname "$0")/.."
duration=$1

targets=$(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' cmd internal pkg |
	sed -E 's|^(.*)/[^/]*:func (Fuzz.*)$|\1 \2|' | sort)
if [ -z "$targets" ]; then
	echo "no fuzz targets"
	exit 0
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
echo "$targets" | while read -r package target; do
	if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "./$package" >"$output" 2>&1 </dev/null; then
		cat "$output"
		exit 1
	fi
	echo "fuzz	$package $target	$(grep -o 'execs: [0-9]*' "$output" | tail -1)"
done
