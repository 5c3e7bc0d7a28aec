package retain_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// Each row makes one situation in the cluster and previews volume "v" in it.
// Nothing but the reason named may be given, and nothing may be written.
func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		situation func(w *world)
		change    change // of the manifest that is previewed
		flags     []string
		want      retain.Reason
		outcome   receipt.Outcome // where want is empty
	}{
		"nothing there":       {func(*world) {}, nil, nil, "", receipt.WouldCreate},
		"exactly there":       {func(w *world) { w.make(w.volume("v")) }, nil, nil, "", receipt.Unchanged},
		"explicit default":    {func(w *world) { w.make(w.volume("v")) }, change{"spec/volumeMode": "Filesystem"}, nil, "", receipt.Unchanged},
		"another spelling":    {func(w *world) { w.make(w.volume("v")) }, change{"spec/capacity": object{"storage": "10240Mi"}}, nil, "", receipt.Unchanged},
		"no class":            {func(w *world) { w.make(w.volume("v", change{"spec/storageClassName": ""})) }, change{"spec/storageClassName": ""}, nil, "", receipt.Unchanged},
		"others' metadata":    {func(w *world) { w.make(w.volume("v", change{"metadata/annotations": object{"tool": "x"}})) }, nil, nil, "", receipt.Unchanged},
		"another path":        {func(w *world) { w.make(w.volume("v", change{"spec/nfs/path": "/other/" + w.id})) }, nil, nil, retain.VolumeDiffers, ""},
		"another size":        {func(w *world) { w.make(w.volume("v", change{"spec/capacity": object{"storage": "11Gi"}})) }, nil, nil, retain.VolumeDiffers, ""},
		"another label":       {func(w *world) { w.make(w.volume("v", change{"metadata/labels/owner": "x"})) }, nil, nil, retain.VolumeDiffers, ""},
		"policy Delete":       {func(w *world) { w.make(w.volume("v", change{"spec/persistentVolumeReclaimPolicy": "Delete"})) }, nil, nil, retain.VolumeDiffers, ""},
		"extra mount option":  {func(w *world) { w.make(w.volume("v", change{"spec/mountOptions": []any{"ro"}})) }, nil, nil, retain.VolumeExtraFields, ""},
		"extra node affinity": {func(w *world) { w.make(w.volume("v", change{"spec/nodeAffinity": affinity})) }, nil, nil, retain.VolumeExtraFields, ""},
		"extra read-only":     {func(w *world) { w.make(w.volume("v", change{"spec/nfs/readOnly": true})) }, nil, nil, retain.VolumeExtraFields, ""},
		"controller annotation": {func(w *world) {
			w.make(w.volume("v", change{"metadata/annotations": object{"pv.kubernetes.io/provisioned-by": "x"}}))
		}, nil, nil, retain.VolumeExtraFields, ""},
		"foreign finalizer": {func(w *world) { w.make(w.volume("v", change{"metadata/finalizers": []any{"example.com/f"}})) }, nil, nil, retain.VolumeExtraFields, ""},
		"terminating": {func(w *world) {
			w.make(w.volume("v", change{"metadata/finalizers": []any{"example.com/f"}}))
			w.delete("v")
		}, nil, nil, retain.VolumeTerminating, ""},
		"released": {func(w *world) { w.bind("v"); w.deleteClaim("v"); w.awaitPhase("v", corev1.VolumeReleased) }, nil, nil, retain.VolumeReleased, ""},
		"failed": {func(w *world) {
			w.make(w.volume("v"))
			w.setPhase("v", corev1.VolumeFailed)
		}, nil, nil, retain.VolumeFailed, ""},
		"bound": {func(w *world) { w.bind("v") }, nil, nil, "", receipt.Unchanged},

		"bound, claim gone":       {func(w *world) { w.freeze("v"); w.patch("v", nobody) }, nil, nil, retain.BoundClaimMissing, ""},
		"bound, claim made anew":  {func(w *world) { w.freeze("v"); w.claim("v"); w.patch("v", nobody) }, nil, nil, retain.BoundOtherClaim, ""},
		"bound, claim disowns it": {func(w *world) { w.freeze("v"); w.bindTo("v", "another") }, nil, nil, retain.BoundClaimDisowns, ""},
		"binding under way":       {func(w *world) { w.freeze("v"); w.bindTo("v", "") }, nil, nil, retain.BoundUnproven, ""},

		"same directory": {func(w *world) { w.make(w.volume("other", change{"spec/nfs/path": w.path("v")})) }, nil, nil, retain.BackendShared, ""},
		"same, server's name": {func(w *world) {
			w.make(w.volume("other", change{"spec/nfs": object{"server": "NAS.example.com.", "path": w.path("v")}}))
		}, nil, nil, retain.BackendShared, ""},
		"same, unclean": {func(w *world) { w.make(w.volume("other", change{"spec/nfs/path": "/export//" + w.id + "/v/"})) }, nil, nil, retain.BackendShared, ""},
		"same, by CSI":  {func(w *world) { w.make(w.csiNFS("other", "/export/"+w.id, "v")) }, nil, nil, retain.BackendShared, ""},
		"same, terminating": {func(w *world) {
			w.make(w.volume("other", change{"spec/nfs/path": w.path("v"), "metadata/finalizers": []any{"example.com/f"}}))
			w.delete("other")
		}, nil, nil, retain.BackendShared, ""},
		"same, named":  {func(w *world) { w.make(w.volume("other", change{"spec/nfs/path": w.path("v")})) }, nil, []string{"other"}, retain.BackendShared, ""},
		"above":        {func(w *world) { w.make(w.volume("other", change{"spec/nfs/path": "/export/" + w.id})) }, nil, nil, retain.BackendNested, ""},
		"below":        {func(w *world) { w.make(w.volume("other", change{"spec/nfs/path": w.path("v") + "/sub"})) }, nil, nil, retain.BackendNested, ""},
		"below, named": {func(w *world) { w.make(w.volume("other", change{"spec/nfs/path": w.path("v") + "/sub"})) }, nil, []string{"other"}, "", receipt.WouldCreate},
		"beside":       {func(w *world) { w.make(w.volume("other", change{"spec/nfs/path": w.path("v") + "2"})) }, nil, nil, "", receipt.WouldCreate},

		"reserved for the claim": {func(w *world) { w.make(w.volume("other", change{"spec/claimRef/name": "v"})) }, nil, nil, retain.ClaimContested, ""},
		"claim fits":             {func(w *world) { w.claim("v") }, nil, nil, "", receipt.WouldCreate},
		"claim without volume":   {func(w *world) { w.claim("v", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }) }, nil, nil, "", receipt.WouldCreate},
		"claim too large": {func(w *world) {
			w.claim("v", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests["storage"] = resource.MustParse("11Gi")
			})
		}, nil, nil, retain.ClaimTooLarge, ""},
		"claim of another class": {func(w *world) {
			w.claim("v", func(c *corev1.PersistentVolumeClaim) { other := "other"; c.Spec.StorageClassName = &other })
		}, nil, nil, retain.ClaimOtherClass, ""},
		"claim's modes": {func(w *world) {
			w.claim("v", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			})
		}, nil, nil, retain.ClaimOtherModes, ""},
		"claim of blocks": {func(w *world) {
			w.claim("v", func(c *corev1.PersistentVolumeClaim) {
				block := corev1.PersistentVolumeBlock
				c.Spec.VolumeMode = &block
			})
		}, nil, nil, retain.ClaimOtherMode, ""},
		"claim's selector": {func(w *world) {
			w.claim("v", func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"owner": "x"}}
			})
		}, nil, nil, retain.ClaimSelector, ""},
		"claim's attributes": {func(w *world) {
			w.claim("v", func(c *corev1.PersistentVolumeClaim) { gold := "gold"; c.Spec.VolumeAttributesClassName = &gold })
		}, nil, nil, retain.ClaimOtherAttrs, ""},
		"claim of another":      {func(w *world) { w.claim("v", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "another" }) }, nil, nil, retain.ClaimOtherVolume, ""},
		"claim bound elsewhere": {func(w *world) { w.bindElsewhere() }, nil, nil, retain.ClaimBoundElse, ""},
		"claim lost": {func(w *world) {
			w.bind("v")
			w.removeVolume(w.Context(), w.volumeName("v"))
			w.awaitClaim("v", corev1.ClaimLost)
		}, nil, nil, retain.ClaimLost, ""},
		"claim terminating": {func(w *world) {
			w.claim("v", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"example.com/f"} })
			w.deleteClaim("v")
		}, nil, nil, retain.ClaimTerminating, ""},
		"server refuses": {func(*world) {}, change{"spec/nodeAffinity": object{}}, nil, retain.DryRunRefused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.situation(w)
			var flags []string
			for _, other := range tc.flags {
				flags = append(flags, "--allow-overlap", "pv/"+w.volumeName(other))
			}
			before := w.live("v")
			record, r := w.preview(w.volume("v", tc.change), flags...)
			w.want(r, tc.want)
			if tc.want == "" && record.Outcome != tc.outcome || tc.want != "" && (record.Outcome != receipt.Refused || record.Reason != string(tc.want)) {
				t.Fatalf("the receipt says %s, %s", record.Outcome, record.Reason)
			}
			after := w.live("v")
			if (before == nil) != (after == nil) || before != nil && before.UID != after.UID {
				t.Fatalf("a preview changed the cluster: %+v", after)
			}
		})
	}
}

