package integration_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/chart"
)

// scene is what a row of TestEveryReason starts from: an owner's namespace,
// and a tenant's namespace with the label that grants ask for.
type scene struct {
	*world
	owner, tenant string
}

const tenantsOnly = "type=tenant"

func (s scene) shared(storage volumeEdit, edits ...claimEdit) origin {
	return s.originOf(s.owner, "data", storage, append([]claimEdit{granting(tenantsOnly)}, edits...)...)
}

// onlyWithGate marks rows whose claim the API server does not keep with the
// gate off.
type reasonRow struct {
	reason       mirror.Reason
	name         string
	onlyWithGate bool
	claim        func(s scene) *corev1.PersistentVolumeClaim
}

var reasonRows = []reasonRow{
	{reason: mirror.NoOrigin, name: "neither form", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), withoutReference)
	}},
	{reason: mirror.OriginMalformed, name: "an annotation that is no reference", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), withoutReference, annotating(names.Origin(), "no slash\nat all"))
	}},
	{reason: mirror.OriginAmbiguous, name: "two forms, two origins", onlyWithGate: true, claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), annotating(names.Origin(), s.owner+"/other"))
	}},
	{reason: mirror.OriginKindUnsupported, name: "a snapshot", onlyWithGate: true, claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef.Kind, c.Spec.DataSourceRef.APIGroup = "VolumeSnapshot", ptr.To("snapshot.storage.k8s.io")
		})
	}},
	{reason: mirror.SameNamespace, name: "the owner's own namespace", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.owner, "m", s.shared(nfsCSI))
	}},
	{reason: mirror.ClaimHasSelector, name: "a selector", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		})
	}},
	{reason: mirror.ClaimHasDataSource, name: "a clone", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), withoutReference, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "other"}
		})
	}},
	{reason: mirror.ClaimNamesVolume, name: "a volume of its choice", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = s.prefix + "-mine" })
	}},
	{reason: mirror.ClaimHasAttributesClass, name: "attributes that the driver would give the origin", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeAttributesClassName = ptr.To("fast")
		})
	}},
	{reason: mirror.ClassNotFound, name: "no such class", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), ofClass(s.prefix+"-missing"), annotating(names.Origin(), s.owner+"/data"))
	}},
	{reason: mirror.ClassParameters, name: "an unknown parameter", claim: func(s scene) *corev1.PersistentVolumeClaim {
		class := s.class("odd", func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"acess": "ReadOnly"} })
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), ofClass(class.Name))
	}},
	{reason: mirror.ClassAllowsExpansion, name: "expansion", claim: func(s scene) *corev1.PersistentVolumeClaim {
		class := s.class("growing", func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = ptr.To(true) })
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), ofClass(class.Name))
	}},
	{reason: mirror.NotShared, name: "another namespace's label", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.namespace("stranger", nil), "m", s.shared(nfsCSI))
	}},
	{reason: mirror.OriginPending, name: "no volume yet", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.pendingOrigin(s.owner, "data", granting(tenantsOnly)))
	}},
	{reason: mirror.OriginTerminating, name: "held in deletion", claim: func(s scene) *corev1.PersistentVolumeClaim {
		o := s.shared(nfsCSI, func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"example.com/held"} })
		s.must(s.Delete(s.Context(), o.PersistentVolumeClaim), "delete the origin")
		s.Cleanup(func() {
			_ = s.Patch(context.Background(), o.PersistentVolumeClaim, jsonMerge(`{"metadata":{"finalizers":null}}`))
		})
		return s.mirror(s.tenant, "m", o)
	}},
	{reason: mirror.OriginLost, name: "its volume deleted by force", claim: func(s scene) *corev1.PersistentVolumeClaim {
		o := s.shared(nfsCSI)
		s.must(s.Delete(s.Context(), o.volume), "delete the origin's volume")
		s.merge(o.volume, `{"metadata":{"finalizers":null}}`)
		s.until("origin lost", func(ctx context.Context) string {
			s.must(s.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
			if o.Status.Phase != corev1.ClaimLost {
				return string(o.Status.Phase)
			}
			return ""
		}, o.PersistentVolumeClaim)
		return s.mirror(s.tenant, "m", o)
	}},
	{reason: mirror.OriginIsMirror, name: "a mirror", claim: func(s scene) *corev1.PersistentVolumeClaim {
		first := s.mirror(s.tenant, "first", s.shared(nfsCSI), granting(tenantsOnly))
		s.isBound(first)
		other := s.namespace("other-tenant", map[string]string{"type": "tenant"})
		return s.mirror(other, "m", origin{PersistentVolumeClaim: first})
	}},
	{reason: mirror.SourceUnsupported, name: "a directory of a node", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(func(v *corev1.PersistentVolume) {
			v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/srv"}
		}))
	}},
	{reason: mirror.DriverUnknown, name: "a driver whose volumes are attached", claim: func(s scene) *corev1.PersistentVolumeClaim {
		name := s.prefix + ".example.com"
		s.driver(name, true)
		return s.mirror(s.tenant, "m", s.shared(csiOf(name)))
	}},
	{reason: mirror.DriverRefused, name: "an NFS volume without server", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(func(v *corev1.PersistentVolume) {
			nfsCSI(v)
			delete(v.Spec.CSI.VolumeAttributes, "server")
		}))
	}},
	{reason: mirror.ReadOnlyUnsupported, name: "read-only of an unknown driver", claim: func(s scene) *corev1.PersistentVolumeClaim {
		name := s.prefix + ".example.com"
		s.driver(name, false)
		return s.mirror(s.tenant, "m", s.shared(csiOf(name)), withModes(corev1.ReadOnlyMany))
	}},
	{reason: mirror.AccessModeUnsupported, name: "ReadWriteOnce", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), withModes(corev1.ReadWriteOnce))
	}},
	{reason: mirror.AccessModeUnsupported, name: "ReadWriteOncePod", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), withModes(corev1.ReadWriteOncePod))
	}},
	{reason: mirror.ClassReadOnly, name: "a read-only class", claim: func(s scene) *corev1.PersistentVolumeClaim {
		class := s.class("readonly", func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"access": "ReadOnly"} })
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), ofClass(class.Name))
	}},
	{reason: mirror.GrantReadOnly, name: "a read-only grant", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.origin(s.owner, "data", annotating(names.ReadOnlyGrant(), tenantsOnly)))
	}},
	{reason: mirror.OriginExclusive, name: "an origin for one Pod", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI, withModes(corev1.ReadWriteOncePod)))
	}},
	{reason: mirror.OriginReadOnly, name: "an origin that is only read", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI, withModes(corev1.ReadOnlyMany)))
	}},
	{reason: mirror.VolumeModeUnsupported, name: "a block claim", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), inBlockMode)
	}},
	{reason: mirror.VolumeModeUnsupported, name: "a block origin", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI, inBlockMode))
	}},
	{reason: mirror.TooLarge, name: "more than the origin has", claim: func(s scene) *corev1.PersistentVolumeClaim {
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), ofSize("10737418241"))
	}},
	{reason: mirror.DuplicateMirror, name: "a second claim with the origin's handle", claim: func(s scene) *corev1.PersistentVolumeClaim {
		name := s.prefix + ".example.com"
		s.driver(name, false)
		o := s.shared(csiOf(name))
		s.isBound(s.mirror(s.tenant, "first", o))
		return s.mirror(s.tenant, "m", o)
	}},
	{reason: mirror.VolumeNameTaken, name: "a stranger of that name", claim: func(s scene) *corev1.PersistentVolumeClaim {
		o := s.origin(s.owner, "data") // not granted yet
		claim := s.mirror(s.tenant, "m", o)
		s.isRefused(claim, mirror.NotShared)
		s.stranger(claim)
		s.grantTo(o.PersistentVolumeClaim, tenantsOnly)
		return claim
	}},
}

