package cli_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/recipe"
	"github.com/mooring-k8s/mooring/internal/retain"
)

func TestDriversTable(t *testing.T) {
	got := mooring(t, "drivers")
	if got.code != 0 || got.err != "" {
		t.Fatalf("exit code %d, %s", got.code, got.err)
	}
	lines := strings.Split(got.out, "\n")
	for i, d := range recipe.Drivers().Describe() {
		line := lines[i+1]
		for _, want := range []string{d.Driver, string(d.Handle), strings.Join(d.ReadOnly, ",")} {
			if !strings.Contains(line, want) {
				t.Errorf("line %d is %q, want %q in it", i+1, line, want)
			}
		}
		if d.Refused != "" && !strings.Contains(line, "refused: ") {
			t.Errorf("%q does not say that the driver is refused", line)
		}
	}
}

func TestDriversForMachines(t *testing.T) {
	want := recipe.Drivers().Describe()
	for _, format := range []string{"json", "yaml"} {
		got := mooring(t, "drivers", "-o", format)
		text, err := []byte(got.out), error(nil)
		if format == "yaml" {
			text, err = yaml.YAMLToJSON(text)
		}
		var read []recipe.Description
		if err != nil || json.Unmarshal(text, &read) != nil || len(read) != len(want) {
			t.Fatalf("%s: %d rows, want %d: %v\n%s", format, len(read), len(want), err, got.out)
		}
		for i := range want {
			if read[i].Driver != want[i].Driver || read[i].Handle != want[i].Handle || read[i].Basis != want[i].Basis {
				t.Errorf("%s: row %d reads %+v, want %+v", format, i, read[i], want[i])
			}
		}
	}
}

func TestOneDriver(t *testing.T) {
	for _, tc := range []struct {
		name, driver string
		says         []string
	}{
		{"known", "nfs.csi.k8s.io", []string{"handle       unique: mirror-<UID>", "read-only    ro,nosharecache", "sets         mountPermissions: 0", "not verified", "csi-driver-nfs"}},
		{"by a vendor's name", "rook-ceph.cephfs.csi.ceph.com", []string{"with         staticVolume: true", "handle       shared: the origin's", "read-only    no\n", "encrypted"}},
		{"refused", "ebs.csi.aws.com", []string{"refused      they are block devices"}},
		{"not in the table", "new.example.com", []string{"new.example.com is not in the table", "attachRequired: false"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := mooring(t, "drivers", tc.driver)
			for _, want := range tc.says {
				if got.code != 0 || !strings.Contains(got.out, want) {
					t.Errorf("exit code %d, want %q in\n%s", got.code, want, got.out)
				}
			}
		})
	}
}

// Nothing that drivers prints is wider than the terminal, but for a word that is.
func TestDriversFitEveryWidth(t *testing.T) {
	for _, width := range []int{40, 41, 57, 80, 120, 200} {
		t.Setenv("COLUMNS", strconv.Itoa(width))
		text := mooring(t, "drivers").out
		for _, d := range recipe.Drivers().Describe() {
			if !strings.Contains(d.Driver, " ") {
				text += mooring(t, "drivers", d.Driver).out
			}
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			words := strings.Fields(line)
			if n := utf8.RuneCountInString(line); n > width && 15+utf8.RuneCountInString(words[len(words)-1]) < width {
				t.Errorf("at %d: a line of %d: %q", width, n, line)
			}
		}
	}
}

func TestDriversUsage(t *testing.T) {
	for _, args := range [][]string{{"drivers", "-o", "xml"}, {"drivers", "a", "b"}} {
		if got := mooring(t, args...); got.code != exit(retain.Usage) {
			t.Errorf("%v: exit code %d, %s", args, got.code, got.err)
		}
	}
}
