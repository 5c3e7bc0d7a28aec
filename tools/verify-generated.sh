#!/bin/sh
# Runs a command that generates files, and fails if it changed any file that git
# knows or would add. It compares with the state before, committed or not.
#
#   tools/verify-generated.sh make generate
set -eu
cd "$(dirname "$0")/.."
before=$(mktemp)
after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT

state() {
	git ls-files --cached --others --exclude-standard | sort -u | while read -r file; do
		[ ! -f "$file" ] || printf '%s %s\n' "$(git hash-object --no-filters "$file")" "$file"
	done
}
state >"$before"
"$@"
state >"$after"
if ! cmp -s "$before" "$after"; then
	echo "Generated files are out of date. These changed just now; commit them:" >&2
	diff "$before" "$after" | sed -n 's/^[<>] [0-9a-f]* /  /p' | sort -u >&2
	exit 1
fi
echo "generated files are up to date"
