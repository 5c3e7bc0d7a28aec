package policies_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

func size(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// A grant that lets in nobody is refused when it is written, and one that lets in
// somebody is not, whatever it looks like.
func TestGrants(t *testing.T) {
	w := newWorld(t)
	owner := w.as("owner")
	broken := stored(w, w.claim("broken", annotated(names.ReadWriteGrant(), "!guest"))) // by an administrator, or before the policy
	for _, text := range []string{
		"", " ", "!example.com/guest", "team!=a", "team notin (a)", "team notin (a, b, c)", "!a,b!=c,d notin (e, f)", ",", "rank>3",
	} {
		for _, key := range []string{names.ReadWriteGrant(), names.ReadOnlyGrant()} {
			w.refused(fmt.Sprintf("the grant %q", text), key, w.creates(owner, w.claim("c", annotated(key, text))))
		}
	}
	plain := stored(w, w.claim("plain"))
	note := fmt.Sprintf(`{"metadata":{"annotations":{%q:"!guest"}}}`, names.ReadWriteGrant())
	w.refused("an update", "lets in no namespace", w.patches(owner, plain, note))
	w.refused("an update through the status", "lets in no namespace", w.patchesStatus(owner, plain, note))
	for _, text := range []string{"", " ", "tomorrow", "2027-06-30", "2027-06-30T18:00:00"} {
		w.refused(fmt.Sprintf("the end %q", text), "is not an RFC 3339 time", w.creates(owner, w.claim("c", annotated(names.GrantExpires(), text))))
	}
	ended := stored(w, w.claim("ended", annotated(names.GrantExpires(), "")))
	w.passes("another edit of a claim whose end was broken before", w.patches(owner, ended, `{"metadata":{"labels":{"a":"b"}}}`))
	for _, text := range []string{
		"team=a", "team==a", "team in (a, b)", "team", "team,!guest", "guest notin (yes, no),team", "kubernetes.io/metadata.name",
		"kubernetes.io/metadata.name in (a),x!=y", " team = a ", "team=", "a notin (b),c in (d, e)",
	} {
		w.passes(fmt.Sprintf("the grant %q", text), w.creates(owner, w.claim("c", annotated(names.ReadWriteGrant(), text))))
	}
	w.passes("an end", w.creates(owner, w.claim("c", annotated(names.GrantExpires(), "2027-06-30T18:00:00+02:00"))))
	w.passes("another edit of a claim whose grant was broken before", w.patches(owner, broken, `{"metadata":{"labels":{"a":"b"}}}`))
	w.passes("an administrator's", w.creates(w, w.claim("c", annotated(names.ReadWriteGrant(), ""))))
	w.passes("a restore tool's", w.creates(w.as(restorer, exempt), w.claim("c", annotated(names.ReadWriteGrant(), ""))))
}

// The policy and the controller read the same grants alike: what parses, and says what
// a namespace must have, passes; what parses, and does not say it, is refused.
func TestGrantsAreReadAsByTheController(t *testing.T) {
	w := newWorld(t)
	owner := w.as("owner")
	w.refused("a blank grant", "lets in no namespace", w.creates(owner, w.claim("c", annotated(names.ReadWriteGrant(), ""))))
	requirements := []string{
		"a", "!a", "a=b", "a == b", "a!=b", "a != b", "a in (b,c)", "a\tin(b)", "a notin (b, c)", "a\nnotin(b)", "a>1", "a < 1", "a=", "a!=", "! a", "a in ( )", "a notin ()",
		"example.com/in=notin", "notin-x", "x.in in (in,notin)",
	}
	texts := append([]string{"", " , ", "\t\n"}, requirements...)
	for _, one := range requirements {
		for _, two := range requirements {
			texts = append(texts, one+","+two)
		}
	}
	parsed := 0
	for _, text := range texts {
		if _, err := labels.Parse(text); err != nil {
			continue // which CEL cannot tell
		}
		parsed++
		_, empty := mooringapi.ParseSelector(text)
		if err := w.creates(owner, w.claim("c", annotated(names.ReadWriteGrant(), text)))(); (err == nil) != (empty == nil) {
			t.Errorf("the grant %q: the controller says %v, the policy %v", text, empty, err)
		}
	}
	if parsed < 300 {
		t.Errorf("only %d of %d grants parse", parsed, len(texts))
	}
}

// Labels that grants rely on can be written only by who is listed.
func TestNamespaceLabels(t *testing.T) {
	w := newWorld(t)
	tenant, portal := w.as("tenant"), w.as(labeler)
	with := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-new", Labels: labels}}
	}
	own := stored(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-own", Labels: map[string]string{protectedKey: "tenant"}}})
	const said = "volumes are shared by this label"
	w.refused("the label at creation", said, w.creates(tenant, with(map[string]string{protectedKey: "tenant"})))
	for what, patch := range map[string]string{
		"to change it": `{"metadata":{"labels":{"example.com/type":"staff"}}}`, "to remove it": `{"metadata":{"labels":{"example.com/type":null}}}`,
	} {
		w.refused(what, said, w.patches(tenant, own, patch))
		w.refused(what+" through the status", said, w.patchesStatus(tenant, own, patch))
	}
	bare := stored(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-bare"}})
	w.refused("to add it", said, w.patches(tenant, bare, `{"metadata":{"labels":{"example.com/type":"tenant"}}}`))
	w.passes("another label", w.creates(tenant, with(map[string]string{"team": "a"})))
	w.passes("another label beside it", w.patches(tenant, own, `{"metadata":{"labels":{"team":"a"}}}`))
	w.passes("who is listed", w.patches(portal, own, `{"metadata":{"labels":{"example.com/type":"staff"}}}`))
	w.passes("an administrator", w.creates(w, with(map[string]string{protectedKey: "tenant"})))
}

func snapshotOf(namespace, claim string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
		"metadata": map[string]any{"namespace": namespace, "name": "s"},
		"spec":     map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}},
	}}
}

