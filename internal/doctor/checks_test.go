package doctor_test

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/doctor"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

var (
	names mooringapi.Names
	now   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// healthy returns a patient that nothing is wrong with: one installation, one
// class, one bound mirror.
func healthy() *doctor.Patient {
	return &doctor.Patient{
		Names:     names,
		Command:   "v0.1.0",
		Reference: doctor.Kept,
		Classes:   []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror"}, Provisioner: names.Provisioner()}},
		Deployments: []appsv1.Deployment{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring", Labels: map[string]string{"app.kubernetes.io/instance": "mooring", "app.kubernetes.io/version": "0.1.0"}},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "mooring"}}},
			Status:     appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 2},
		}},
		Leases: []coordinationv1.Lease{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring." + names.Provisioner()},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("mooring-0"), RenewTime: &metav1.MicroTime{Time: now.Add(-time.Second)}, LeaseDurationSeconds: ptr.To[int32](15)},
		}},
		Claims: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "m", UID: "u1"},
			Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("pvc-mirror"), VolumeName: "pvc-u1"},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		}},
		Volumes:  []corev1.PersistentVolume{mirrorVolume("u1", "b", "m")},
		Rights:   map[string][]string{},
		Policies: guardPolicies("fence-claims", "fence-volumes", "grants", "snapshots", "clones", "mirror-claims"),
		Bindings: guardBindings("fence-claims", "fence-volumes", "grants", "snapshots", "clones", "mirror-claims"),
	}
}

func mirrorVolume(uid types.UID, namespace, name string) corev1.PersistentVolume {
	return corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:   mirror.VolumeName(uid),
			Labels: map[string]string{names.OriginLabel(): mirror.OriginHash(types.NamespacedName{Namespace: "a", Name: "data"})},
			Annotations: map[string]string{
				names.MirrorClaimUID(): string(uid), names.MirrorClaim(): namespace + "/" + name, names.OriginClaim(): "a/data", names.ServedBy(): "mooring-system/mooring",
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "nfs.csi.k8s.io", VolumeHandle: "handle-" + string(uid)}},
		},
	}
}

func runs(p *doctor.Patient, image string) {
	p.Deployments[0].Spec.Template.Spec.Containers = []corev1.Container{{Name: "controller", Image: image}}
}

func said(reason mirror.Reason) []corev1.PersistentVolumeClaimCondition {
	return []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: corev1.ConditionFalse, Reason: string(reason), Message: "why",
	}}
}

