package receipt_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// full returns a receipt with every field set, of the given action and outcome.
func full(action string, outcome receipt.Outcome) receipt.Receipt {
	manifest := map[string]any{"kind": "PersistentVolume", "metadata": map[string]any{"name": "v"}}
	some := receipt.Digest("some")
	r := receipt.Receipt{
		Action: action, Outcome: outcome, Reason: "some-reason", Message: "why",
		Tool:        receipt.Tool{Name: "mooring", Version: "v1"},
		Cluster:     &receipt.Cluster{UID: "u", CADigest: some, Server: "https://s", Version: "v1.37.2"},
		Caller:      &receipt.Caller{Username: "me", UID: "u", Groups: []string{"g"}},
		Permissions: &receipt.Permissions{Denied: []string{"d"}, Excess: []string{"e"}, ExcessAllowed: true, Scope: "s"},
		Volumes: []receipt.Volume{{
			Manifest: manifest, FileDigest: some, Outcome: outcome, Reason: "some-reason", Message: "why",
			Planned: receipt.Planned{
				Name: "v", ManifestDigest: receipt.Digest(manifest), Action: "create", Reason: "some-reason",
				Claim:    receipt.Claim{Namespace: "n", Name: "c", Present: true, UID: "u", VolumeName: "v", Phase: "Pending", SpecDigest: some},
				Backends: []string{"nfs://s/x"}, AllowedOverlaps: []string{"o"}, Mirrors: []string{"m"}, LiveUID: "u", DryRunDigest: some,
			},
			Live:          &receipt.Live{UID: "u", ResourceVersion: "1", Phase: "Available", Digest: some, ClaimUID: "u"},
			OtherMetadata: []string{"label x"},
		}},
		Approval:  &receipt.Approval{Kind: "preview", PlanDigest: some, PreviewFinishedAt: "2026-01-01T00:00:00Z"},
		StartedAt: "2026-01-01T00:00:00Z", FinishedAt: "2026-01-01T00:00:01Z", Notes: []string{"n"},
	}
	r.PlanDigest = r.ComputePlanDigest()
	return r
}

func TestRoundTrip(t *testing.T) {
	for _, outcome := range []receipt.Outcome{receipt.Intended, receipt.Unknown, receipt.Refused, receipt.Unchanged, receipt.Created, receipt.NeedsReview, receipt.NotReached} {
		want := full("create", outcome)
		data, err := receipt.Encode(want)
		if err != nil {
			t.Fatalf("%s: %v", outcome, err)
		}
		got, err := receipt.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", outcome, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", outcome, diff)
		}
	}
}

