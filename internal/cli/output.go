package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// checkOutput refuses a format that encode does not know, before anything is
// asked.
func checkOutput(format string) error {
	switch format {
	case "", "json", "yaml":
		return nil
	default:
		return usageError("--output: is %q; expected json or yaml, or nothing for text", format)
	}
}

// encode writes a value as JSON or YAML.
func encode(out io.Writer, format string, value any) error {
	if format == "yaml" {
		text, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("write the answer as YAML: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // what is read by people and jq, and by no browser
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(out, escapeInvisible(text.String()))
	return err
}

// escapeInvisible writes what a terminal would obey, and what turns the order of
// reading around, as JSON can: users write names and selectors. JSON itself asks
// for that only below U+0020, and has other characters in its strings alone.
func escapeInvisible(text string) string {
	var escaped strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			escaped.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	return escaped.String()
}
