package retain_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// One situation has one digest, however often and by whomever it is previewed;
// each single change has another.
func TestPlanDigestIsThatOfTheSituation(t *testing.T) {
	w := newWorld(t)
	manifest := w.volume("v")
	situations := map[string]string{}
	see := func(name string, o object, flags ...string) {
		t.Helper()
		record, _ := w.preview(o, flags...)
		digest := record.PlanDigest
		if other, seen := situations[digest]; seen || digest == "" {
			t.Fatalf("%q has the digest of %q: %q", name, other, digest)
		}
		situations[digest] = name
	}
	see("first", manifest)
	first, _ := w.preview(manifest)
	begin := time.Now()
	for i := range 20 {
		record, r := w.preview(manifest)
		w.want(r, "")
		if record.PlanDigest != first.PlanDigest {
			t.Fatalf("preview %d has another digest", i)
		}
	}
	t.Logf("a preview took %s on average", time.Since(begin)/20)
	other := w.identity(documented())
	file := w.file("other.json")
	w.want(w.run(other, "preview", w.write(manifest), "-o", file), "")
	if w.receipt(file).PlanDigest != first.PlanDigest {
		t.Error("another caller has another digest")
	}

	see("a label", w.volume("v", change{"metadata/labels/x": "y"}))
	see("another size", w.volume("v", change{"spec/capacity": object{"storage": "11Gi"}}))
	see("another claim", w.volume("v", change{"spec/claimRef/name": "w"}))
	claim := w.claim("v", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" })
	see("the claim is there", manifest)
	claim.Spec.Resources.Requests["storage"] = *quantity("9Gi")
	w.deleteClaim("v")
	w.eventually("the claim's end", func() (any, bool) {
		_, err := w.admin.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.Context(), "v", metav1.GetOptions{})
		return err, err != nil
	})
	w.claim("v")
	see("a claim of another UID and spec", manifest)
	w.make(w.volume("below", change{"spec/nfs/path": w.path("v") + "/below"}))
	see("a neighbour below", manifest)
	see("the neighbour is allowed", manifest, "--allow-overlap", "pv/"+w.volumeName("below"))
	w.removeVolume(w.Context(), w.volumeName("below"))
	w.make(manifest)
	w.awaitPhase("v", corev1.VolumeBound)
	see("the volume is there and bound", manifest)
}

func TestApproval(t *testing.T) {
	w := newWorld(t)
	manifest := w.volume("v")
	previewFile := w.file("preview.json")
	w.want(w.mooring("preview", w.write(manifest), "-o", previewFile), "")
	create := func(o object, flags ...string) result {
		return w.mooring(append([]string{"create", w.write(o), "-o", w.file("receipt.json")}, flags...)...)
	}
	w.want(create(manifest), retain.ApprovalMissing)
	w.want(create(manifest, "--approved-plan", "sha256:12"), retain.Usage)
	w.want(create(manifest, "--approved-plan", receipt.Digest("x")), retain.ApprovalDiffers)
	w.want(create(manifest, "--approved", previewFile, "--max-preview-age", "0s"), retain.ApprovalExpired)
	w.want(create(w.volume("v", change{"metadata/labels/x": "y"}), "--approved", previewFile), retain.ApprovalDiffers)
	w.want(create(manifest, "--approved", previewFile, "--without-approval"), retain.Usage)
	w.want(w.mooring("create", w.write(manifest), "--without-approval"), retain.Usage)
	w.want(w.mooring("create", w.write(manifest), "--without-approval", "-o", w.dir+"/no/such"), retain.ReceiptUnwritable)
	// A preview whose plan digest was changed is no receipt.
	data, err := os.ReadFile(previewFile)
	if err != nil {
		t.Fatal(err)
	}
	forged := w.file("forged.json")
	record := w.receipt(previewFile)
	if err := os.WriteFile(forged, []byte(strings.ReplaceAll(string(data), record.PlanDigest, receipt.Digest("x"))), 0o600); err != nil {
		t.Fatal(err)
	}
	w.want(create(manifest, "--approved", forged), retain.ReceiptInvalid)
	// The receipt of a create is no preview.
	if w.live("v") != nil {
		t.Fatal("created without an approval")
	}
	w.want(create(manifest, "--approved", previewFile), "")
	if w.live("v") == nil {
		t.Fatal("not created")
	}
}