// Mirrors are neither snapshotted nor cloned; other claims are.
func TestCopies(t *testing.T) {
	w := newWorld(t)
	tenant := w.as("tenant")
	mirrors := []*corev1.PersistentVolumeClaim{
		stored(w, w.claim("of-the-class", ofClass("pvc-mirror"))), stored(w, w.claim("of-another", ofClass("lab"))),
		stored(w, w.claim("of-a-family", ofClass("course-7"))), stored(w, w.claim("by-annotation", annotated(names.Origin(), "a/b"))),
	}
	plain := stored(w, w.claim("plain"))
	cloneOf := func(name string, byRef bool) *corev1.PersistentVolumeClaim {
		return w.claim("clone", func(c *corev1.PersistentVolumeClaim) {
			if byRef {
				c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: name}
			} else {
				c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
			}
		})
	}
	for _, claim := range mirrors {
		w.refused("a snapshot of "+claim.Name, "a snapshot of it would outlive the grant", w.creates(tenant, snapshotOf(w.namespace, claim.Name)))
		w.refused("a clone of "+claim.Name, "a clone of it would outlive the grant", w.creates(tenant, cloneOf(claim.Name, false)))
		w.refused("a clone of "+claim.Name+" by reference", "a clone of it would outlive the grant", w.creates(tenant, cloneOf(claim.Name, true)))
		w.refused("a clone of "+claim.Name+" by both, of the empty group", "a clone of it would outlive the grant", w.creates(tenant, w.claim("clone", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(""), Kind: "PersistentVolumeClaim", Name: claim.Name}
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: ptr.To(""), Kind: "PersistentVolumeClaim", Name: claim.Name}
		})))
	}
	w.passes("a snapshot of another claim", w.creates(tenant, snapshotOf(w.namespace, plain.Name)))
	w.passes("a clone of another claim", w.creates(tenant, cloneOf(plain.Name, false)))
	w.passes("a snapshot of nothing", w.creates(tenant, snapshotOf(w.namespace, "missing")))
	w.passes("an administrator's", w.creates(w, snapshotOf(w.namespace, mirrors[0].Name)))
	empty := newNamespace(w, "empty")
	w.passes("a snapshot in a namespace without claims", w.creates(tenant, snapshotOf(empty, "missing")))
}

func newNamespace(w *world, name string) string {
	w.Helper()
	return stored(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}}).Name
}

