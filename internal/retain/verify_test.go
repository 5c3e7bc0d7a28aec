package retain

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// cluster answers reads from memory.
type cluster struct {
	uid   string
	live  map[string]any
	claim *corev1.PersistentVolumeClaim
	err   error
}

func (*cluster) Version(context.Context) (string, error) { return "v1.37.2", nil }

func (c *cluster) Namespace(_ context.Context, name string) (*corev1.Namespace, error) {
	ns := &corev1.Namespace{}
	ns.Name, ns.UID = name, "uid-cluster"
	if c.uid != "" {
		ns.UID = "another"
	}
	return ns, c.err
}

func (c *cluster) Volume(context.Context, string) (map[string]any, error) { return c.live, c.err }

func (c *cluster) Volumes(context.Context, func(*corev1.PersistentVolume)) error { return c.err }

func (c *cluster) Claim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	return c.claim, c.err
}

// recorded is the receipt of a run that ended so, for the base case.
func recorded(t *testing.T, outcome receipt.Outcome) receipt.Receipt {
	m := parsed(t, nfsManifest())
	return receipt.Receipt{
		Action: "create", Outcome: outcome,
		Cluster: &receipt.Cluster{UID: "uid-cluster", CADigest: "ca", Server: "https://s", Version: "v"},
		Volumes: []receipt.Volume{{
			Manifest: m.Object, FileDigest: m.FileDigest, Outcome: outcome,
			Planned: receipt.Planned{Name: "v", ManifestDigest: m.Digest, Action: "create"},
			Live:    liveRecord(stored(t, nfsManifest())),
		}},
	}
}

func TestVerify(t *testing.T) {
	there := func(t *testing.T, changes ...any) *cluster {
		c := &cluster{live: stored(t, nfsManifest())}
		for i := 0; i < len(changes); i += 2 {
			set(c.live, changes[i].(string), changes[i+1])
		}
		return c
	}
	bound := func(t *testing.T) *cluster {
		c := &cluster{live: stored(t, nfsManifest()), claim: fittingClaim()}
		boundTo(c.live, c.claim)
		return c
	}
	gone := func(*testing.T) *cluster { return &cluster{} }
	for _, tc := range []struct {
		name    string
		outcome receipt.Outcome
		change  func(r *receipt.Receipt)
		cluster func(t *testing.T) *cluster
		want    Reason
		says    string // in state or drift
	}{
		{"created, there", receipt.Created, nil, func(t *testing.T) *cluster { return there(t) }, "", "is there, Available"},
		{"created, bound", receipt.Created, nil, bound, "", "is there, Bound"},
		{"created, gone", receipt.Created, nil, gone, Drift, "is gone"},
		{"created, made anew", receipt.Created, nil, func(t *testing.T) *cluster { return there(t, "metadata/uid", "other") }, Drift, "metadata.uid"},
		{"created, terminating", receipt.Created, nil, func(t *testing.T) *cluster { return there(t, "metadata/deletionTimestamp", "x") }, Drift, "deletionTimestamp"},
		{"created, released", receipt.Created, nil, func(t *testing.T) *cluster { return there(t, "status/phase", "Released") }, Drift, "status.phase"},
		{"created, changed", receipt.Created, nil, func(t *testing.T) *cluster { return there(t, "spec/nodeAffinity", object{}) }, Drift, "spec.nodeAffinity"},
		{"created, another tool's label", receipt.Created, nil, func(t *testing.T) *cluster { return there(t, "metadata/labels/tool", "x") }, "", "label tool"},
		{"created, bound to another", receipt.Created, nil, func(t *testing.T) *cluster { c := bound(t); c.claim.UID = "x"; return c }, Drift, "spec.claimRef"},
		{"bound then, to another now", receipt.Created, func(r *receipt.Receipt) { r.Volumes[0].Live.ClaimUID = "earlier" }, bound, Drift, "spec.claimRef.uid: is uid-c; the receipt says earlier"},
		{"bound then, free now", receipt.Created, func(r *receipt.Receipt) { r.Volumes[0].Live.ClaimUID = "earlier" }, func(t *testing.T) *cluster { return there(t) }, Drift, "spec.claimRef.uid: is missing; the receipt says earlier"},
		{"unchanged, gone", receipt.Unchanged, nil, gone, Drift, "is gone"},
		{"needs review, there", receipt.NeedsReview, nil, func(t *testing.T) *cluster { return there(t) }, "", "is there"},
		{"intended, there", receipt.Intended, nil, func(t *testing.T) *cluster { return there(t) }, OutcomeUnknown, "is there, Available"},
		{"intended, not there", receipt.Intended, nil, gone, OutcomeUnknown, "is not there"},
		{"unknown, another", receipt.Unknown, nil, func(t *testing.T) *cluster { return there(t, "spec/nfs/path", "/x") }, Drift, "spec.nfs.path"},
		{"would create, there", receipt.WouldCreate, nil, func(t *testing.T) *cluster { return there(t) }, "", "did not make it"},
		{"refused, not there", receipt.Refused, nil, gone, "", "is not there"},

		{"another cluster", receipt.Created, nil, func(*testing.T) *cluster { return &cluster{uid: "x"} }, ClusterDiffers, ""},
		{"a cluster that does not answer", receipt.Created, nil, func(*testing.T) *cluster { return &cluster{err: errors.New("x")} }, ReadFailed, ""},
		{"ended before it knew its cluster", receipt.Refused, func(r *receipt.Receipt) { r.Cluster = nil }, gone, ReceiptInvalid, ""},
		{"a manifest that is none", receipt.Created, func(r *receipt.Receipt) { r.Volumes[0].Manifest = object{"kind": "x"} }, gone, ReceiptInvalid, ""},
		{"a manifest of another digest", receipt.Created, func(r *receipt.Receipt) { set(r.Volumes[0].Manifest, "spec/nfs/path", "/x") }, gone, ReceiptInvalid, ""},
		{"a manifest of another name", receipt.Created, func(r *receipt.Receipt) { r.Volumes[0].Planned.Name = "w" }, gone, ReceiptInvalid, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := recorded(t, tc.outcome)
			if tc.change != nil {
				tc.change(&r)
			}
			found, err := Verify(t.Context(), tc.cluster(t), r, AccessFacts{CADigest: "ca"})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || ReasonOf(err) != tc.want) {
				t.Fatalf("got %v; want %q: %+v", err, tc.want, found)
			}
			if text := jsonOf(t, found); !strings.Contains(text, tc.says) {
				t.Fatalf("want %q in %s", tc.says, text)
			}
		})
	}
	found, err := Verify(t.Context(), there(t), recorded(t, receipt.Created), AccessFacts{CADigest: "rotated"})
	if err != nil || len(found.Notes) != 1 {
		t.Errorf("another authority: %+v, %v", found, err)
	}
}
