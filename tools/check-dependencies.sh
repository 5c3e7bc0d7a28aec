#!/bin/sh
# Fails if docs/dependencies.md does not name every direct dependency of every
# module of this repository. A dependency without a reason is one too many.
set -eu
cd "$(dirname "$0")/.."
page=docs/dependencies.md

# What a go.mod requires and does not call indirect, and the tools it declares.
direct() {
	awk '
		/^require \($/ { in_require = 1; next }
		/^tool \($/ { in_tool = 1; next }
		/^\)/ { in_require = in_tool = 0; next }
		/\/\/ indirect$/ { next }
		/^require / { print $2 }
		/^tool / { print $2 }
		in_require && NF > 1 { print $1 }
		in_tool && NF { print $1 }
	' "$1"
}

missing=0
count=0
for file in $(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod'); do
	[ -f "$file" ] || continue
	for dependency in $(direct "$file"); do
		case $dependency in github.com/mooring-k8s/mooring | github.com/mooring-k8s/mooring/*) continue ;; esac
		count=$((count + 1))
		if ! grep -qF "\`$dependency\`" "$page"; then
			echo "$page: no reason given for $dependency, a direct dependency of $file" >&2
			missing=$((missing + 1))
		fi
	done
done
[ "$missing" -eq 0 ] || exit 1
echo "dependencies: $count direct ones, each with its reason in $page"