func TestFindings(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*doctor.Patient)
		// want are check, level, object and a part of the message; none: healthy.
		want [4]string
	}{
		{"healthy", func(*doctor.Patient) {}, [4]string{}},
		{"gate off", func(p *doctor.Patient) { p.Reference = doctor.Dropped }, [4]string{"references", "note", "", "drops a dataSourceRef"}},
		{"gate unknown", func(p *doctor.Patient) { p.Reference = "" }, [4]string{"references", "note", "", "could not be asked"}},
		{"no class", func(p *doctor.Patient) { p.Classes = nil }, [4]string{"classes", "problem", "", "no StorageClass has the provisioner"}},
		{"classes hidden", func(p *doctor.Patient) { p.Classes, p.Hidden = nil, []string{"storageclasses"} }, [4]string{}},
		{"class with a parameter", func(p *doctor.Patient) { p.Classes[0].Parameters = map[string]string{"x": "y"} }, [4]string{"classes", "problem", "storageclass/pvc-mirror", "parameter x: y"}},
		{"class that can grow", func(p *doctor.Patient) { p.Classes[0].AllowVolumeExpansion = ptr.To(true) }, [4]string{"classes", "problem", "storageclass/pvc-mirror", "allows expansion"}},
		{"class that misspells Delete", func(p *doctor.Patient) { p.Classes[0].Annotations = map[string]string{names.OnRevoke(): "delete"} }, [4]string{"classes", "problem", "storageclass/pvc-mirror", "means Report"}},
		{"default class", func(p *doctor.Patient) {
			p.Classes[0].Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}, [4]string{"classes", "problem", "storageclass/pvc-mirror", "default class"}},
		{"no Pod ready", func(p *doctor.Patient) { p.Deployments[0].Status.ReadyReplicas = 0 }, [4]string{"controller", "problem", "deployment/mooring-system/mooring", "none of its 2 Pods"}},
		{"nobody leads", func(p *doctor.Patient) { p.Leases[0].Spec.RenewTime.Time = now.Add(-time.Minute) }, [4]string{"controller", "problem", "deployment/mooring-system/mooring", "renewed last 1m0s ago"}},
		{"nobody holds the lease", func(p *doctor.Patient) { p.Leases[0].Spec.HolderIdentity = nil }, [4]string{"controller", "problem", "deployment/mooring-system/mooring", "no replica leads"}},
		{"a cleanup holds the lease", func(p *doctor.Patient) { p.Leases[0].Spec.HolderIdentity = ptr.To("x_cleanup") }, [4]string{"controller", "problem", "deployment/mooring-system/mooring", "cleanup holds"}},
		{"no lease", func(p *doctor.Patient) { p.Leases = nil }, [4]string{"controller", "note", "deployment/mooring-system/mooring", "no lease"}},
		{"another version by its label", func(p *doctor.Patient) { p.Deployments[0].Labels["app.kubernetes.io/version"] = "0.2.0" },
			[4]string{"controller", "note", "deployment/mooring-system/mooring", "it runs version 0.2.0, and this command is 0.1.0"}},
		{"another version by its image", func(p *doctor.Patient) { runs(p, "r.example.com:5000/mooring:v0.3.0@sha256:00") },
			[4]string{"controller", "note", "deployment/mooring-system/mooring", "it runs version 0.3.0, and this command is 0.1.0"}},
		{"the same version by an image without tag", func(p *doctor.Patient) { runs(p, "r.example.com:5000/mooring@sha256:00") }, [4]string{}},
		{"a version that is not seen", func(p *doctor.Patient) { delete(p.Deployments[0].Labels, "app.kubernetes.io/version") },
			[4]string{"controller", "note", "deployment/mooring-system/mooring", "its version cannot be seen"}},
		{"a command built between releases", func(p *doctor.Patient) { p.Command = "v0.1.0-12-gabcdef0-dirty"; runs(p, "mooring:0.3.0") }, [4]string{}},
		{"rights lacking", func(p *doctor.Patient) { p.Rights["sa"] = []string{"patch persistentvolumes"} }, [4]string{"rights", "problem", "user/sa", "patch persistentvolumes"}},
		{"a driver without recipe", func(p *doctor.Patient) {
			p.Volumes = append(p.Volumes, corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "new.example.com", VolumeHandle: "h"}},
			}})
		}, [4]string{"drivers", "note", "csidriver/new.example.com", "cannot be mirrored"}},
		{"one handle twice", func(p *doctor.Patient) {
			twin := mirrorVolume("u2", "b", "n")
			twin.Spec.CSI.VolumeHandle = "handle-u1"
			p.Volumes = append(p.Volumes, twin)
		}, [4]string{"handles", "problem", "namespace/b", "m and n"}},
		{"revoked", func(p *doctor.Patient) { p.Claims[0].Status.Conditions = said(mirror.NotShared) }, [4]string{"mirrors", "problem", "pvc/b/m", "Revoked: why (NotShared)"}},
		{"unclear", func(p *doctor.Patient) { p.Claims[0].Status.Conditions = said(mirror.OriginLost) }, [4]string{"mirrors", "problem", "pvc/b/m", "Unclear"}},
		{"lost", func(p *doctor.Patient) { p.Claims[0].Status.Phase = corev1.ClaimLost }, [4]string{"mirrors", "problem", "pvc/b/m", "Lost"}},
		{"refused", func(p *doctor.Patient) {
			p.Claims[0].Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending, Conditions: said(mirror.TooLarge)}
		}, [4]string{"mirrors", "problem", "pvc/b/m", "Refused"}},
		{"waiting for its origin", func(p *doctor.Patient) {
			p.Claims[0].Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending, Conditions: said(mirror.OriginPending)}
		}, [4]string{}},
		{"nobody serves it", func(p *doctor.Patient) { p.Claims[0].Status.Phase = corev1.ClaimPending }, [4]string{"mirrors", "problem", "pvc/b/m", "nobody has said anything"}},
		{"not Retain", func(p *doctor.Patient) {
			p.Volumes[0].Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}, [4]string{"mirrors", "problem", "pv/pvc-u1", "not Retain"}},
		{"an instance that is gone", func(p *doctor.Patient) { p.Volumes[0].Annotations[names.ServedBy()] = "old/mooring" }, [4]string{"served", "problem", "instance/old/mooring", "1 mirrors"}},
		{"an origin held", func(p *doctor.Patient) {
			p.Claims = append(p.Claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
				Namespace: "a", Name: "data", Finalizers: []string{names.Finalizer()}, DeletionTimestamp: &metav1.Time{Time: now}}})
		}, [4]string{"origins", "problem", "pvc/a/data", "1 mirrors reach its data"}},
		{"deletions stopped", func(p *doctor.Patient) {
			p.Brakes = []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring-brake"}, Data: map[string]string{"state": "engaged", "revoked": "99", "limit": "20"}}}
		}, [4]string{"brake", "problem", "configmap/mooring-system/mooring-brake", "99 mirrors lost their grant"}},
		{"deletions go on", func(p *doctor.Patient) {
			p.Brakes = []corev1.ConfigMap{{Data: map[string]string{"state": "lifted"}}}
		}, [4]string{}},
		{"other people's claims", func(p *doctor.Patient) {
			p.Claims = append(p.Claims, corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}})
		}, [4]string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := healthy()
			tc.change(p)
			found := p.Findings(now)
			if tc.want == [4]string{} {
				if len(found) > 0 {
					t.Fatalf("found %+v in a healthy cluster", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %+v, want one", found)
			}
			got := found[0]
			if got.Check != tc.want[0] || string(got.Level) != tc.want[1] || got.Object != tc.want[2] || !strings.Contains(got.Message, tc.want[3]) || got.Remedy == "" {
				t.Errorf("found %+v, want %q", got, tc.want)
			}
		})
	}
}

