package gate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxListed is how many changes and findings are named; all are counted.
const maxListed = 20

// Inspection is one look at a checkout.
type Inspection struct {
	Dir       string
	Commit    string
	Manifests []string
	Scanner   *Scanner
	// CheckVolume says what is wrong with a manifest of the run.
	CheckVolume func(data []byte) string
}

// inspector is an Inspection while it goes on.
type inspector struct {
	Inspection
	repository repository
	root       *os.Root
	entries    map[string]entry
	checkout   Checkout
	scan       Scan
}

// Observe compares every file of the checkout with the commit, and scans it.
func (i Inspection) Observe(ctx context.Context) (Checkout, Scan) {
	run := &inspector{Inspection: i, entries: map[string]entry{}}
	err := run.inspect(ctx)
	if err != nil {
		run.checkout.Problem = err.Error()
		if !run.scan.Finished && run.scan.Problem == "" {
			run.scan.Problem = err.Error()
		}
	}
	return run.checkout, run.scan
}

func (i *inspector) inspect(ctx context.Context) error {
	if !isCommit(i.Commit) {
		return fmt.Errorf("GITHUB_SHA is %q; expected the whole name of a commit", i.Commit)
	}
	var err error
	if i.repository, err = openRepository(ctx, i.Dir); err != nil {
		return err
	}
	if i.checkout.Head, err = i.repository.head(ctx); err != nil {
		return err
	}
	list, err := i.repository.files(ctx, i.Commit)
	if err != nil {
		return err
	}
	if i.root, err = os.OpenRoot(i.repository.dir); err != nil {
		return err
	}
	defer func() { _ = i.root.Close() }() // opened for reading
	for _, e := range list {
		i.entries[e.path] = e
	}
	for _, name := range i.Manifests {
		i.checkout.Manifests = append(i.checkout.Manifests, i.manifest(name))
	}
	for _, e := range list {
		if err := i.file(ctx, e); err != nil {
			i.scan.Problem = err.Error()
			return err
		}
	}
	i.scan.Finished = true
	if err := i.untracked(ctx); err != nil {
		return err
	}
	i.checkout.Read = true
	return nil
}

// changed records a file that is not as the commit has it.
func (i *inspector) changed(name, what string) {
	i.checkout.Changed++
	if len(i.checkout.Changes) < maxListed {
		i.checkout.Changes = append(i.checkout.Changes, i.Scanner.name(name)+" ("+what+")")
	}
}

// file compares one file with the commit, and scans what it holds.
func (i *inspector) file(ctx context.Context, e entry) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("it took too long: stopped at %s", i.Scanner.name(e.path))
	}
	i.scan.Files++
	i.found(i.Scanner.Name(ctx, e.path))
	info, err := i.root.Lstat(filepath.FromSlash(e.path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if e.mode != modeSubmodule {
			i.changed(e.path, "missing")
		}
		return nil
	case err != nil:
		i.changed(e.path, "cannot be read")
		return nil //nolint:nilerr // a file that cannot be read is a change, which is told with the others
	}
	switch e.mode {
	case modeLink:
		i.link(e, info)
		return nil
	case modeSubmodule:
		return i.submodule(e, info)
	case modeFile, modeExecutable:
		return i.regular(ctx, e, info)
	}
	i.changed(e.path, "of a mode that is not known, "+e.mode)
	return nil
}

// link compares where a symbolic link leads; it is not followed.
func (i *inspector) link(e entry, info fs.FileInfo) {
	target, err := i.root.Readlink(filepath.FromSlash(e.path))
	if info.Mode()&fs.ModeSymlink == 0 || err != nil {
		i.changed(e.path, "no symbolic link any more")
		return
	}
	h := newObject("blob", len(e.oid), int64(len(target)))
	_, _ = io.WriteString(h, target) // a hash takes everything
	if hex.EncodeToString(h.Sum(nil)) != e.oid {
		i.changed(e.path, "another link")
	}
}

// submodule is not part of the commit: what is in it was neither reviewed with it
// nor is it scanned.
func (i *inspector) submodule(e entry, info fs.FileInfo) error {
	if !info.IsDir() {
		i.changed(e.path, "no submodule any more")
		return nil
	}
	dir, err := i.root.Open(filepath.FromSlash(e.path))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // opened for reading
	if names, _ := dir.Readdirnames(1); len(names) > 0 {
		i.changed(e.path, "a submodule that is checked out; leave submodules out")
	}
	return nil
}

func (i *inspector) found(findings []Finding) {
	i.scan.Found += len(findings)
	for _, f := range findings {
		if len(i.scan.Findings) < maxListed {
			i.scan.Findings = append(i.scan.Findings, f)
		}
	}
}

// untracked records files that the commit has not.
func (i *inspector) untracked(ctx context.Context) error {
	return fs.WalkDir(i.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return errors.New("it took too long")
		case err != nil:
			return err
		case name == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		e, tracked := i.entries[name]
		switch {
		case d.IsDir() && tracked && e.mode == modeSubmodule:
			return fs.SkipDir // told already, if anything is in it
		case d.IsDir() || tracked:
			return nil
		}
		i.changed(name, "not in the commit")
		return nil
	})
}

// manifest checks the path of a manifest against the commit. Its content is read
// with that of all files.
func (i *inspector) manifest(name string) ManifestFile {
	m := ManifestFile{Path: name}
	for _, other := range i.checkout.Manifests {
		if other.Path == name {
			m.Problem = "is named twice"
			return m
		}
	}
	if !isTreePath(name) || name == ".git" || strings.HasPrefix(name, ".git/") {
		m.Problem = "is no path inside the checkout; expected one such as volumes/projects.yaml"
		return m
	}
	e, tracked := i.entries[name]
	switch {
	case !tracked:
		m.Problem = "is not tracked by git at the commit" + i.within(name)
	case e.mode == modeLink:
		m.Problem = "is a symbolic link; expected a regular file"
	case e.mode == modeSubmodule:
		m.Problem = "is a submodule; expected a regular file"
	}
	return m
}

// within says of a path that is not tracked what above it is in the way.
func (i *inspector) within(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		switch i.entries[dir].mode {
		case modeLink:
			return ": " + i.Scanner.name(dir) + " is a symbolic link"
		case modeSubmodule:
			return ": " + i.Scanner.name(dir) + " is a submodule"
		}
	}
	return ""
}
