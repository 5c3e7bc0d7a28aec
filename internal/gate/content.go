package gate

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's own name of an object; what is compared came from git
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
)

// regular compares a file's bytes with those that the commit names, and scans them.
func (i *inspector) regular(ctx context.Context, e entry, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		i.changed(e.path, "no regular file any more")
		return nil
	}
	f, err := i.root.Open(filepath.FromSlash(e.path))
	if err != nil {
		i.changed(e.path, "cannot be read")
		return nil
	}
	defer func() { _ = f.Close() }() // opened for reading
	object, content, ends := newObject("blob", len(e.oid), info.Size()), sha256.New(), &lineEnds{}
	counted := &counter{Reader: io.TeeReader(f, io.MultiWriter(object, content, ends))}
	result, err := i.Scanner.File(ctx, e.path, counted)
	i.scan.Bytes += counted.n
	if err != nil {
		return fmt.Errorf("%s: %w", i.Scanner.name(e.path), err)
	}
	i.found(result.Findings)
	i.scan.Allowed += result.Allowed
	asStored := hex.EncodeToString(object.Sum(nil)) == e.oid
	if !asStored && !sameButLineEnds(f, e.oid, info.Size()-ends.pairs) {
		i.changed(e.path, "other content")
	} else if (info.Mode()&0o111 != 0) != (e.mode == modeExecutable) {
		i.changed(e.path, "other mode")
	}
	i.content(e.path, "sha256:"+hex.EncodeToString(content.Sum(nil)), result.Text, asStored)
	return nil
}

// content judges what a manifest of the run holds.
func (i *inspector) content(name, digest string, text []byte, asStored bool) {
	for n := range i.checkout.Manifests {
		m := &i.checkout.Manifests[n]
		switch {
		case m.Path != name || m.Problem != "":
		case !asStored:
			m.Problem = "is not byte for byte what git stores; expected no conversion by .gitattributes"
		default:
			m.Digest, m.Problem = digest, i.CheckVolume(text)
		}
	}
}

// sameButLineEnds says whether f is what git stores by that name, but for the line
// ends that .gitattributes ask for. No other conversion is accepted, and git is not
// asked for any: programs of the repository's settings would make them, and what git
// stores would then be another text than the one that was scanned.
func sameButLineEnds(f io.ReadSeeker, oid string, size int64) bool {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false
	}
	w := &unixLineEnds{Hash: newObject("blob", len(oid), size)}
	if _, err := io.Copy(w, f); err != nil {
		return false
	}
	return hex.EncodeToString(w.Sum(nil)) == oid
}

// lineEnds counts CR LF.
type lineEnds struct {
	pairs int64
	cr    bool // the last byte was one
}

func (l *lineEnds) Write(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	if l.cr && data[0] == '\n' {
		l.pairs++
	}
	l.pairs += int64(bytes.Count(data, []byte("\r\n")))
	l.cr = data[len(data)-1] == '\r'
	return len(data), nil
}

// unixLineEnds hashes LF for CR LF.
type unixLineEnds struct {
	hash.Hash
	cr bool // the last byte was one, and is not hashed yet
}

func (u *unixLineEnds) Write(data []byte) (int, error) {
	text := make([]byte, 0, len(data)+1)
	for _, b := range data {
		if u.cr && b != '\n' {
			text = append(text, '\r')
		}
		if u.cr = b == '\r'; !u.cr {
			text = append(text, b)
		}
	}
	_, _ = u.Hash.Write(text) // a hash takes everything
	return len(data), nil
}

func (u *unixLineEnds) Sum(b []byte) []byte {
	if u.cr {
		_, _ = u.Hash.Write([]byte{'\r'}) // as above
		u.cr = false
	}
	return u.Hash.Sum(b)
}

// newObject returns the hash that names an object of that kind and size, in the
// repository's object format.
func newObject(kind string, nameLength int, size int64) hash.Hash {
	var h hash.Hash
	if nameLength == 64 {
		h = sha256.New()
	} else {
		h = sha1.New() //nolint:gosec // as above
	}
	_, _ = fmt.Fprintf(h, "%s %d\x00", kind, size) // as above
	return h
}

// counter counts what is read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
