package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fields are what a write sets: metadata, spec, status.
type fields map[string]map[string]any

// byEveryPatch returns the same change, by dry run, in each form that the API server
// takes: a policy that holds for one of them must hold for all.
func (w *world) byEveryPatch(c client.Client, object client.Object, subresource string, set fields) map[string]func() error {
	w.Helper()
	kind, err := c.GroupVersionKindFor(object)
	w.must(err, "find the object's kind")
	merge := map[string]any{}
	var operations []map[string]any
	for group, values := range set {
		merge[group] = values
		for name, value := range values {
			operations = append(operations, map[string]any{"op": "add", "path": "/" + group + "/" + name, "value": value})
		}
	}
	applied := maps.Clone(merge)
	metadata := map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	maps.Copy(metadata, set["metadata"])
	applied["apiVersion"], applied["kind"], applied["metadata"] = kind.GroupVersion().String(), kind.Kind, metadata
	writes := map[string]func() error{}
	for form, body := range map[types.PatchType]any{
		types.MergePatchType: merge, types.StrategicMergePatchType: merge, types.JSONPatchType: operations, types.ApplyPatchType: applied,
	} {
		text, err := json.Marshal(body)
		w.must(err, "encode a patch")
		options := client.PatchOptions{DryRun: []string{metav1.DryRunAll}}
		if form == types.ApplyPatchType {
			options.FieldManager, options.Force = "attacker", ptr.To(true)
		}
		writes[string(form)] = func() error {
			fresh, _ := object.DeepCopyObject().(client.Object)
			if subresource == "" {
				return c.Patch(w.Context(), fresh, client.RawPatch(form, text), &options)
			}
			return c.SubResource(subresource).Patch(w.Context(), fresh, client.RawPatch(form, text), &client.SubResourcePatchOptions{PatchOptions: options})
		}
	}
	return writes
}

