// Command release builds everything that a release has into a directory: the
// archives of both commands for each platform, what is linked into them, the
// chart, checksums. What comes out depends on the commit only: no clock, no
// user, no path of the machine that builds.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// platforms are what a release is built for.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// commands are what a release holds.
var commands = []string{"mooring", "mooring-controller"}

type platform struct{ os, arch string }

// release is one run.
type release struct {
	root    string // of the checkout
	dist    string // where the results go
	sbom    string // the program cyclonedx-gomod
	version string // without the leading v
	date    time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	r, err := parse(args)
	if err != nil {
		return err
	}
	// Left from an earlier run, something could be taken for a part of this one.
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil { //nolint:gosec // what is published may be read
		return err
	}
	work, err := os.MkdirTemp("", "mooring-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	return r.make(ctx, work)
}

func (r release) make(ctx context.Context, work string) error {
	completions, err := r.completions(ctx, work)
	if err != nil {
		return err
	}
	for _, p := range platforms {
		if err := r.archive(ctx, work, p, completions); err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
	}
	if err := r.chart(); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return checksums(r.dist)
}

// semver is a version as Helm and Go take it (semver.org, without build
// metadata, which a tag of an image cannot have).
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

var (
	described = regexp.MustCompile(`^v(.+)$`)
	dirty     = regexp.MustCompile(`-dirty$`)
	commit    = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
)

// versionOf returns a release's version for what `git describe --tags --always
// --dirty` says: the tag's, or for a commit without a tag before it a version
// that comes before the first.
func versionOf(text string) (string, error) {
	if dirty.MatchString(text) {
		return "", fmt.Errorf("version %q: the checkout has changes that are not committed; commit them, or build from another checkout", text)
	}
	if commit.MatchString(text) {
		return "0.0.0-g" + text, nil // the g: digits alone could begin with a zero
	}
	if match := described.FindStringSubmatch(text); match != nil && semver.MatchString(match[1]) {
		return match[1], nil
	}
	return "", fmt.Errorf("version %q: expected a tag such as v0.1.0, or what git describe makes of one; name it with VERSION=", text)
}

func parse(args []string) (release, error) {
	var r release
	var version, epoch string
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.StringVar(&r.root, "root", ".", "the checkout")
	set.StringVar(&r.dist, "dist", "dist", "the directory for the results; what it holds is removed")
	set.StringVar(&r.sbom, "sbom", "", "the program cyclonedx-gomod")
	set.StringVar(&version, "version", "", "what git describe says")
	set.StringVar(&epoch, "epoch", "", "when the commit was made, in seconds since 1970")
	if err := set.Parse(args); err != nil {
		return r, err
	}
	var err error
	if r.version, err = versionOf(version); err != nil {
		return r, err
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds <= 0 {
		return r, fmt.Errorf("--epoch %q: expected the seconds from 1970 to the commit, as git log -1 --format=%%ct prints them", epoch)
	}
	r.date = time.Unix(seconds, 0).UTC()
	for _, path := range []*string{&r.root, &r.dist, &r.sbom} {
		if *path, err = filepath.Abs(*path); err != nil {
			return r, err
		}
	}
	return r, nil
}
