package gate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"
	"golang.org/x/text/encoding/unicode"
)

const (
	// window is how much of a file is looked at in one go, overlap how much of it is
	// looked at again with what follows: longer than any key that is in use.
	window  = 512 << 10
	overlap = 16 << 10
	// maxText is how much of a manifest is kept, to be read as one.
	maxText = 256 << 10
	// maxFindings is how many findings of one file are counted.
	maxFindings = 200
	// maxDecode is how many layers of base64 and the like are taken off.
	maxDecode = 3
	// allowComment is gitleaks' own, on the line that it accepts.
	allowComment = "gitleaks:allow"
)

// Scanner looks for what a calling repository must not hold. What it returns never
// holds a secret.
type Scanner struct {
	detector *detect.Detector
	// checkVolume says what is wrong with a manifest as a retained volume.
	checkVolume func([]byte) string
}

// NewScanner returns a scanner with gitleaks' default rules. checkVolume may be nil:
// then volumes are not looked at.
func NewScanner(checkVolume func([]byte) string) (*Scanner, error) {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, fmt.Errorf("read the default rules of gitleaks: %w", err)
	}
	d.MaxDecodeDepth = maxDecode
	d.IgnoreGitleaksAllow = true // counted, and so seen here
	return &Scanner{detector: d, checkVolume: checkVolume}, nil
}

// With returns a scanner with the same rules that asks another about volumes.
func (s *Scanner) With(checkVolume func([]byte) string) *Scanner {
	return &Scanner{detector: s.detector, checkVolume: checkVolume}
}

// Result is what was found in one file.
type Result struct {
	Findings []Finding
	Allowed  int
	// Text is the file's content, up to maxText and one byte more; nil for a binary
	// file.
	Text []byte
}

// name returns a path as it can be printed: on one line, and not if it holds a
// secret itself.
func (s *Scanner) name(file string) string {
	if s == nil || len(s.detector.DetectString(file)) == 0 {
		return shown(file)
	}
	sum := sha256.Sum256([]byte(file))
	return "(a name that looks like a secret; SHA-256 of the path " + hex.EncodeToString(sum[:4]) + "…)"
}

// fragment is a text as gitleaks takes it.
type fragment = detect.Fragment //nolint:staticcheck // deprecated for version 9, which is not there yet

func (s *Scanner) detect(ctx context.Context, f fragment) []report.Finding {
	return s.detector.DetectContext(ctx, f)
}

// Name looks at the name of a file.
func (s *Scanner) Name(ctx context.Context, file string) []Finding {
	var findings []Finding
	for _, f := range s.detect(ctx, fragment{Raw: file}) {
		findings = append(findings, Finding{Rule: f.RuleID, Path: s.name(file), Says: "the file's name looks like a secret"})
	}
	switch strings.ToLower(path.Ext(file)) {
	case ".jks", ".keystore", ".p12", ".pfx", ".ppk":
		findings = append(findings, Finding{Rule: "key-store", Path: s.name(file), Says: "a store of private keys"})
	}
	return findings
}

// File reads r to its end, in bounded memory.
func (s *Scanner) File(ctx context.Context, file string, r io.Reader) (Result, error) {
	run := &fileScan{Scanner: s, file: file, isManifest: isManifestName(file), line: 1}
	head := make([]byte, 8000) // as much as git looks at
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Result{}, err
	}
	head = head[:n]
	whole := io.MultiReader(bytes.NewReader(head), r)
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		utf16 := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
		err = run.windows(ctx, utf16.Reader(whole))
	case bytes.IndexByte(head, 0) >= 0:
		run.binary = true
		err = run.windows(ctx, whole)
	default:
		err = run.windows(ctx, whole)
	}
	if err != nil {
		return Result{}, err
	}
	// What a decoder left belongs to the file's digest too.
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return Result{}, err
	}
	run.end()
	return run.result, nil
}

func isManifestName(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(file)))
}

// fileScan is the scan of one file.
type fileScan struct {
	*Scanner
	file       string
	shown      string // the file's name as it can be printed, once something was found
	binary     bool
	isManifest bool
	line       int // of the window's first byte
	kubeconfig kubeconfigSigns
	volume     bool // something in it says that it is a PersistentVolume
	result     Result
	seen       map[Finding]bool
}

func (f *fileScan) windows(ctx context.Context, r io.Reader) error {
	buffer := make([]byte, 0, window)
	for {
		if ctx.Err() != nil {
			return errors.New("it took too long")
		}
		n, err := io.ReadFull(r, buffer[len(buffer):window])
		buffer = buffer[:len(buffer)+n]
		f.look(ctx, buffer)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		done := len(buffer) - overlap
		f.line += bytes.Count(buffer[:done], []byte{'\n'})
		buffer = buffer[:copy(buffer, buffer[done:])]
	}
}

// look looks at one window.
func (f *fileScan) look(ctx context.Context, data []byte) {
	for _, at := range privateKeys(data) {
		f.add(Finding{Rule: "private-key", Line: f.line + bytes.Count(data[:at], []byte{'\n'}), Says: "a private key"})
	}
	if f.binary {
		return
	}
	f.kubeconfig.look(data)
	f.volume = f.volume || f.isManifest && bytes.Contains(data, []byte("PersistentVolume")) && saysVolume.Match(data)
	if free := maxText + 1 - len(f.result.Text); free > 0 {
		rest := data
		if len(f.result.Text) > 0 {
			rest = data[min(overlap, len(data)):]
		}
		f.result.Text = append(f.result.Text, rest[:min(free, len(rest))]...)
	}
	for _, found := range f.detect(ctx, fragment{Raw: string(data), FilePath: f.file, StartLine: f.line}) {
		if strings.Contains(found.Line, allowComment) {
			f.result.Allowed++
			continue
		}
		f.add(Finding{Rule: found.RuleID, Line: found.StartLine, Says: "looks like a secret"})
	}
}

// add records a finding, once per rule and line.
func (f *fileScan) add(finding Finding) {
	if len(f.result.Findings) >= maxFindings {
		return // more say nothing more, and a file of secrets must not fill the memory
	}
	if f.seen == nil {
		f.seen, f.shown = map[Finding]bool{}, f.name(f.file)
	}
	finding.Path = f.shown
	if f.seen[finding] {
		return
	}
	f.seen[finding] = true
	f.result.Findings = append(f.result.Findings, finding)
}

// end judges the file as a whole.
func (f *fileScan) end() {
	if f.kubeconfig.all() {
		f.add(Finding{Rule: "kubeconfig", Says: "a kubeconfig"})
	}
	if !f.volume || f.checkVolume == nil {
		return
	}
	if problem := f.checkVolume(f.result.Text); problem != "" {
		f.add(Finding{Rule: "volume", Says: "holds a PersistentVolume that is no acceptable retained volume; mooring retain check says why"})
	}
}
