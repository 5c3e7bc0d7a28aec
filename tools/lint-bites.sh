#!/bin/sh
# Breaks each import rule of .golangci.yml once, in a small module made for it,
# and fails if the linter does not notice, or complains about what is allowed: a
# rule whose file pattern matches nothing looks exactly like a rule that holds.
#
#   tools/lint-bites.sh path/to/golangci-lint
set -eu

linter=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
module=github.com/mooring-k8s/mooring
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf 'module %s\n\ngo 1.26.0\n' "$module" >go.mod
: >expected

# file PATH IMPORT...: a source file with these imports.
file() {
	path=$1
	shift
	mkdir -p "$(dirname "$path")"
	package=$(basename "$(dirname "$path")" | tr -d -)
	case $path in cmd/*) package=main ;; esac
	{
		echo "package $package"
		for import in "$@"; do echo "import _ \"$import\""; done
		[ "$package" != main ] || echo 'func main() {}'
	} >"$path"
}

# bad PATH IMPORT: a file that breaks a rule by this import.
bad() {
	file "$1" "$2"
	echo "$1 '$2'" >>expected
}

rooms="pkg/mooringapi internal/grant internal/recipe internal/mirror internal/kubeconfig
internal/strictyaml internal/picture internal/retain internal/receipt internal/gate internal/controller internal/cli"
# Each room has an inner package that imports nothing, for the others to import:
# the rooms themselves would import each other in circles.
for room in $rooms; do
	file "$room/inner/inner.go"
done
in=$module/internal

for pure in pkg/mooringapi internal/grant internal/recipe internal/mirror internal/kubeconfig internal/strictyaml internal/picture; do
	for import in os os/exec net/http log log/slog context; do
		bad "$pure/bad_$(echo $import | tr / _).go" "$import"
	done
	file "$pure/good.go" crypto/x509 encoding/json strings
	file "$pure/good_test.go" os
done
for pure in manifest compare plan policy reason; do
	bad "internal/retain/${pure}_bad.go" os
	file "internal/retain/${pure}.go" encoding/json "$in/strictyaml/inner" "$module/pkg/mooringapi/inner"
done
for pure in facts verdict conditions owners event; do
	bad "internal/gate/${pure}_bad.go" net/http
	file "internal/gate/${pure}.go" strings
done
file internal/gate/forge.go net/http
bad pkg/mooringapi/bad_grant.go "$in/grant/inner"
bad internal/grant/bad_recipe.go "$in/recipe/inner"
bad internal/recipe/bad_grant.go "$in/grant/inner"
bad internal/picture/bad_mirror.go "$in/mirror/inner"
bad internal/cli/bad_layout.go oss.terrastruct.com/d2/d2graph
bad internal/mirror/bad_receipt.go "$in/receipt/inner"
file internal/mirror/good_rooms.go "$in/grant/inner" "$in/recipe/inner" "$module/pkg/mooringapi/inner"
mkdir -p internal/mirror/gen && printf 'package main\n\nimport _ "os"\n\nfunc main() {}\n' >internal/mirror/gen/main.go
bad internal/kubeconfig/bad_receipt.go "$in/receipt/inner"
bad internal/receipt/bad_retain.go "$in/retain/inner"
bad internal/gate/bad_mirror.go "$in/mirror/inner"
bad internal/controller/bad_retain.go "$in/retain/inner"
bad internal/controller/bad_cli.go "$in/cli/inner"
file internal/controller/good.go os net/http "$in/mirror/inner" "$in/recipe/inner" "$in/grant/inner"
bad internal/retain/observe.go "$in/controller/inner"
bad internal/retain/create.go "$in/mirror/inner"
file internal/retain/verify.go os "$in/receipt/inner" "$in/kubeconfig/inner"
bad internal/cli/bad.go "$in/controller/inner"
file internal/cli/good.go "$in/picture/inner" "$in/retain/inner" "$in/mirror/inner" "$in/grant/inner" "$in/receipt/inner" "$in/kubeconfig/inner" "$in/gate/inner"
bad cmd/mooring/main.go "$in/controller/inner"
bad cmd/mooring-controller/bad.go "$in/cli/inner"
file cmd/mooring-controller/good.go "$in/controller/inner"

cp "$root/.golangci.yml" .
"$linter" run --allow-parallel-runners --enable-only depguard --show-stats=false \
	--output.text.path=stdout --output.text.print-issued-lines=false ./... >found.txt 2>errors.txt || true
sed -n "s/^\([^:]*\):[0-9:]* import \('[^']*'\) is not allowed .*(depguard)$/\1 \2/p" found.txt | sort -u >found
sort -u expected >wanted
if ! diff -u wanted found >difference; then
	echo "The import rules do not hold (-: not noticed, +: noticed without a reason):" >&2
	grep '^[-+][^-+]' difference >&2 || true
	cat errors.txt >&2
	exit 1
fi
echo "import rules: $(wc -l <wanted) violations tried, all noticed"
