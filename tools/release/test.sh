#!/bin/sh
# Builds a release of HEAD twice, in two checkouts with different paths, and
# compares; then uses what came out as a user would. What is not committed is not
# part of it. COLD=1 gives the second build an empty build cache of its own, so
# that nothing the first one compiled is used again.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

(cd tools/release && go test -count=1 ./...)

for checkout in "$work/one" "$work/two/in another/place"; do
	git clone --quiet --no-hardlinks . "$checkout"
done
make -C "$work/one" release
if [ -n "${COLD:-}" ]; then
	GOCACHE=$work/cache make -C "$work/two/in another/place" release
else
	make -C "$work/two/in another/place" release
fi
if ! diff "$work/one/dist/SHA256SUMS" "$work/two/in another/place/dist/SHA256SUMS"; then
	echo "test-release: two builds of one commit differ in the files above" >&2
	exit 1
fi

cd "$work/one/dist"
sha256sum --check --strict --quiet SHA256SUMS
count=$(find . -type f | wc -l)
[ "$count" -eq 14 ] || { echo "test-release: expected 14 files (4 archives, 8 lists of parts, chart, checksums), found $count:" >&2; ls >&2; exit 1; }
for list in *.cdx.json; do
	grep -q 'pkg:golang/k8s.io/apimachinery@' "$list" || { echo "test-release: $list does not list k8s.io/apimachinery" >&2; exit 1; }
done

os=$(go env GOOS) arch=$(go env GOARCH)
tar -xzf mooring_*_"${os}_$arch".tar.gz
cd mooring_*_"${os}_$arch"
version=$(basename "$PWD" | sed "s/^mooring_//; s/_${os}_$arch\$//")
for program in ./mooring ./kubectl-mooring; do
	got=$($program version -o json)
	for want in "\"version\": \"v$version\"" "\"commitDate\": \"2" "\"platform\": \"$os/$arch\""; do
		case $got in *"$want"*) ;; *) echo "test-release: $program version -o json: expected $want in: $got" >&2; exit 1 ;; esac
	done
done
case $(./mooring-controller --version) in *"v$version"*) ;; *) echo "test-release: mooring-controller --version does not say v$version" >&2; exit 1 ;; esac
case $(PATH=$PWD:$PATH ./kubectl_complete-mooring expl) in *explain*) ;; *) echo "test-release: kubectl_complete-mooring does not complete \"expl\"" >&2; exit 1 ;; esac
for file in LICENSE README.md CHANGELOG.md completions/mooring.bash completions/_mooring completions/mooring.fish; do
	[ -s "$file" ] || { echo "test-release: the archive has no $file" >&2; exit 1; }
done
cd "$work/one/test"
go run -buildvcs=false ./chart/load "$work"/one/dist/mooring-"$version".tgz "$version"
echo "test-release: two builds of v$version, equal digests"
