package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fvbommel/sortorder"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"

	"github.com/mooring-k8s/mooring/internal/inventory"
)

// sortColumns are the fields behind the names of columns, and behind the paths
// that kubectl's users have in their fingers.
var sortColumns = map[string]string{
	"origin": "origin", "mirror": "namespace", "access": "access", "state": "state", "reason": "reason", "age": "created",
	"namespace": "namespace", "name": "name", "class": "class", "volume": "volume",
	"served-by": "servedBy", "granted-by": "grantedBy", "revoked": "revokedAt",
	"metadata.creationtimestamp": "created", "metadata.name": "name", "metadata.namespace": "namespace",
}

// sortable are the names of columns, as a shell completes them.
func sortable() []string {
	var names []string
	for name := range sortColumns {
		if !strings.HasPrefix(name, "metadata.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sorting returns what brings rows into the order that --sort-by asks for.
func sorting(by string) (func([]inventory.Row), error) {
	if by == "" {
		return func([]inventory.Row) {}, nil // the API server's order
	}
	path := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(by, "{"), "}"), ".")
	if field, known := sortColumns[strings.ToLower(path)]; known {
		path = field
	}
	parser := jsonpath.New("--sort-by")
	if err := parser.Parse("{." + path + "}"); err != nil {
		return nil, usageError("--sort-by: %v", err)
	}
	// A field that no row can have is a mistake; one that a row lacks is empty.
	now := time.Now()
	full := inventory.Row{Origin: "-", Reason: "-", Message: "-", Class: "-", Volume: "-", ServedBy: "-", GrantedBy: "-", RevokedAt: &now}
	if _, err := valueAt(parser, full); err != nil {
		return nil, usageError("--sort-by: %q is neither a column nor a field of -o json (origin, mirror, access, state, reason, age, ...)", by)
	}
	parser.AllowMissingKeys(true)
	return func(rows []inventory.Row) {
		type keyed struct {
			key string
			row inventory.Row
		}
		all := make([]keyed, 0, len(rows))
		for _, row := range rows {
			key, _ := valueAt(parser, row) // it could be read from a full row
			all = append(all, keyed{key, row})
		}
		slices.SortStableFunc(all, func(a, b keyed) int { return compareValues(a.key, b.key) })
		for i := range all {
			rows[i] = all[i].row
		}
	}, nil
}

// compareValues compares times as times, quantities as quantities, and all else
// as kubectl does: numbers in a text by what they count, so that m2 is before
// m10. What a row lacks comes first.
func compareValues(a, b string) int {
	at, aErr := time.Parse(time.RFC3339, a)
	bt, bErr := time.Parse(time.RFC3339, b)
	if aErr == nil && bErr == nil {
		return at.Compare(bt)
	}
	aq, aErr := resource.ParseQuantity(a)
	bq, bErr := resource.ParseQuantity(b)
	if aErr == nil && bErr == nil {
		return aq.Cmp(bq)
	}
	switch {
	case a == b:
		return 0
	case sortorder.NaturalLess(a, b):
		return -1
	}
	return 1
}

// valueAt is the text of one field.
func valueAt(path *jsonpath.JSONPath, row inventory.Row) (string, error) {
	data, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("read a row: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", fmt.Errorf("read a row: %w", err)
	}
	var text bytes.Buffer
	err = path.Execute(&text, fields)
	return text.String(), err
}
