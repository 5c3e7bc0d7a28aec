package retain_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// The whole life of a retained volume, as docs/retained-volumes.md tells it.
func TestStory(t *testing.T) {
	w := newWorld(t)
	manifest := w.volume("home")

	// Preview: at most 14 requests, and nothing is written.
	preview, r := w.preview(manifest, "-v")
	w.want(r, "")
	if preview.Outcome != receipt.WouldCreate || preview.Volumes[0].Planned.Claim.Present || w.live("home") != nil {
		t.Fatalf("got %+v", preview)
	}
	if !strings.Contains(r.err, "requests: 14, and 1 page(s)") {
		t.Errorf("the cost of a preview changed; the budget is 14 requests and one list: %s", r.err)
	}
	if !strings.Contains(r.out, preview.PlanDigest) {
		t.Errorf("the plan digest is not printed: %s", r.out)
	}

	// Create by the digest.
	created, r := w.create(manifest, preview.PlanDigest)
	w.want(r, "")
	live := w.live("home")
	if created.Outcome != receipt.Created || live == nil || created.Volumes[0].Live.UID != string(live.UID) {
		t.Fatalf("got %+v; live %+v", created, live)
	}

	// Again: unchanged, and nothing is written.
	again, r := w.create(manifest, preview.PlanDigest)
	w.want(r, "")
	if again.Outcome != receipt.Unchanged || w.live("home").ResourceVersion != again.Volumes[0].Live.ResourceVersion {
		t.Fatalf("got %+v", again)
	}

	// The claim binds; still unchanged, and no drift.
	w.claim("home")
	w.awaitPhase("home", corev1.VolumeBound)
	bound, r := w.preview(manifest)
	w.want(r, "")
	if bound.Outcome != receipt.Unchanged || bound.Volumes[0].Live.ClaimUID == "" {
		t.Fatalf("got %+v", bound)
	}
	file := w.file("receipt.json")
	w.want(w.mooring("create", w.write(manifest), "-o", file, "--without-approval"), "")
	w.want(w.run("", "verify", file), "")
	w.want(w.mooring("verify", file), "")

	// Shared with another namespace: its mirror is excepted by its record, and listed.
	uid := string(w.live("home").UID)
	mirror := w.volume("mirror", change{
		"metadata/name": "pvc-" + w.id, "spec/nfs/path": w.path("home"),
		"metadata/annotations": object{"mirror.example.com/mirror-claim-uid": w.id, "mirror.example.com/origin-volume": w.volumeName("home"), "mirror.example.com/origin-volume-uid": uid},
	})
	w.make(mirror)
	shared, r := w.preview(manifest)
	w.want(r, "")
	if got := shared.Volumes[0].Planned.Mirrors; len(got) != 1 || got[0] != "pvc-"+w.id || shared.PlanDigest == bound.PlanDigest {
		t.Fatalf("got %+v", shared.Volumes[0].Planned)
	}
	w.removeVolume(w.Context(), "pvc-"+w.id)

	// Another volume on the same directory is refused, by whichever driver.
	conflict := w.volume("again", change{"spec/nfs": nil, "spec/csi": object{
		"driver": "nfs.csi.k8s.io", "volumeHandle": w.id + "-again",
		"volumeAttributes": object{"server": "NAS.example.com.", "share": "/export/" + w.id, "subDir": "home"},
	}})
	_, r = w.preview(conflict)
	w.want(r, retain.BackendShared)

	// What is exported is what was written.
	r = w.mooring("export", "pv/"+w.volumeName("home"))
	w.want(r, "")
	exported := w.file("exported.yaml")
	if err := os.WriteFile(exported, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	w.want(w.mooring("preview", exported), "")
	w.want(w.mooring("export", "pv/"+w.volumeName("nothing")), retain.VolumeMissing)
	w.want(w.mooring("export", "pv/.."), retain.Usage)
}
