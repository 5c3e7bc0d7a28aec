package cli

import (
	"encoding/json"
	"fmt"
	"io"

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
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // what is read by people and jq, and by no browser
	return encoder.Encode(value)
}