func withoutReference(c *corev1.PersistentVolumeClaim) {
	c.Spec.DataSourceRef = nil
	delete(c.Annotations, names.Origin())
}

func inBlockMode(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
}

// TestEveryReason brings about every reason of the closed list on a real
// control plane, and sees it in the condition, in an event and in what
// mooring explain says.
func TestEveryReason(t *testing.T) {
	onEachGate(t, func(w *world) {
		t := w.T
		for _, row := range reasonRows {
			if row.onlyWithGate && !w.gateOn {
				continue
			}
			t.Run(string(row.reason)+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				w := w.in(t)
				s := scene{world: w, owner: w.namespace("owner", nil), tenant: w.namespace("tenant", map[string]string{"type": "tenant"})}
				claim := row.claim(s)
				condition := s.isRefused(claim, row.reason)
				if strings.ContainsAny(condition.Message, "\n\r\x1b") {
					t.Errorf("the message has control characters: %q", condition.Message)
				}
				s.isGoneOrStranger(claim, row.reason)
				s.isExplained(claim, condition)
			})
		}
	})
}

// TestEveryReasonHasARow keeps the table above complete.
func TestEveryReasonHasARow(t *testing.T) {
	rows := map[mirror.Reason]bool{
		mirror.Mirrored:            true, // what is not refused: every other test
		mirror.OriginBindingBroken: true, // TestOriginBindingBroken
		mirror.MirrorOfAnother:     true, // TestMirrorOfAnother
		mirror.VolumeRejected:      true, // TestVolumeRejected
		mirror.OriginReplaced:      true, // TestRevocation
		mirror.RecordBroken:        true, // TestRecordBroken
		mirror.VolumeLost:          true, // TestVolumeLost
	}
	for _, row := range reasonRows {
		rows[row.reason] = true
	}
	for _, doc := range mirror.Reasons() {
		if !rows[doc.Reason] {
			t.Errorf("reason %s is not brought about by any row", doc.Reason)
		}
	}
}

