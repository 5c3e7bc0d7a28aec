package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mooring-k8s/mooring/internal/doctor"
)

var sick = diagnosis{
	Provisioner: "mirror.example.com",
	Findings: []doctor.Finding{
		{Check: "references", Level: doctor.Note, Message: "the API server drops references", Remedy: "use the annotation"},
		{Check: "mirrors", Level: doctor.Problem, Object: "pvc/b/m", Message: "Revoked: no longer shared (NotShared)", Remedy: "mooring explain b/m"},
		{Check: "receipts", Level: doctor.Problem, Object: "pv/projects", Message: "spec.nfs.path differs"},
	},
	Unseen:     []string{"controller", "brake"},
	NotVisible: []string{"deployments of all namespaces"},
}

func TestPrintDiagnosis(t *testing.T) {
	var out bytes.Buffer
	if err := printDiagnosis(&out, sick, ""); err != nil {
		t.Fatal(err)
	}
	const want = `note    references: the API server drops references
        → use the annotation
ok      classes
unseen  controller: not all that it looks at is visible to you
ok      rights
ok      policies
ok      fences
ok      drivers
ok      handles
problem mirrors: pvc/b/m: Revoked: no longer shared (NotShared)
        → mooring explain b/m
ok      served
ok      origins
unseen  brake: not all that it looks at is visible to you
problem receipts: pv/projects: spec.nfs.path differs
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for width := 40; width <= 200; width++ {
		t.Setenv("COLUMNS", strconv.Itoa(width))
		out.Reset()
		if err := printDiagnosis(&out, sick, ""); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("wider than %d: %q", width, line)
			}
		}
	}
}

func TestDiagnosisForMachines(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/doctor.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, found := range map[string]diagnosis{"sick": sick, "healthy": {Provisioner: "x", Findings: []doctor.Finding{}}} {
		var out bytes.Buffer
		if err := printDiagnosis(&out, found, "json"); err != nil {
			t.Fatal(err)
		}
		var printed any
		if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(printed); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
	for _, check := range doctor.Checks() {
		found := diagnosis{Provisioner: "x", Findings: []doctor.Finding{{Check: check, Level: doctor.Note, Message: "m"}}}
		data, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		var printed any
		if err := json.Unmarshal(data, &printed); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(printed); err != nil {
			t.Errorf("the schema does not know the check %s: %v", check, err)
		}
	}
	if got := sick.verdict(); got == nil || !strings.Contains(got.Error(), "problems") {
		t.Errorf("ends with %v", got)
	}
}