// The fence of claims holds for each form of a patch, for what lies deeper in a
// status, and for many claims at once.
func TestFenceOfClaimsByEveryPatch(t *testing.T) {
	w := newWorld(t)
	claim := stored(w, w.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Labels["a"], c.Annotations["a"] = "b", "b" }))
	claim.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AllocatedResources: corev1.ResourceList{corev1.ResourceStorage: *size("2Gi")},
		AllocatedResourceStatuses:        map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending},
		CurrentVolumeAttributesClassName: ptr.To("slow"),
		ModifyVolumeStatus:               &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "slow", Status: corev1.PersistentVolumeClaimModifyVolumeInProgress},
	}
	w.must(w.Status().Update(w.Context(), claim), "say that a claim is being grown and changed")
	const metadata, status = "does not change labels, annotations or owners", "nothing else of it"
	storage := func(value string) map[string]any { return map[string]any{"storage": value} }
	for _, account := range []string{"mooring", "mooring-cleanup"} {
		c := w.mooring(account)
		for what, tc := range map[string]struct {
			text, subresource string
			set               fields
		}{
			"a label":                           {metadata, "", fields{"metadata": {"labels": map[string]any{"a": "c"}}}},
			"an annotation through the status":  {metadata, "status", fields{"metadata": {"annotations": map[string]any{names.ReadWriteGrant(): "team"}}}},
			"an owner":                          {metadata, "", fields{"metadata": {"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}}}}},
			"another's finalizer":               {"and no other", "", fields{"metadata": {"finalizers": []any{"kubernetes.io/pvc-protection", "example.com/x"}}}},
			"what it is bound to":               {"does not change what a claim asks for", "", fields{"spec": {"volumeName": "x"}}},
			"the phase":                         {status, "status", fields{"status": {"phase": "Lost"}}},
			"the modes":                         {status, "status", fields{"status": {"accessModes": []any{"ReadWriteOnce"}}}},
			"what is allocated":                 {status, "status", fields{"status": {"allocatedResources": storage("9Gi")}}},
			"how far its growth is":             {status, "status", fields{"status": {"allocatedResourceStatuses": storage("ControllerResizeInfeasible")}}},
			"its attributes class":              {status, "status", fields{"status": {"currentVolumeAttributesClassName": "fast"}}},
			"the class that it is changed to":   {status, "status", fields{"status": {"modifyVolumeStatus": map[string]any{"targetVolumeAttributesClassName": "fast", "status": "InProgress"}}}},
			"the size, and the phase beside it": {status, "status", fields{"status": {"capacity": storage("1Gi"), "phase": "Pending"}}},
		} {
			for form, write := range w.byEveryPatch(c, claim, tc.subresource, tc.set) {
				w.refused(fmt.Sprintf("%s changes %s by %s", account, what, form), tc.text, write)
			}
		}
		for form, write := range w.byEveryPatch(c, claim, "status", fields{"status": {"capacity": storage("1Gi")}}) {
			w.passes(account+" writes a size by "+form, write)
		}
		w.refused(account+" deletes all claims", "only claims of its classes", func() error {
			return c.DeleteAllOf(w.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(w.namespace), client.DryRunAll)
		})
		w.refused(account+" applies a claim that is not there", "creates no claim", w.byEveryPatch(c, w.claim("new"), "", fields{
			"spec": {"accessModes": []any{"ReadWriteMany"}, "resources": map[string]any{"requests": storage("1Gi")}},
		})[string(types.ApplyPatchType)])
		w.refused(account+" creates a claim of a generated name", "creates no claim", w.creates(c, w.claim("", func(c *corev1.PersistentVolumeClaim) { c.GenerateName = "new-" })))
	}
}

// The fence of volumes holds for each form of a patch, and a volume of the former
// provisioner, which is to be deleted with its claim, is not handed to a driver.
func TestFenceOfVolumesByEveryPatch(t *testing.T) {
	w := newWorld(t)
	claim := w.claim("m")
	foreign := stored(w, w.mirrorVolume("foreign", claim, func(v *corev1.PersistentVolume) {
		v.Annotations, v.Labels, v.Spec.StorageClassName = nil, nil, "standard"
	}))
	former := stored(w, w.mirrorVolume("former", claim, func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}))
	const provisionedBy = "pv.kubernetes.io/provisioned-by"
	by := func(value any) fields {
		return fields{"metadata": {"annotations": map[string]any{provisionedBy: value, names.MirrorClaimUID(): "x"}}}
	}
	c := w.mooring("mooring")
	for _, subresource := range []string{"", "status"} {
		for form, write := range w.byEveryPatch(c, foreign, subresource, by(names.Provisioner())) {
			w.refused("to mark another volume by "+form+" "+subresource, "only mirror volumes of its own", write)
		}
		for form, write := range w.byEveryPatch(c, former, subresource, by("nfs.csi.k8s.io")) {
			w.refused("to give a volume to a driver by "+form+" "+subresource, "only to its own name", write)
		}
	}
	remove := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, provisionedBy)
	w.refused("to say nobody's of a volume", "only to its own name", w.patches(c, former, remove))
	w.refused("to delete all volumes", "only mirror volumes of its own", func() error {
		return c.DeleteAllOf(w.Context(), &corev1.PersistentVolume{}, client.DryRunAll)
	})
	for form, write := range w.byEveryPatch(c, former, "", by(names.Provisioner())) {
		w.passes("what stands there stays, by "+form, write)
	}
	taken := stored(w, w.mirrorVolume("taken", claim, func(v *corev1.PersistentVolume) { v.Annotations[provisionedBy] = "nfs.csi.k8s.io" }))
	w.passes("a mirror volume's own name is put back", w.patches(c, taken, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, provisionedBy, names.Provisioner())))
	applied := w.byEveryPatch(c, w.mirrorVolume("applied", claim), "", fields{"spec": {
		"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteMany"}, "hostPath": map[string]any{"path": "/"},
	}})
	w.refused("a volume that is applied", "Mooring makes only volumes", applied[string(types.ApplyPatchType)])
}