// Each row damages a good receipt in one place.
func TestDecodeRefuses(t *testing.T) {
	good, err := receipt.Encode(full("create", receipt.Created))
	if err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	predicate := func(s object) object { return s["predicate"].(object) }
	volume := func(s object) object { return predicate(s)["volumes"].([]any)[0].(object) }
	for _, tc := range []struct {
		name   string
		damage func(statement object)
		want   string
	}{
		{"other statement type", func(s object) { s["_type"] = "https://in-toto.io/Statement/v0.1" }, "/_type"},
		{"other predicate type", func(s object) { s["predicateType"] = "x" }, "/predicateType"},
		{"no subject", func(s object) { s["subject"] = []any{} }, "/subject"},
		{"subject of another digest", func(s object) {
			s["subject"].([]any)[0].(object)["digest"].(object)["sha256"] = strings.Repeat("0", 64)
		}, "subject[0]"},
		{"subject of another name", func(s object) { s["subject"].([]any)[0].(object)["name"] = "persistentvolumes/w" }, "subject[0]"},
		{"one subject too many", func(s object) { s["subject"] = append(s["subject"].([]any), s["subject"].([]any)[0]) }, "2 entries for 1 volumes"},
		{"manifest changed", func(s object) { volume(s)["manifest"].(object)["kind"] = "x" }, "manifestDigest"},
		{"plan changed", func(s object) { volume(s)["planned"].(object)["action"] = "unchanged" }, "planDigest"},
		{"cluster changed", func(s object) { predicate(s)["cluster"].(object)["uid"] = "other" }, "planDigest"},
		{"unknown field", func(s object) { predicate(s)["x"] = "y" }, "additional properties"},
		{"unknown outcome", func(s object) { predicate(s)["outcome"] = "fine" }, "/predicate/outcome"},
		{"no outcome", func(s object) { delete(predicate(s), "outcome") }, "outcome"},
		{"created without cluster", func(s object) { delete(predicate(s), "cluster") }, "cluster"},
		{"created without approval", func(s object) { delete(predicate(s), "approval") }, "approval"},
		{"created by a preview", func(s object) { predicate(s)["action"] = "preview" }, "/predicate/action"},
		{"time not in UTC", func(s object) { predicate(s)["startedAt"] = "2026-01-01T00:00:00+01:00" }, "startedAt"},
		{"no time", func(s object) { predicate(s)["finishedAt"] = "yesterdayZ" }, "finishedAt"},
		{"approval without digest", func(s object) { delete(predicate(s)["approval"].(object), "planDigest") }, "planDigest"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var statement object
			if err := json.Unmarshal(good, &statement); err != nil {
				t.Fatal(err)
			}
			tc.damage(statement)
			data, err := json.Marshal(statement)
			if err != nil {
				t.Fatal(err)
			}
			_, err = receipt.Decode(data)
			if !errors.Is(err, receipt.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v; want a refusal with %q", err, tc.want)
			}
		})
	}
	for name, data := range map[string]string{
		"empty": " \n", "no JSON": "{", "a list": "[]", "cut off": string(good[:len(good)/2]), "two": string(good) + string(good),
		"a field of the predicate twice": strings.Replace(string(good), `"action": "create"`, `"action": "preview", "action": "create"`, 1),
		"a field twice":                  strings.Replace(string(good), `"predicateType"`, `"predicateType": "x", "predicateType"`, 1),
	} {
		if _, err := receipt.Decode([]byte(data)); !errors.Is(err, receipt.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The digest is that of the situation: the same for every caller, time and
// address, another for each change.
func TestPlanDigest(t *testing.T) {
	base := full("create", receipt.Created).PlanDigest
	same := map[string]func(r *receipt.Receipt){
		"action":   func(r *receipt.Receipt) { r.Action = "preview" },
		"outcome":  func(r *receipt.Receipt) { r.Outcome = receipt.Refused; r.Volumes[0].Outcome = receipt.Refused },
		"caller":   func(r *receipt.Receipt) { r.Caller.Username = "you" },
		"times":    func(r *receipt.Receipt) { r.StartedAt, r.FinishedAt = "x", "y" },
		"server":   func(r *receipt.Receipt) { r.Cluster.Server = "https://other" },
		"version":  func(r *receipt.Receipt) { r.Cluster.Version = "v1.38.0" },
		"live":     func(r *receipt.Receipt) { r.Volumes[0].Live.ResourceVersion = "2" },
		"approval": func(r *receipt.Receipt) { r.Approval = nil },
	}
	for name, change := range same {
		r := full("create", receipt.Created)
		change(&r)
		if r.ComputePlanDigest() != base {
			t.Errorf("%s changes the plan digest", name)
		}
	}
	seen := map[string]string{base: "the base case"}
	for name, change := range map[string]func(p *receipt.Planned, r *receipt.Receipt){
		"cluster":      func(_ *receipt.Planned, r *receipt.Receipt) { r.Cluster.UID = "other" },
		"authority":    func(_ *receipt.Planned, r *receipt.Receipt) { r.Cluster.CADigest = "other" },
		"name":         func(p *receipt.Planned, _ *receipt.Receipt) { p.Name = "other" },
		"manifest":     func(p *receipt.Planned, _ *receipt.Receipt) { p.ManifestDigest = "other" },
		"action":       func(p *receipt.Planned, _ *receipt.Receipt) { p.Action = "other" },
		"reason":       func(p *receipt.Planned, _ *receipt.Receipt) { p.Reason = "other" },
		"backends":     func(p *receipt.Planned, _ *receipt.Receipt) { p.Backends = []string{"other"} },
		"overlaps":     func(p *receipt.Planned, _ *receipt.Receipt) { p.AllowedOverlaps = nil },
		"mirrors":      func(p *receipt.Planned, _ *receipt.Receipt) { p.Mirrors = nil },
		"live UID":     func(p *receipt.Planned, _ *receipt.Receipt) { p.LiveUID = "other" },
		"dry run":      func(p *receipt.Planned, _ *receipt.Receipt) { p.DryRunDigest = "other" },
		"claim ns":     func(p *receipt.Planned, _ *receipt.Receipt) { p.Claim.Namespace = "other" },
		"claim name":   func(p *receipt.Planned, _ *receipt.Receipt) { p.Claim.Name = "other" },
		"claim gone":   func(p *receipt.Planned, _ *receipt.Receipt) { p.Claim.Present = false },
		"claim UID":    func(p *receipt.Planned, _ *receipt.Receipt) { p.Claim.UID = "other" },
		"claim volume": func(p *receipt.Planned, _ *receipt.Receipt) { p.Claim.VolumeName = "other" },
		"claim phase":  func(p *receipt.Planned, _ *receipt.Receipt) { p.Claim.Phase = "other" },
		"claim spec":   func(p *receipt.Planned, _ *receipt.Receipt) { p.Claim.SpecDigest = "other" },
		"one more":     func(_ *receipt.Planned, r *receipt.Receipt) { r.Volumes = append(r.Volumes, r.Volumes[0]) },
	} {
		r := full("create", receipt.Created)
		change(&r.Volumes[0].Planned, &r)
		digest := r.ComputePlanDigest()
		if earlier, taken := seen[digest]; taken {
			t.Errorf("%s has the plan digest of %s", name, earlier)
		}
		seen[digest] = name
	}
}

// The published schema is the one that receipts are checked by, and has every
// field of the type.
func TestSchemaIsPublishedAndComplete(t *testing.T) {
	published, err := os.ReadFile("../../docs/receipt.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(published) != string(receipt.Schema) {
		t.Error("docs/receipt.schema.json is stale: run go generate ./internal/receipt")
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(receipt.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for name, typ := range map[string]reflect.Type{
		"receipt": reflect.TypeFor[receipt.Receipt](), "volume": reflect.TypeFor[receipt.Volume](),
		"planned": reflect.TypeFor[receipt.Planned](), "claim": reflect.TypeFor[receipt.Claim](), "live": reflect.TypeFor[receipt.Live](),
	} {
		var fields, properties []string
		for i := range typ.NumField() {
			field, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			fields = append(fields, field)
		}
		for property := range schema.Defs[name].Properties {
			properties = append(properties, property)
		}
		slices.Sort(fields)
		slices.Sort(properties)
		if diff := cmp.Diff(fields, properties); diff != "" {
			t.Errorf("%s: fields and schema differ: %s", name, diff)
		}
	}
}

func FuzzDecode(f *testing.F) {
	good, err := receipt.Encode(full("create", receipt.Created))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := receipt.Decode(data)
		if err != nil {
			return
		}
		if r.Outcome == "" || len(r.Volumes) == 0 {
			t.Fatalf("accepted without an outcome or volumes: %+v", r)
		}
		if _, err := receipt.Encode(r); err != nil {
			t.Fatalf("accepted, but cannot be written again: %v", err)
		}
	})
}