var affinity = object{"required": object{"nodeSelectorTerms": []any{object{"matchExpressions": []any{object{"key": "k", "operator": "Exists"}}}}}}

func (w *world) path(name string) string { return "/export/" + w.id + "/" + name }

func (w *world) csiNFS(name, share, subDir string) object {
	return w.volume(name, change{"spec/nfs": nil, "spec/csi": object{
		"driver": "nfs.csi.k8s.io", "volumeHandle": w.volumeName(name),
		"volumeAttributes": object{"server": "nas.example.com", "share": share, "subDir": subDir},
	}})
}

func (w *world) delete(name string) {
	w.Helper()
	if err := w.admin.CoreV1().PersistentVolumes().Delete(w.Context(), w.volumeName(name), metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) deleteClaim(name string) {
	w.Helper()
	if err := w.admin.CoreV1().PersistentVolumeClaims(w.namespace).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// bind makes volume and claim and waits for the real binder.
func (w *world) bind(name string) {
	w.Helper()
	w.make(w.volume(name))
	w.claim(name)
	w.awaitPhase(name, corev1.VolumeBound)
	w.awaitClaim(name, corev1.ClaimBound)
}

func (w *world) bindElsewhere() {
	w.Helper()
	w.make(w.volume("other", change{"spec/claimRef/name": "v"}))
	w.claim("v", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = w.volumeName("other") })
	w.awaitClaim("v", corev1.ClaimBound)
}

func (w *world) awaitClaim(name string, phase corev1.PersistentVolumeClaimPhase) {
	w.Helper()
	w.eventually("phase of the claim", func() (any, bool) {
		claim, err := w.admin.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
		return claim, err == nil && claim.Status.Phase == phase
	})
}

// setPhase writes a phase that the binder does not write by itself here.
// The binder stands still until the test ends, or it would mend the phase.
func (w *world) setPhase(name string, phase corev1.PersistentVolumePhase) {
	w.Helper()
	w.awaitPhase(name, corev1.VolumeAvailable)
	w.pauseBinder()
	w.must(w.admin.CoreV1().PersistentVolumes().Patch(w.Context(), w.volumeName(name), "application/merge-patch+json",
		[]byte(`{"status":{"phase":"`+string(phase)+`"}}`), metav1.PatchOptions{}, "status"))
}

// bindTo lets volume name a claim by its UID that names another volume, or none.
func (w *world) bindTo(name, named string) {
	w.Helper()
	claim := w.claim(name, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = named })
	w.patch(name, `{"spec":{"claimRef":{"uid":"`+string(claim.UID)+`"}}}`)
}

// pauseBinder stops the binder until the test ends.
func (w *world) pauseBinder() {
	w.Helper()
	if err := w.plane.ControllerManager().Pause(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := w.plane.ControllerManager().Resume(); err != nil {
			w.Error(err)
		}
	})
	// The signal is on its way; the binder could still write.
	w.eventually("the binder's stop", func() (any, bool) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.plane.ControllerManager().PID()))
		return string(stat), err == nil && strings.Contains(string(stat), ") T ")
	})
}

// freeze makes a volume and stops the binder once it has seen it.
func (w *world) freeze(name string) {
	w.Helper()
	w.make(w.volume(name))
	w.awaitPhase(name, corev1.VolumeAvailable)
	w.pauseBinder()
}

const nobody = `{"spec":{"claimRef":{"uid":"00000000-0000-0000-0000-000000000000"}}}`

func (w *world) patch(name, patch string) {
	w.Helper()
	w.must(w.admin.CoreV1().PersistentVolumes().Patch(w.Context(), w.volumeName(name), "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}))
}
