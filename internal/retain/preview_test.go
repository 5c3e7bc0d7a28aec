package retain

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// plane is a cluster without volumes, whose dry runs return what they are given.
type plane struct {
	cluster
	reviewer
	neighbours []*corev1.PersistentVolume
	dryRun     error
}

func (p *plane) Volumes(_ context.Context, visit func(*corev1.PersistentVolume)) error {
	for _, pv := range p.neighbours {
		visit(pv)
	}
	return nil
}

func (p *plane) DryRunCreate(_ context.Context, volume map[string]any) (map[string]any, error) {
	return volume, p.dryRun
}

func (*plane) CreateVolume(context.Context, map[string]any) (map[string]any, error) {
	return nil, errors.New("a preview creates")
}

func at(t *testing.T, name, path string) Manifest {
	o := set(set(nfsManifest(), "metadata/name", name), "spec/nfs/path", path)
	return parsed(t, set(o, "spec/claimRef/name", name))
}

// What was approved is an overlap with a place, not with whatever has that name.
func TestDigestCoversTheOverlap(t *testing.T) {
	digestBeside := func(path string) string {
		p := &plane{neighbours: []*corev1.PersistentVolume{at(t, "other", path).Volume}}
		record, err := Preview(t.Context(), p, []Manifest{at(t, "v", "/export/v")}, Options{AllowOverlap: []string{"other"}})
		if err != nil {
			t.Fatal(err)
		}
		return record.PlanDigest
	}
	below, elsewhere, above := digestBeside("/export/v/a"), digestBeside("/export/v/b"), digestBeside("/export")
	if below == elsewhere || below == above || below != digestBeside("/export/v/a") {
		t.Errorf("got %s, %s, %s", below, elsewhere, above)
	}
}

// Volumes of one run are neighbours of each other: both must be named, so that
// the same command finds them unchanged afterwards, and both are recorded.
func TestOverlapWithinARun(t *testing.T) {
	manifests := []Manifest{at(t, "a", "/export/a"), at(t, "b", "/export/a/b")}
	for _, allowed := range [][]string{nil, {"a"}, {"b"}} {
		if _, err := Preview(t.Context(), &plane{}, manifests, Options{AllowOverlap: allowed}); err == nil || ReasonOf(err) != BackendNested {
			t.Errorf("allowed %q: got %v", allowed, err)
		}
	}
	record, err := Preview(t.Context(), &plane{}, manifests, Options{AllowOverlap: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"b at nfs://nas.example.com/export/a/b"}, {"a at nfs://nas.example.com/export/a"}}
	for i, v := range record.Volumes {
		if !slices.Equal(v.Planned.AllowedOverlaps, want[i]) {
			t.Errorf("%s: recorded %q", v.Planned.Name, v.Planned.AllowedOverlaps)
		}
	}
}

// A run that was interrupted says so, whichever request was under way.
func TestInterruptedDryRun(t *testing.T) {
	record, err := Preview(t.Context(), &plane{dryRun: context.Canceled}, []Manifest{at(t, "v", "/export/v")}, Options{})
	if err == nil || ReasonOf(err) != Interrupted || record.Outcome != receipt.Refused {
		t.Errorf("got %v, %+v", err, record)
	}
}
