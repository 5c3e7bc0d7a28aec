package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVersionOf(t *testing.T) {
	const noTag = ": expected a tag such as v0.1.0, or what git describe makes of one; name it with VERSION="
	for _, tc := range []struct{ name, text, want, wantError string }{
		{"a tag", "v0.1.0", "0.1.0", ""},
		{"a candidate", "v1.0.0-rc.1", "1.0.0-rc.1", ""},
		{"after a tag", "v0.1.0-5-gabcdef0", "0.1.0-5-gabcdef0", ""},
		{"no tag yet", "0123456", "0.0.0-g0123456", ""},
		{"changes", "v0.1.0-dirty", "", `version "v0.1.0-dirty": the checkout has changes that are not committed; commit them, or build from another checkout`},
		{"no git", "unknown", "", `version "unknown"` + noTag},
		{"nothing", "", "", `version ""` + noTag},
		{"two numbers", "v1.0", "", `version "v1.0"` + noTag},
		{"a path", "v1.0.0-../x", "", `version "v1.0.0-../x"` + noTag},
		{"a flag of the linker", "v1.0.0 -X a.b=c", "", `version "v1.0.0 -X a.b=c"` + noTag},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := versionOf(tc.text)
			if got != tc.want || fmt.Sprint(err) != orNil(tc.wantError) {
				t.Fatalf("got %q, %v; want %q, %s", got, err, tc.want, orNil(tc.wantError))
			}
		})
	}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

func TestParseRefusesTheEpoch(t *testing.T) {
	for _, epoch := range []string{"", "0", "-1", "yesterday"} {
		_, err := parse([]string{"--version=v1.0.0", "--epoch=" + epoch})
		want := fmt.Sprintf("--epoch %q: expected the seconds from 1970 to the commit, as git log -1 --format=%%ct prints them", epoch)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// An archive depends on what is in it and on the date alone.
func TestPack(t *testing.T) {
	date := time.Unix(1_700_000_000, 0).UTC()
	entries := []entry{{name: "d/z", content: []byte("z")}, {name: "d/a", content: []byte("a"), program: true}, {name: "d/l", link: "a"}}
	one, err := pack(entries, date)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(entries)
	two, err := pack(entries, date)
	if err != nil || !bytes.Equal(one, two) {
		t.Fatalf("another order gave another archive (%v)", err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil || !unzipped.ModTime.IsZero() || unzipped.Name != "" {
		t.Fatalf("gzip: %v, %+v", err, unzipped)
	}
	var seen []string
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, fmt.Sprintf("%s %o %d:%d %q%q %d %s", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.Unix(), h.Linkname))
	}
	want := []string{`d/a 755 0:0 """" 1700000000 `, `d/l 777 0:0 """" 1700000000 a`, `d/z 644 0:0 """" 1700000000 `}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func TestEnvironmentDropsSettings(t *testing.T) {
	got := environment([]string{"HOME=/h", "GOFLAGS=-race", "GOAMD64=v4", "CGO_CFLAGS=-g", "GOOS=plan9", "GOEXPERIMENT=x"}, platform{"linux", "arm64"})
	want := "HOME=/h CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly GOOS=linux GOARCH=arm64 GOAMD64=v1 GOARM64=v8.0"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStamped(t *testing.T) {
	got, err := stamped([]byte("name: mooring\nversion: 0.1.0\nappVersion: 0.1.0\nkubeVersion: x\n"), "1.2.3")
	if want := "name: mooring\nversion: 1.2.3\nappVersion: 1.2.3\nkubeVersion: x\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := stamped([]byte("version: 0.1.0\n"), "1.2.3"); err == nil || err.Error() != "the chart's Chart.yaml: expected one line `version:` and one `appVersion:`" {
		t.Errorf("got %v", err)
	}
}

func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checksums(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
