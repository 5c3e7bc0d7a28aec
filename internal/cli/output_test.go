package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// Whatever a user has written somewhere, JSON shows it without doing it, and means
// the same; and text for people does not have it.
func TestNothingInvisibleIsPrinted(t *testing.T) {
	for r := range rune(0x3100) {
		if unicode.IsPrint(r) {
			continue
		}
		text := "a" + string(r) + "b \U000e0001\u00e9"
		var out strings.Builder
		if err := encode(&out, "json", map[string]string{"selector": text}); err != nil {
			t.Fatal(err)
		}
		for _, shown := range out.String() {
			if shown != '\n' && !unicode.IsPrint(shown) {
				t.Fatalf("%U is printed as it is: %q", shown, out.String())
			}
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["selector"] != text {
			t.Fatalf("%U: %q is read back as %q (%v)", r, out.String(), back["selector"], err)
		}
	}
	for _, r := range []rune{0x1b, 0x9b, 0x202e, 0x2066, 0x200b, 0xfeff, 0x2028, 0x2029, '\r', 0} {
		if got := printable("a" + string(r)); got != "a\ufffd" {
			t.Errorf("%U is printed as %q", r, got)
		}
	}
}
