package cli

import (
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/internal/recipe"
)

// The scenes of doctor, each with one thing that is wrong, and of the commands
// that ask no cluster.

// healthy is a cluster with an installation, in which nothing is wrong.
func healthy(changes ...func(*estate)) func(*fakeAPI) {
	return func(f *fakeAPI) {
		cluster(append([]func(*estate){bound}, changes...)...)(f)
		f.keepsReference = true
		f.add(deployment(1), lease("mooring-0", time.Now()))
		for _, purpose := range []string{"fence-claims", "fence-volumes", "grants", "snapshots", "clones", "mirror-claims"} {
			f.add(guard(purpose), guardBinding(purpose, admissionv1.Deny))
		}
	}
}

// guard is a policy or fence as the chart installs it, and guardBinding what binds it.
func guard(purpose string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: purpose + ".mooring.mooring-system"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConditions: []admissionv1.MatchCondition{{
			Name: "is-mooring", Expression: `request.userInfo.username in ["system:serviceaccount:mooring-system:mooring"]`}}},
	}
}

func guardBinding(purpose string, action admissionv1.ValidationAction) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: purpose + ".mooring.mooring-system"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: purpose + ".mooring.mooring-system",
			ValidationActions: []admissionv1.ValidationAction{action}},
	}
}

func deployment(ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring", Labels: map[string]string{
			"app.kubernetes.io/name": "mooring", "app.kubernetes.io/instance": "mooring", "app.kubernetes.io/version": "1.2.3"}},
		Spec:   appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "mooring"}}},
		Status: appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: ready},
	}
}

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring." + newEstate().names.Provisioner()},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To[int32](3600)},
	}
}

func doctorScenes() []scene {
	with := func(change func(*fakeAPI), changes ...func(*estate)) func(*fakeAPI) {
		return func(f *fakeAPI) { healthy(changes...)(f); change(f) }
	}
	nothing := func(*fakeAPI) {}
	all := []scene{
		{state: "healthy", arrange: healthy()},
		{state: "seen-by-a-tenant", arrange: tenant(bound)},
		{state: "no-receipts", args: "--receipts testdata/none", arrange: healthy()},
		{state: "finds-references", arrange: with(func(f *fakeAPI) { f.keepsReference = false })},
		{state: "finds-classes", arrange: with(nothing, func(e *estate) {
			e.class.Parameters, e.class.AllowVolumeExpansion = map[string]string{"acces": "ReadOnly"}, ptr.To(true)
			e.class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		})},
		{state: "finds-controller", arrange: with(func(f *fakeAPI) { f.add(deployment(0), lease("cleanup-of-mooring", time.Now())) })},
		{state: "finds-rights", arrange: with(func(f *fakeAPI) { f.denies = true })},
		{state: "finds-policies", arrange: with(addPolicy, unboundClaim, said(mirror.VolumeRejected, "a policy denies it"))},
		{state: "finds-fences", arrange: with(func(f *fakeAPI) {
			f.add(guard("records"), guardBinding("fence-volumes", admissionv1.Audit), guardBinding("grants", admissionv1.Warn))
		})},
		{state: "finds-drivers", arrange: with(func(f *fakeAPI) { f.add(csiVolume("strange", "pvc-strange", "team-c")) })},
		{state: "finds-handles", arrange: with(func(f *fakeAPI) {
			f.add(csiVolume("one", "shared", "team-c"), csiVolume("two", "shared", "team-c"))
		})},
		{state: "finds-mirrors", arrange: with(nothing, revoked, func(e *estate) { e.volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete })},
		{state: "finds-served", arrange: with(nothing, func(e *estate) { e.volume.Annotations[e.names.ServedBy()] = "gone/mooring" })},
		{state: "finds-origins", arrange: with(nothing, func(e *estate) { deleted(e.origin) })},
		{state: "finds-brake", arrange: with(func(f *fakeAPI) {
			f.add(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring-brake"},
				Data: map[string]string{"state": "engaged", "since": "2027-01-02T03:04:05Z", "revoked": "40", "limit": "20"}})
		})},
		{state: "finds-receipts", args: "--receipts testdata/receipts", arrange: healthy()},
	}
	for i := range all {
		all[i].command, all[i].outputs = "doctor", people
	}
	return all
}

// unboundClaim takes the claim's volume away again.
func unboundClaim(e *estate) {
	e.volume, e.claim.Spec.VolumeName, e.claim.Status.Phase = nil, "", corev1.ClaimPending
	e.origin.Finalizers = nil
}

// csiVolume is a volume of a driver without recipe, bound in a namespace.
func csiVolume(name, handle, namespace string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: name, UID: types.UID("of-" + name)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "strange.example.com", VolumeHandle: handle}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
}

// addPolicy adds a policy that can deny volumes.
func addPolicy(f *fakeAPI) {
	f.add(&admissionv1.ValidatingAdmissionPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"}, ObjectMeta: metav1.ObjectMeta{Name: "volumes"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumes"}}}}}}},
	}, &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"}, ObjectMeta: metav1.ObjectMeta{Name: "volumes"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "volumes", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	})
}

func offlineScenes() []scene {
	all := []scene{
		{command: "version", state: "release", outputs: []string{"", "json", "yaml"}},
		{command: "drivers", state: "all", outputs: people},
		{command: "drivers", state: "of-a-stranger", args: "new.example.com", outputs: people},
		{command: "drivers", state: "bad-output", outputs: []string{"xml"}},
	}
	for _, driver := range driverNames() {
		all = append(all, scene{command: "drivers", state: "of-" + driver, args: driver, outputs: people})
	}
	return all
}

// driverNames are those of the table that a driver can have: two of its rows
// stand for others.
func driverNames() []string {
	var named []string
	for _, d := range recipe.Drivers().Describe() {
		if !slices.Contains(named, d.Driver) && d.Driver != recipe.InTreeNFS && d.Driver != recipe.UnknownDriver {
			named = append(named, d.Driver)
		}
	}
	return named
}
