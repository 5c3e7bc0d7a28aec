package policies_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/chart"
)

// mirrorVolume returns a volume as Mooring makes it for a claim.
func (w *world) mirrorVolume(uid string, claim *corev1.PersistentVolumeClaim, edits ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	id := types.UID(w.namespace + "-" + uid)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "pvc-" + string(id),
			Labels: map[string]string{names.OriginLabel(): "0123456789abcdef0123"},
			Annotations: map[string]string{
				"pv.kubernetes.io/provisioned-by": names.Provisioner(),
				names.MirrorClaim():               claim.Namespace + "/" + claim.Name, names.MirrorClaimUID(): string(id),
				names.OriginClaim(): "owner/data", names.OriginClaimUID(): "o", names.OriginVolume(): "data", names.OriginVolumeUID(): "v",
				names.GrantedBy(): "{}", names.ServedBy(): "mooring-system/mooring",
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              "mirror-0123456789abcdef0123",
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *size("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: id},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "nfs.csi.k8s.io", VolumeHandle: "h-" + string(id), VolumeAttributes: map[string]string{"server": "nfs.example.com", "share": "/data"},
			}},
		},
	}
	for _, edit := range edits {
		edit(volume)
	}
	return volume
}

// With Mooring's token and every right that a role can give, volumes that are no
// mirrors can be neither made nor touched.
func TestFenceOfVolumes(t *testing.T) {
	w := newWorld(t)
	claim := w.claim("m")
	foreign := func(v *corev1.PersistentVolume) {
		v.Annotations, v.Labels, v.Spec.StorageClassName = nil, nil, "standard"
	}
	for _, account := range []string{"mooring", "mooring-cleanup"} {
		c := w.mooring(account)
		for what, tc := range map[string]struct {
			text string
			edit func(*corev1.PersistentVolume)
		}{
			"Delete":          {"only volumes with reclaim policy Retain", func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Delete" }},
			"no claimRef":     {"reserved, by UID", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }},
			"no UID":          {"reserved, by UID", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }},
			"another's UID":   {"reserved, by UID", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" }},
			"another's name":  {"reserved, by UID", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Name = "x" }},
			"another owner":   {"with its record", func(v *corev1.PersistentVolume) { v.Annotations["pv.kubernetes.io/provisioned-by"] = "x" }},
			"no record":       {"with its record", func(v *corev1.PersistentVolume) { v.Annotations = nil }},
			"half a record":   {"with its record", func(v *corev1.PersistentVolume) { v.Annotations = without(v.Annotations, names.OriginClaimUID()) }},
			"an empty record": {"with its record", func(v *corev1.PersistentVolume) { v.Annotations[names.ServedBy()] = "" }},
			"hostPath": {"csi or nfs source", func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			}},
		} {
			w.refused(account+" makes a volume: "+what, tc.text, w.creates(c, w.mirrorVolume("new", claim, tc.edit)))
		}
		other := stored(w, w.mirrorVolume("foreign-"+account, claim, foreign))
		const said = "only mirror volumes of its own"
		w.refused(account+" changes another volume", said, w.patches(c, other, `{"spec":{"mountOptions":["ro"]}}`))
		w.refused(account+" marks it as its own", said, w.patches(c, other, fmt.Sprintf(`{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":%q}}}`, names.Provisioner())))
		w.refused(account+" deletes it", said, w.deletes(c, other))
		own := stored(w, w.mirrorVolume("own-"+account, claim))
		w.refused(account+" gives one of its own to a driver", "only to Retain", w.patches(c, own, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`))
		w.passes(account+" changes one of its own", w.patches(c, own, `{"spec":{"mountOptions":["ro"]}}`))
		w.passes(account+" deletes it", w.deletes(c, own))
		w.passes(account+" makes one", w.creates(c, w.mirrorVolume("new", claim)))
	}
	c := w.mooring("mooring")
	edited := 0
	for what, edit := range map[string]func(*corev1.PersistentVolume){
		"its label": func(v *corev1.PersistentVolume) { v.Annotations = nil; v.Spec.StorageClassName = "standard" },
		"its class": func(v *corev1.PersistentVolume) { v.Annotations, v.Labels = nil, nil },
		"who has made it": func(v *corev1.PersistentVolume) {
			v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": names.Provisioner()}
			v.Labels = nil
		},
		"the claim's UID": func(v *corev1.PersistentVolume) {
			v.Annotations = map[string]string{names.MirrorClaimUID(): "x"}
			v.Labels = nil
		},
		"that it is Delete": func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Delete" },
	} {
		edited++
		volume := stored(w, w.mirrorVolume(fmt.Sprint("edited-", edited), claim, edit))
		w.passes("a volume of Mooring's that is known by "+what, w.patches(c, volume, `{"spec":{"mountOptions":["ro"]}}`))
	}
}

// With Mooring's token and every right, of a claim nothing but Mooring's own can be
// changed.
func TestFenceOfClaims(t *testing.T) {
	w := newWorld(t)
	claim := stored(w, w.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Labels["a"], c.Annotations["a"] = "b", "b" }))
	mirror := stored(w, w.claim("mirror", ofClass("pvc-mirror")))
	bound := w.bound(stored(w, w.claim("bound")))
	const condition = `{"status":{"conditions":[{"type":%q,"status":"False","reason":"NotShared","message":"m","lastProbeTime":null,"lastTransitionTime":"2027-01-01T00:00:00Z"}]}}`
	for _, account := range []string{"mooring", "mooring-cleanup"} {
		c := w.mooring(account)
		for what, patch := range map[string]string{
			"a label": `{"metadata":{"labels":{"a":"c"}}}`, "another label": `{"metadata":{"labels":{"b":"c"}}}`, "all labels": `{"metadata":{"labels":null}}`,
			"an annotation": `{"metadata":{"annotations":{"a":"c"}}}`, "a grant": fmt.Sprintf(`{"metadata":{"annotations":{%q:"team"}}}`, names.ReadWriteGrant()),
			"an owner": `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}`,
		} {
			w.refused(account+" changes "+what, "does not change labels, annotations or owners", w.patches(c, claim, patch))
			w.refused(account+" changes "+what+" through the status", "does not change labels, annotations or owners", w.patchesStatus(c, claim, patch))
		}
		w.refused(account+" adds another's finalizer", "and no other", w.patches(c, claim, `{"metadata":{"finalizers":["example.com/x"]}}`))
		w.refused(account+" takes others' finalizers off", "and no other", w.patches(c, claim, `{"metadata":{"finalizers":null}}`))
		w.refused(account+" writes finalizers through the status", "and no other", w.patchesStatus(c, claim, fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, names.Finalizer())))
		w.refused(account+" binds a claim", "does not change what a claim asks for", w.patches(c, claim, `{"spec":{"volumeName":"x"}}`))
		w.refused(account+" changes a claim's attributes", "does not change what a claim asks for", w.patches(c, bound, `{"spec":{"volumeAttributesClassName":"fast"}}`))
		w.refused(account+" writes another condition", "and no other", w.patchesStatus(c, claim, fmt.Sprintf(condition, "Other")))
		w.refused(account+" says that it is bound", "nothing else of it", w.patchesStatus(c, claim, `{"status":{"phase":"Bound"}}`))
		w.refused(account+" creates a claim", "creates no claim", w.creates(c, w.claim("new")))
		w.refused(account+" deletes a claim of others", "only claims of its classes", w.deletes(c, claim))
		w.passes(account+" adds Mooring's finalizer", w.patches(c, claim, fmt.Sprintf(`{"metadata":{"finalizers":["kubernetes.io/pvc-protection",%q]}}`, names.Finalizer())))
		w.passes(account+" writes Mooring's condition", w.patchesStatus(c, claim, fmt.Sprintf(condition, names.Condition())))
		w.passes(account+" writes a size", w.patchesStatus(c, claim, `{"status":{"capacity":{"storage":"1Gi"}}}`))
		w.passes(account+" deletes a mirror claim", w.deletes(c, mirror))
	}
	c := w.mooring("mooring")
	inOwn := w.claim("probe")
	inOwn.Namespace = chart.DefaultNamespace
	w.passes("the probe, by dry run in its own namespace", w.creates(c, inOwn))
	w.refused("the same for good", "creates no claim", func() error { return c.Create(w.Context(), inOwn.DeepCopy()) })
	for class, may := range map[string]bool{"lab": true, "course-7": true, "course": false, "laboratory": false} {
		other := stored(w, w.claim("of-"+class, ofClass(class)))
		if may {
			w.passes("the deletion of a claim of class "+class, w.deletes(c, other))
		} else {
			w.refused("the deletion of a claim of class "+class, "only claims of its classes", w.deletes(c, other))
		}
	}
}

// Who creates retained volumes creates nothing else.
func TestFenceOfRetained(t *testing.T) {
	w := newWorld(t)
	c := w.as(retainer)
	retained := func(edit func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		return w.mirrorVolume("retained", w.claim("kept"), func(v *corev1.PersistentVolume) {
			v.Annotations, v.Labels, v.Spec.StorageClassName, v.Spec.ClaimRef.UID = nil, nil, "", ""
			edit(v)
		})
	}
	w.refused("Delete", "expected Retain", w.creates(c, retained(func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Delete" })))
	w.refused("no claimRef", "expected the namespace and the name", w.creates(c, retained(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })))
	w.refused("a claimRef without namespace", "expected the namespace and the name", w.creates(c, retained(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "" })))
	w.refused("a node's directory", "which reach storage and not a node", w.creates(c, retained(func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
	})))
	for annotation, why := range map[string]string{
		"pv.kubernetes.io/provisioned-by":                       "belongs to volume controllers",
		"volume.kubernetes.io/provisioner-deletion-secret-name": "belongs to volume controllers",
		names.MirrorClaim():                                     "", // the policy of records refuses it too, and either may be the one that answers
	} {
		w.refused("the annotation "+annotation, annotation+"]: "+why, w.creates(c, retained(func(v *corev1.PersistentVolume) {
			v.Annotations = map[string]string{annotation: "x"}
		})))
	}
	w.passes("a retained volume", w.creates(c, retained(func(v *corev1.PersistentVolume) { v.Annotations = map[string]string{"example.com/note": "x"} })))
	kept := stored(w, retained(func(v *corev1.PersistentVolume) { v.Name += "-kept" }))
	w.refused("to change one", "created once", w.patches(c, kept, `{"metadata":{"labels":{"a":"b"}}}`))
	w.refused("to delete one", "created once", w.deletes(c, kept))
	w.passes("others make what they like", w.creates(w.as("somebody"), retained(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })))
}

// The two cases of CrownLabs: claims are shared by policy, and a later write cannot
// undo it.
func TestOriginGrants(t *testing.T) {
	w := newWorld(t)
	owner := w.as("operator")
	drives := stored(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mydrive-pvcs"}}).Name
	grantOf := func(c *corev1.PersistentVolumeClaim) string { return c.Annotations[names.ReadWriteGrant()] }
	drive := func() *corev1.PersistentVolumeClaim {
		return w.claim("drive", func(c *corev1.PersistentVolumeClaim) {
			c.Namespace = drives
			c.Labels["crownlabs.polito.it/tenant"] = "ada"
		})
	}
	shared := func() *corev1.PersistentVolumeClaim {
		return w.claim("shared", func(c *corev1.PersistentVolumeClaim) { c.Labels["crownlabs.polito.it/volume-type"] = "sharedvolume" })
	}
	for want, drawn := range map[string]func() *corev1.PersistentVolumeClaim{
		"crownlabs.polito.it/type=tenant,crownlabs.polito.it/name=ada": drive, "crownlabs.polito.it/type=tenant": shared,
	} {
		w.untilStamped(owner, drawn, want)
		claim := drawn()
		w.must(owner.Create(w.Context(), claim), "create the claim")
		w.Cleanup(func() { _ = w.Delete(context.Background(), claim) })
		if got := grantOf(claim); got != want {
			t.Errorf("%s was created with the grant %q, want %q", claim.Name, got, want)
		}
		undo := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, names.ReadWriteGrant()))
		w.must(owner.Patch(w.Context(), claim, undo), "take the grant away")
		if got := grantOf(claim); got != want {
			t.Errorf("a later write left %s with the grant %q, want %q", claim.Name, got, want)
		}
		w.must(owner.Status().Patch(w.Context(), claim, undo), "take it away through the status")
		if got := grantOf(claim); got != want {
			t.Errorf("a write through the status left %s with the grant %q, want %q", claim.Name, got, want)
		}
	}
	// A claim that is selected no more is not stamped any more; but not by the write
	// that takes the label away, which therefore cannot take the grant along.
	claim := shared()
	claim.Name = "relabelled"
	w.must(owner.Create(w.Context(), claim), "create a claim")
	w.Cleanup(func() { _ = w.Delete(context.Background(), claim) })
	both := fmt.Sprintf(`{"metadata":{"labels":null,"annotations":{%q:null}}}`, names.ReadWriteGrant())
	w.must(owner.Patch(w.Context(), claim, client.RawPatch(types.MergePatchType, []byte(both))), "take label and grant away")
	if got := grantOf(claim); got != "crownlabs.polito.it/type=tenant" {
		t.Errorf("the write that took the label away left the grant %q", got)
	}
	other := w.claim("other")
	w.must(owner.Create(w.Context(), other), "create another claim")
	if got := grantOf(other); got != "" {
		t.Errorf("another claim has the grant %q", got)
	}
}

// A claim that was there before the policy is stamped by its next write; but not by
// Mooring's, which its own fence holds to the finalizer.
func TestOriginGrantsOfWhatWasThere(t *testing.T) {
	w := newWorld(t)
	owner, controller := w.as("operator"), w.mooring("mooring")
	const want = "crownlabs.polito.it/type=tenant"
	w.untilStamped(owner, func() *corev1.PersistentVolumeClaim {
		return w.claim("shared", func(c *corev1.PersistentVolumeClaim) { c.Labels["crownlabs.polito.it/volume-type"] = "sharedvolume" })
	}, want)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: early, Name: early}}
	finalizers := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":["kubernetes.io/pvc-protection",%q]}}`, names.Finalizer()))
	w.must(controller.Patch(w.Context(), claim, finalizers), "put Mooring's finalizer on a claim that was there before")
	if got := claim.Annotations[names.ReadWriteGrant()]; got != "" {
		t.Errorf("Mooring's own write brought the grant %q", got)
	}
	w.must(owner.Patch(w.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"touched":"once"}}}`))), "touch the claim")
	if got := claim.Annotations[names.ReadWriteGrant()]; got != want {
		t.Errorf("touched, it has the grant %q, want %q", got, want)
	}
}

// untilStamped waits until the policy is in force.
func (w *world) untilStamped(c client.Client, drawn func() *corev1.PersistentVolumeClaim, want string) {
	w.Helper()
	w.until("the policy that stamps is in force", func(ctx context.Context) string {
		claim := drawn()
		if err := c.Create(ctx, claim, client.DryRunAll); err != nil {
			return err.Error()
		}
		if got := claim.Annotations[names.ReadWriteGrant()]; got != want {
			return "the grant is " + got
		}
		return ""
	})
}
