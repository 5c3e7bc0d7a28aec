package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is one file of an archive, or a symbolic link.
type entry struct {
	name    string
	content []byte
	program bool
	link    string
}

// pack writes a compressed archive whose every byte follows from the entries and
// the date: sorted, of root, with one mode for files and one for programs.
func pack(entries []entry, date time.Time) ([]byte, error) {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	var out bytes.Buffer
	zipper, err := gzip.NewWriterLevel(&out, gzip.BestCompression) // its header has no time and no name
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zipper)
	for _, e := range sorted {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: 0o644, ModTime: date, Format: tar.FormatUSTAR}
		switch {
		case e.link != "":
			header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.link, 0o777
		case e.program:
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipper.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// publish writes one file of the release.
func (r release) publish(name string, content []byte) error {
	fmt.Println("release:", name)
	return os.WriteFile(filepath.Join(r.dist, name), content, 0o644) //nolint:gosec // what is published may be read
}

// checksums writes the digests of everything in the directory, in the form that
// sha256sum checks.
func checksums(dir string) error {
	files, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), file.Name())
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644) //nolint:gosec // what is published may be read
}