// The labels that grants rely on are protected from each form of a patch and through
// each subresource.
func TestNamespaceLabelsByEveryPatch(t *testing.T) {
	w := newWorld(t)
	tenant := w.as("tenant")
	const said = "volumes are shared by this label"
	own := stored(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-own"}})
	for _, subresource := range []string{"", "status"} {
		for form, write := range w.byEveryPatch(tenant, own, subresource, fields{"metadata": {"labels": map[string]any{protectedKey: "tenant"}}}) {
			w.refused("the label by "+form+" "+subresource, said, write)
		}
	}
	finalized := own.DeepCopy()
	finalized.Labels = map[string]string{protectedKey: "tenant"}
	w.refused("the label through finalize", said, func() error {
		return tenant.SubResource("finalize").Update(w.Context(), finalized.DeepCopy(), &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})
	})
	fresh := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-applied"}}
	w.refused("a namespace that is applied", said, w.byEveryPatch(tenant, fresh, "", fields{"metadata": {"labels": map[string]any{protectedKey: "tenant"}}})[string(types.ApplyPatchType)])
	fresh = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: w.namespace + "-", Labels: map[string]string{protectedKey: "tenant"}}}
	w.refused("a namespace of a generated name", said, w.creates(tenant, fresh))
}

// Who asks for a copy of a claim that is no mirror yet, or from elsewhere, gets none:
// what makes the copies cannot put its finalizer on the mirror.
func TestCopiesByTheirSource(t *testing.T) {
	w := newWorld(t)
	snapshots, tenant := w.as("system:serviceaccount:kube-system:snapshot-controller"), w.as("tenant")
	const said = "a copy of this claim begins with it"
	for _, finalizer := range []string{"snapshot.storage.kubernetes.io/pvc-as-source-protection", "provisioner.storage.kubernetes.io/cloning-protection"} {
		early := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{finalizer} }
		for what, edit := range map[string]func(*corev1.PersistentVolumeClaim){
			"of the class": ofClass("pvc-mirror"), "of a family": ofClass("course-7"), "by annotation": annotated(names.Origin(), "a/b"),
		} {
			w.refused("a mirror "+what+" that comes with "+finalizer, said, w.creates(tenant, w.claim("new", edit, early)))
			mirror := w.claim("", edit)
			mirror.GenerateName = "mirror-"
			stored(w, mirror)
			for _, subresource := range []string{"", "status"} {
				for form, write := range w.byEveryPatch(snapshots, mirror, subresource, fields{"metadata": {"finalizers": []any{"kubernetes.io/pvc-protection", finalizer}}}) {
					w.refused("to put it on a mirror "+what+" by "+form+" "+subresource, said, write)
				}
			}
		}
		plain := w.claim("")
		plain.GenerateName = "plain-"
		stored(w, plain)
		w.passes("on another claim", w.patches(snapshots, plain, fmt.Sprintf(`{"metadata":{"finalizers":["kubernetes.io/pvc-protection",%q]}}`, finalizer)))
		had := w.claim("", ofClass("pvc-mirror"), early) // by an administrator, or before the policy
		had.GenerateName = "had-"
		stored(w, had)
		w.passes("another edit of one that has it", w.patches(tenant, had, `{"metadata":{"labels":{"a":"b"}}}`))
		takenOff := `{"metadata":{"finalizers":["kubernetes.io/pvc-protection"]}}`
		w.passes("to take it off", w.patches(snapshots, had, takenOff))
		w.must(w.Patch(w.Context(), had, client.RawPatch(types.MergePatchType, []byte(takenOff))), "take it off")
	}
}

// A snapshot that is there can be worked on and deleted, though its claim's name is a
// mirror's by now; it cannot be turned to a mirror.
func TestSnapshotsThatAreThere(t *testing.T) {
	w := newWorld(t)
	controller := w.as("system:serviceaccount:kube-system:snapshot-controller")
	stored(w, w.claim("mirror", ofClass("pvc-mirror")))
	stored(w, w.claim("plain"))
	there := stored[client.Object](w, snapshotOf(w.namespace, "mirror")) // by an administrator
	w.passes("a finalizer of it", w.patches(controller, there, `{"metadata":{"finalizers":["example.com/a"]}}`))
	other := snapshotOf(w.namespace, "plain")
	other.SetName("other")
	stored[client.Object](w, other)
	w.refused("to turn one to a mirror", "a snapshot of it would outlive the grant", w.patches(controller, other, `{"spec":{"source":{"persistentVolumeClaimName":"mirror"}}}`))
	generated := &unstructured.Unstructured{Object: snapshotOf(w.namespace, "mirror").Object}
	generated.SetName("")
	generated.SetGenerateName("s-")
	w.refused("one of a generated name", "a snapshot of it would outlive the grant", w.creates(w.as("tenant"), generated))
}