// What a mirror claim was judged by stays.
func TestMirrorClaims(t *testing.T) {
	w := newWorld(t)
	tenant := w.as("tenant")
	mirror := stored(w, w.claim("mirror", ofClass("pvc-mirror"), annotated(names.Origin(), "a/b")))
	byRef := stored(w, w.claim("by-reference", ofClass("pvc-mirror")))
	plain := stored(w, w.claim("plain"))
	set := func(value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, names.Origin(), value)
	}
	for what, write := range map[string]func() error{
		"to change the origin":                    w.patches(tenant, mirror, set(`"c/d"`)),
		"to remove it":                            w.patches(tenant, mirror, set("null")),
		"to add it":                               w.patches(tenant, byRef, set(`"c/d"`)),
		"to change it through the status":         w.patchesStatus(tenant, mirror, set(`"c/d"`)),
		"to make another claim one by annotation": w.patches(tenant, plain, set(`"c/d"`)),
	} {
		w.refused(what, "cannot be changed: create another claim", write)
	}
	attributes := func(edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		return w.claim("c", append(edits, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To("fast") })...)
	}
	const said = "fast: the claim is a mirror"
	w.refused("a volume attributes class", said, w.creates(tenant, attributes(ofClass("pvc-mirror"))))
	w.refused("one on a mirror by annotation", said, w.creates(tenant, attributes(annotated(names.Origin(), "a/b"))))
	w.refused("one set later", said, w.patches(tenant, w.bound(mirror), `{"spec":{"volumeAttributesClassName":"fast"}}`))
	w.passes("one on another claim", w.creates(tenant, attributes()))
	w.passes("a mirror claim", w.creates(tenant, w.claim("c", ofClass("pvc-mirror"), annotated(names.Origin(), "a/b"))))
	w.passes("another edit", w.patches(tenant, mirror, `{"metadata":{"labels":{"a":"b"}}}`))
	w.passes("an administrator's edit", w.patches(w, mirror, set(`"c/d"`)))
	had := stored(w, attributes(ofClass("pvc-mirror"), func(c *corev1.PersistentVolumeClaim) { c.Name = "had" })) // by an administrator
	w.passes("another edit of one that has a class", w.patches(tenant, had, `{"metadata":{"labels":{"a":"b"}}}`))
}

// bound says of a claim that it is bound: only then can it be grown or changed.
func (w *world) bound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	w.Helper()
	claim.Status.Phase = corev1.ClaimBound
	w.must(w.Status().Patch(w.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`))), "say that a claim is bound")
	return claim
}

// The finalizer and the record are Mooring's.
func TestRecords(t *testing.T) {
	w := newWorld(t)
	tenant, controller := w.as("tenant"), w.mooring("mooring")
	plain := stored(w, w.claim("plain"))
	held := stored(w, w.claim("held", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{names.Finalizer(), "example.com/other"} }))
	w.Cleanup(func() {
		_ = w.Patch(context.Background(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	const said = "is added and removed by Mooring alone"
	w.refused("to take the finalizer off", said, w.patches(tenant, held, `{"metadata":{"finalizers":["example.com/other"]}}`))
	w.refused("to take it off through the status", said, w.patchesStatus(tenant, held, `{"metadata":{"finalizers":["example.com/other"]}}`))
	add := fmt.Sprintf(`{"metadata":{"finalizers":["kubernetes.io/pvc-protection",%q]}}`, names.Finalizer())
	w.refused("to add it", said, w.patches(tenant, plain, add))
	w.passes("another's finalizer", w.patches(tenant, held, fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, names.Finalizer())))
	w.passes("Mooring's", w.patches(controller, plain, add))
	w.passes("the cleanup's", w.patches(w.mooring("mooring-cleanup"), held, `{"metadata":{"finalizers":["example.com/other","kubernetes.io/pvc-protection"]}}`))
	w.passes("a restore tool's", w.patches(w.as(restorer, exempt), plain, add))

	volume := stored(w, w.mirrorVolume("kept", plain))
	const written = "Mooring alone writes"
	for what, patch := range map[string]string{
		"to change the record": fmt.Sprintf(`{"metadata":{"annotations":{%q:"c/d"}}}`, names.OriginClaim()),
		"to remove it":         fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, names.MirrorClaimUID()),
		"to remove all":        `{"metadata":{"annotations":null}}`,
		"to add to it":         fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, names.AdoptedAt()),
		"to change the label":  fmt.Sprintf(`{"metadata":{"labels":{%q:"x"}}}`, names.OriginLabel()),
		"to say nobody's":      `{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":null}}}`,
		"to say another's":     `{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"nfs.csi.k8s.io"}}}`,
	} {
		w.refused(what, written, w.patches(tenant, volume, patch))
		w.refused(what+" through the status", written, w.patchesStatus(tenant, volume, patch))
	}
	other := stored(w, w.mirrorVolume("other", plain, func(v *corev1.PersistentVolume) {
		v.Annotations, v.Labels, v.Spec.StorageClassName = map[string]string{"pv.kubernetes.io/provisioned-by": "a"}, nil, "standard"
	}))
	w.refused("to say Mooring's of another volume", written, w.patches(tenant, other, fmt.Sprintf(`{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":%q}}}`, names.Provisioner())))
	w.passes("another's of another volume", w.patches(tenant, other, `{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"b"}}}`))
	w.refused("a volume with a record", written, w.creates(tenant, w.mirrorVolume("made", plain)))
	w.passes("another annotation", w.patches(tenant, volume, `{"metadata":{"annotations":{"a":"b"}}}`))
	w.passes("a restore tool's volume", w.creates(w.as(restorer, exempt), w.mirrorVolume("made", plain)))
}
