package recipe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

func TestDescribe(t *testing.T) {
	rows, all := recipe.Drivers(), recipe.Drivers().Describe()
	if len(all) != len(rows) {
		t.Fatalf("%d rows, %d descriptions", len(rows), len(all))
	}
	for i, d := range all {
		if d.Driver != rows[i].Name || d.Mirrored != (rows[i].Refused == "") || (len(d.ReadOnly) > 0) != (rows[i].ReadOnly != nil) {
			t.Errorf("%s is described as %+v", rows[i].Name, d)
		}
		if len(d.Refuses) != len(rows[i].Refusals) {
			t.Errorf("%s refuses %d kinds, described are %v", d.Driver, len(rows[i].Refusals), d.Refuses)
		}
		text, err := json.Marshal(d)
		if err != nil || !strings.Contains(string(text), `"driver":"`+d.Driver+`"`) {
			t.Errorf("%s: %s %v", d.Driver, text, err)
		}
	}
}

func TestDescribeDriver(t *testing.T) {
	for name, rows := range map[string]int{
		"nfs.csi.k8s.io": 1, "rook-ceph.cephfs.csi.ceph.com": 2, "file.csi.azure.com": 2, "openshift-storage.rbd.csi.ceph.com": 1,
		"x.nfs.csi.k8s.io": 0, "new.example.com": 0, "": 0,
	} {
		if got := recipe.Drivers().DescribeDriver(name); len(got) != rows {
			t.Errorf("%q: %d rows, want %d", name, len(got), rows)
		}
	}
}

func TestRefusalsSayWhichVolumes(t *testing.T) {
	for want, refusal := range map[string]recipe.Refusal{
		"attribute encrypted: true, t, 1: why": {Attribute: "encrypted", Values: []string{"true", "t", "1"}, Why: "why"},
		"attribute diskName: why":              {Attribute: "diskName", Why: "why"},
		"mount option sec=krb5…: why":          {Option: "sec=krb5", Why: "why"},
		"a handle with multi: why":             {InHandle: "multi", Why: "why"},
	} {
		if got := refusal.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