// Nobody runs it: said once, and not again as mirrors that nobody serves where
// that is hidden.
func TestNoController(t *testing.T) {
	p := healthy()
	p.Deployments, p.Leases = nil, nil
	found := p.Findings(now)
	if len(found) != 2 || found[0].Check != "controller" || found[1].Check != "served" {
		t.Errorf("found %+v", found)
	}
	p.Hidden = []string{"deployments of all namespaces"}
	if found := p.Findings(now); len(found) != 0 {
		t.Errorf("what is hidden is a finding: %+v", found)
	}
}

// Policies are a finding only where they can deny volumes and a volume was
// denied.
func TestPolicies(t *testing.T) {
	policy := func(name, resource string) admissionv1.ValidatingAdmissionPolicy {
		rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}}
		return admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
		}}
	}
	binding := func(name, of string, action admissionv1.ValidationAction) admissionv1.ValidatingAdmissionPolicyBinding {
		return admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: of, ValidationActions: []admissionv1.ValidationAction{action},
		}}
	}
	p := healthy()
	p.Policies = append(p.Policies, policy("volumes", "persistentvolumes"), policy("pods", "pods"), admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "empty"}})
	p.Bindings = append(p.Bindings,
		binding("denies", "volumes", admissionv1.Deny), binding("warns", "volumes", admissionv1.Warn),
		binding("of-pods", "pods", admissionv1.Deny), binding("of-none", "missing", admissionv1.Deny), binding("of-empty", "empty", admissionv1.Deny),
	)
	if found := p.Findings(now); len(found) > 0 {
		t.Errorf("nothing was denied, and found: %+v", found)
	}
	p.Claims[0].Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: corev1.ConditionFalse, Reason: string(mirror.VolumeRejected),
	}}
	var got []string
	for _, finding := range p.Findings(now) {
		if finding.Check == "policies" {
			got = append(got, finding.Object)
		}
	}
	if len(got) != 1 || got[0] != "validatingadmissionpolicybinding/denies" {
		t.Errorf("found %v", got)
	}
}

// What could not be looked at is not well.
func TestUnseen(t *testing.T) {
	p := healthy()
	if got := p.Unseen(); len(got) > 0 {
		t.Errorf("unseen: %v", got)
	}
	p.Hidden = []string{"persistentvolumes"}
	if got := strings.Join(p.Unseen(), " "); got != "drivers handles mirrors served origins" {
		t.Errorf("unseen: %v", got)
	}
}
