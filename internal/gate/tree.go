package gate

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// maxCommit is the longest commit that is read: its message is in it.
const maxCommit = 16 << 20

// modeTree is a directory's.
const modeTree = "040000"

// files returns what commit holds. Git reads it from files that somebody who was
// there before may have written, and does not see whether each object is what its
// name says; so the list is proved by the commit's own name.
func (r repository) files(ctx context.Context, commit string) ([]entry, error) {
	object, err := r.git(ctx, maxCommit, "cat-file", "commit", commit)
	if err != nil {
		return nil, err
	}
	out, err := r.git(ctx, maxTree, "ls-tree", "-r", "-t", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	listed, err := parseTree(string(out))
	if err != nil {
		return nil, err
	}
	return proved(commit, object, listed)
}

// parseTree reads what git ls-tree prints.
func parseTree(out string) ([]entry, error) {
	var entries []entry
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if line == "" {
			continue
		}
		fields, name, ok := strings.Cut(line, "\t")
		parts := strings.Fields(fields)
		if !ok || len(parts) != 3 {
			return nil, fmt.Errorf("git ls-tree printed %s; expected mode, type, object and path", strconv.Quote(line))
		}
		entries = append(entries, entry{mode: parts[0], oid: parts[2], path: name})
	}
	return entries, nil
}

// proved returns the files of the list, if its trees are those that the commit names,
// each by the hash of what it holds.
func proved(commit string, object []byte, listed []entry) ([]entry, error) {
	if nameOf("commit", object, len(commit)) != commit {
		return nil, fmt.Errorf("the commit %s is not what its name stands for; expected a repository as git writes it: check it out anew", commit)
	}
	first, _, _ := bytes.Cut(object, []byte{'\n'})
	trees := []entry{{mode: modeTree, oid: strings.TrimPrefix(string(first), "tree "), path: "."}}
	var files []entry
	held := map[string]*bytes.Buffer{".": {}}
	for _, e := range listed {
		if e.mode == modeTree {
			trees, held[e.path] = append(trees, e), &bytes.Buffer{}
		} else {
			files = append(files, e)
		}
		oid, err := hex.DecodeString(e.oid)
		in := held[path.Dir(e.path)]
		if err != nil || in == nil {
			return nil, fmt.Errorf("git ls-tree printed %s, which is in no directory that it printed before", shown(e.path))
		}
		fmt.Fprintf(in, "%s %s\x00%s", strings.TrimPrefix(e.mode, "0"), path.Base(e.path), oid)
	}
	for _, tree := range trees {
		if nameOf("tree", held[tree.path].Bytes(), len(commit)) != tree.oid {
			return nil, fmt.Errorf("the directory %s of the commit is not what its name %s stands for; expected a repository as git writes it: check it out anew", shown(tree.path), shown(tree.oid))
		}
	}
	return files, nil
}

// nameOf returns the name that git gives an object.
func nameOf(kind string, data []byte, nameLength int) string {
	h := newObject(kind, nameLength, int64(len(data)))
	_, _ = h.Write(data) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}