// Several volumes: all are planned before any is made; the first that fails ends
// the run, and the receipt says which were made.
func TestSeveralVolumes(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.write(w.volume("a")), w.write(w.volume("b")), w.write(w.volume("c"))
	w.make(w.volume("other", change{"spec/nfs/path": w.path("c")}))
	file := w.file("receipt.json")
	w.want(w.mooring("create", a, b, c, "-o", file, "--without-approval"), retain.BackendShared)
	if w.live("a") != nil || w.live("b") != nil {
		t.Fatal("created although one of the volumes is refused")
	}
	w.removeVolume(w.Context(), w.volumeName("other"))

	p := w.proxy(nil)
	creates := 0
	p.rules = func(step string) (fault, fault) {
		if step == "create" {
			if creates++; creates == 2 {
				return error429, none
			}
		}
		return none, none
	}
	file = w.file("receipt.json")
	w.want(w.run(p.documented(), "create", a, b, c, "-o", file, "--without-approval"), retain.CreateRefused)
	record := w.receipt(file)
	var outcomes []string
	for _, v := range record.Volumes {
		outcomes = append(outcomes, string(v.Outcome))
	}
	if got := fmt.Sprint(outcomes); got != "[created refused not-reached]" || w.live("a") == nil || w.live("b") != nil || w.live("c") != nil {
		t.Fatalf("got %s", got)
	}
	// Manifests that do not fit each other.
	w.want(w.mooring("preview", a, a), retain.ManifestInvalid)
	w.want(w.mooring("preview", a, w.write(w.volume("d", change{"spec/nfs/path": w.path("a")}))), retain.BackendShared)
	w.want(w.mooring("preview", a, w.write(w.volume("d", change{"spec/claimRef/name": "a"}))), retain.ClaimContested)
}

// A run that is interrupted after the first of two volumes finishes that one's
// record, and sends no second.
func TestInterruptedBetweenVolumes(t *testing.T) {
	w := newWorld(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	p := w.proxy(nil)
	p.onEnd = func(step string) {
		if step == "volume2" {
			interrupt()
		}
	}
	file := w.file("receipt.json")
	var out, errs bytes.Buffer
	code := cli.Run(ctx, []string{"retain", "create", w.write(w.volume("a")), w.write(w.volume("b")), "-o", file, "--without-approval", "--kubeconfig", p.documented()},
		cli.Env{Out: &out, Err: &errs, Version: "test"})
	w.want(result{code, out.String(), errs.String()}, retain.Interrupted)
	record := w.receipt(file)
	if record.Outcome != receipt.Refused || record.Volumes[0].Outcome != receipt.Created || record.Volumes[1].Outcome != receipt.NotReached ||
		w.live("a") == nil || w.live("b") != nil {
		t.Fatalf("got %+v", record)
	}
}

func TestDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		meddle func(w *world)
		want   string // in the drift; empty for none
	}{
		"nothing":      {func(*world) {}, ""},
		"another tool": {func(w *world) { w.patch("v", `{"metadata":{"labels":{"tool":"x"},"annotations":{"tool":"y"}}}`) }, ""},
		"bound": {func(w *world) {
			w.claim("v")
			w.awaitPhase("v", corev1.VolumeBound)
			w.awaitClaim("v", corev1.ClaimBound)
		}, ""},
		"policy":            {func(w *world) { w.patch("v", `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`) }, "persistentVolumeReclaimPolicy"},
		"label":             {func(w *world) { w.patch("v", `{"metadata":{"labels":{"owner":null}}}`) }, "metadata.labels.owner"},
		"mount options":     {func(w *world) { w.patch("v", `{"spec":{"mountOptions":["ro"]}}`) }, "spec.mountOptions"},
		"controllers' note": {func(w *world) { w.patch("v", `{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"x"}}}`) }, "provisioned-by"},
		"claimRef gone":     {func(w *world) { w.patch("v", `{"spec":{"claimRef":null}}`) }, "spec.claimRef"},
		"gone":              {func(w *world) { w.removeVolume(w.Context(), w.volumeName("v")) }, "the volume is gone"},
		"made anew":         {func(w *world) { w.removeVolume(w.Context(), w.volumeName("v")); w.make(w.volume("v")) }, "metadata.uid"},
		"released": {func(w *world) {
			w.claim("v")
			w.awaitPhase("v", corev1.VolumeBound)
			w.deleteClaim("v")
			w.awaitPhase("v", corev1.VolumeReleased)
		}, "status.phase"},
		"claim made anew": {func(w *world) {
			w.claim("v")
			w.awaitPhase("v", corev1.VolumeBound)
			w.deleteClaim("v")
			w.awaitPhase("v", corev1.VolumeReleased)
			w.patch("v", `{"spec":{"claimRef":{"uid":"00000000-0000-0000-0000-000000000000"}},"status":null}`)
		}, "status.phase"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := w.file("receipt.json")
			w.want(w.mooring("create", w.write(w.volume("v")), "-o", file, "--without-approval"), "")
			tc.meddle(w)
			r := w.mooring("verify", file)
			if tc.want == "" {
				w.want(r, "")
				return
			}
			w.want(r, retain.Drift)
			if !strings.Contains(r.out, tc.want) {
				t.Fatalf("want %q in %s", tc.want, r.out)
			}
		})
	}
}