// TestOriginBindingBroken has an origin that says it is bound to a volume which
// is another claim's. The binder would mend that at once, so it is stopped.
func TestOriginBindingBroken(t *testing.T) {
	for _, shared := range []*sharedWorld{gateOn, gateOff} {
		t.Run(shared.gate, func(t *testing.T) {
			t.Parallel()
			plane := ownPlane(t, shared.plane.Options)
			w := newWorld(t, plane, shared.plane.Options.CrossNamespace)
			install(t, plane, chart.Options{}).replica(t, "mooring-0").start(t)
			w.must(plane.ControllerManager().Kill(), "stop the binder")

			o := w.pendingOrigin(w.namespace("owner", nil), "data", granting(tenantsOnly))
			volume := w.volumeFor(o.PersistentVolumeClaim, func(v *corev1.PersistentVolume) {
				nfsCSI(v)
				v.Spec.ClaimRef.UID = "11111111-2222-3333-4444-555555555555"
			})
			w.merge(o.PersistentVolumeClaim, `{"spec":{"volumeName":"`+volume.Name+`"}}`)
			w.must(w.Status().Patch(w.Context(), o.PersistentVolumeClaim, jsonMerge(`{"status":{"phase":"Bound"}}`)), "say that the origin is bound")
			claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
			w.isExplained(claim, w.isRefused(claim, mirror.OriginBindingBroken))
			w.absent(mirrorVolume(claim))
		})
	}
}

// TestVolumeRejected has an admission policy that lets no mirror volume be made
// for one namespace: the claim is told so, and served when the policy is gone.
func TestVolumeRejected(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		w.rejectVolumesOf(tenant)
		claim := w.mirror(tenant, "m", o)
		said := w.isRefused(claim, mirror.VolumeRejected)
		if !strings.Contains(said.Message, "not in this test") {
			w.Errorf("the message does not say who rejects it: %q", said.Message)
		}
		w.isExplained(claim, said)
	})
}

// rejectVolumesOf makes a policy that refuses volumes for a namespace's claims,
// and waits until it is in force.
func (w *world) rejectVolumesOf(namespace string) {
	w.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metaNamed(w.prefix),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumes"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: "!has(object.spec.claimRef) || object.spec.claimRef.namespace != '" + namespace + "'",
				Message:    "not in this test",
			}},
		},
	}
	w.must(w.Create(w.Context(), policy), "create a policy")
	w.Cleanup(func() { _ = w.Delete(context.Background(), policy) })
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metaNamed(w.prefix),
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: w.prefix, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	w.must(w.Create(w.Context(), binding), "bind the policy")
	w.Cleanup(func() { _ = w.Delete(context.Background(), binding) })
	w.until("the policy is in force", func(ctx context.Context) string {
		trial := &corev1.PersistentVolume{ObjectMeta: metaNamed(w.prefix)}
		inTreeNFS(trial)
		trial.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		trial.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")}
		trial.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: "m"}
		return unless(w.Create(ctx, trial, client.DryRunAll) != nil, "it is not")
	}, policy)
}
