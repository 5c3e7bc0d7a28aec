package recipe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

// check returns what is wrong with a table's answers to a case; nothing, for
// the right table. It is a function of the table so that it can be asked about
// wrong ones.
func check(table recipe.Table, tc kase) []string {
	var wrong []string
	for _, readOnly := range []bool{false, true} {
		request := recipe.Request{Origin: tc.origin.DeepCopy(), ClaimUID: uid, ReadOnly: readOnly, Driver: tc.driver}
		got := table.Make(request)
		want, says, outcome := tc.write.mirrorOf, tc.writeSays, tc.outcome
		if readOnly {
			want = tc.read.mirrorOf
			if tc.readSays != "" {
				says, outcome = tc.readSays, tc.readOutcome
			}
		}
		if diff := cmp.Diff(request.Origin, tc.origin); diff != "" {
			wrong = append(wrong, "the origin was changed: "+diff)
		}
		if says != "" {
			if got.Outcome != outcome || !strings.Contains(got.Detail, says) || got.Source.CSI != nil || got.Source.NFS != nil {
				wrong = append(wrong, fmt.Sprintf("read-only %v: got outcome %d %q, want %d with %q", readOnly, got.Outcome, got.Detail, outcome, says))
			}
			continue
		}
		ignore := []cmp.Option{cmpopts.IgnoreFields(recipe.Mirror{}, "Limits"), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(want(tc.origin, readOnly), got, ignore...); diff != "" {
			wrong = append(wrong, fmt.Sprintf("read-only %v (-want +got) %s\n%s", readOnly, got.Detail, diff))
		}
		if tells := strings.Contains(got.Limits, "two volumes of one origin"); tells != got.SharedHandle {
			wrong = append(wrong, fmt.Sprintf("shared handle %v, and the limits are told as %q", got.SharedHandle, got.Limits))
		}
		nfs := slices.Contains(strings.Split(strings.Join(got.MountOptions, ","), ","), "nosharecache")
		if tells := strings.Contains(got.Limits, "read-only export"); tells != (nfs && readOnly) {
			wrong = append(wrong, fmt.Sprintf("NFS %v, read-only %v, and the limits are told as %q", nfs, readOnly, got.Limits))
		}
	}
	return wrong
}

func TestEveryRecipe(t *testing.T) {
	names := map[string]bool{}
	for _, tc := range cases() {
		if names[tc.name] {
			t.Errorf("two cases are called %q", tc.name)
		}
		names[tc.name] = true
		t.Run(tc.name, func(t *testing.T) {
			for _, wrong := range check(recipe.Drivers(), tc) {
				t.Error(wrong)
			}
		})
	}
}

func TestUnknownDriversCanBeRefused(t *testing.T) {
	request := recipe.Request{Origin: static("new.example.com", "x", nil, nil), ClaimUID: uid, Driver: csiDriver("new.example.com", ptr(false)), RefuseUnknown: true}
	if got := recipe.Make(request); got.Outcome != recipe.DriverUnknown || !strings.Contains(got.Detail, "--unknown-drivers=refuse") {
		t.Errorf("got outcome %d %q", got.Outcome, got.Detail)
	}
	// Those that the table knows are not unknown.
	request.Origin = static("s3.csi.aws.com", "x", attrs{"bucketName": "b"}, nil)
	if got := recipe.Make(request); got.Outcome != recipe.Made {
		t.Errorf("got outcome %d %q", got.Outcome, got.Detail)
	}
}

func TestAnEmptyTableMakesNothing(t *testing.T) {
	for _, tc := range cases() {
		for _, table := range []recipe.Table{nil, {{Name: "nfs.csi.k8s.io"}, {Name: recipe.InTreeNFS}}} {
			got := table.Make(recipe.Request{Origin: tc.origin, ClaimUID: uid, Driver: tc.driver})
			if got.Outcome == recipe.Made {
				t.Errorf("%s: a recipe without a handle rule made %v", tc.name, got)
			}
		}
	}
	if zero := (recipe.Mirror{}); zero.Outcome != recipe.Refused {
		t.Error("the zero mirror is not refused")
	}
}

// What every row must have, whatever the driver.
func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range recipe.Drivers() {
		key := row.Name + fmt.Sprint(row.When)
		if seen[key] {
			t.Errorf("two rows for %s", key)
		}
		seen[key] = true
		if row.Basis == "" {
			t.Errorf("%s: names no source", key)
		}
		if row.Refused != "" {
			if row.Handle.Kind != "" || row.ReadOnly != nil {
				t.Errorf("%s: refused, and mirrored after all", key)
			}
			continue
		}
		if row.Stages && row.Handle.Kind == recipe.UniqueHandle && len(row.Unshare) == 0 {
			t.Errorf("%s stages and its mirrors share the origin's superblock: neither would ever be unstaged", key)
		}
		if row.Handle.Kind == recipe.SharedHandle && (row.ReadOnly != nil || len(row.Set)+len(row.Drop)+len(row.Unshare) > 0) {
			t.Errorf("%s: a mirror with the origin's handle must carry the origin's options and attributes: the first that is mounted serves both", key)
		}
		if row.ReadOnly != nil && len(row.Unverified) == 0 {
			t.Errorf("%s: nobody has run its read-only mount, and that is not said", key)
		}
	}
}
