package gate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxOwnersBytes is far more than any list of people who may do this needs.
	maxOwnersBytes = 64 << 10
	maxShownName   = 200
)

// ParseOwners reads a list of owners: one account a line, # begins a comment.
func ParseOwners(data []byte) ([]string, error) {
	if len(data) > maxOwnersBytes {
		return nil, fmt.Errorf("the list of owners has %d bytes; expected at most %d", len(data), maxOwnersBytes)
	}
	var owners []string
	for i, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.ContainsFunc(line, notOfAnAccount) {
			return nil, fmt.Errorf("line %d of the list of owners is %s; expected the name of one account, without @", i+1, shown(line))
		}
		owners = append(owners, line)
	}
	if len(owners) == 0 {
		return nil, fmt.Errorf("the list of owners names nobody; expected one account a line")
	}
	return owners, nil
}

func notOfAnAccount(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("-_.[]", r) // brackets: bot accounts
}

// sameAccount compares names as the forges do: without case, in ASCII, so that no
// letter that merely looks alike is taken for another.
func sameAccount(a, b string) bool {
	return a != "" && lowerASCII(a) == lowerASCII(b)
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// shown returns a name as it can be printed on one line.
func shown(name string) string {
	if len(name) > maxShownName {
		name = name[:maxShownName] + "…"
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == '"' || r == unicode.ReplacementChar }) {
		return strconv.QuoteToASCII(name)
	}
	return name
}
