package cli

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// estate is what the scenes are about: team-a's claim data on the volume
// projects, which is shared with namespaces of the label team=b, and team-b's
// claim data, which asks to mirror it. Every scene is this and a change.
type estate struct {
	names        mooringapi.Names
	origin       *corev1.PersistentVolumeClaim
	originVolume *corev1.PersistentVolume
	claim        *corev1.PersistentVolumeClaim
	volume       *corev1.PersistentVolume // the mirror volume, once there is one
	class        *storagev1.StorageClass
	spaces       map[string]map[string]string
	pods         []*corev1.Pod
}

const (
	selectorB = "team=b"
	mirrorUID = "aaaaaaaa-0000-4000-8000-000000000001"
	originUID = "bbbbbbbb-0000-4000-8000-000000000002"
	volumeUID = "cccccccc-0000-4000-8000-000000000003"
	servedBy  = "mooring-system/mooring"
)

func newEstate() *estate {
	e := &estate{spaces: map[string]map[string]string{
		"kube-system": {}, "team-a": {"team": "a"}, "team-b": {"team": "b"}, "team-c": {"team": "c"},
	}}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
	e.class = &storagev1.StorageClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror", Labels: map[string]string{"app.kubernetes.io/name": "mooring"}}, Provisioner: e.names.Provisioner(),
	}
	e.origin = e.newClaim("team-a", "data", originUID)
	e.origin.Annotations = map[string]string{e.names.ReadWriteGrant(): selectorB}
	e.origin.Spec.StorageClassName, e.origin.Spec.VolumeName = ptr.To("nfs"), "projects"
	e.origin.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size}
	e.originVolume = &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: "projects", UID: volumeUID, CreationTimestamp: metav1.NewTime(since)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: "nfs",
			VolumeMode:             ptr.To(corev1.PersistentVolumeFilesystem),
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "data", UID: originUID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/export/projects"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	e.claim = e.newClaim("team-b", "data", mirrorUID)
	e.claim.Annotations = map[string]string{e.names.Origin(): "team-a/data"}
	e.claim.Spec.StorageClassName = ptr.To("pvc-mirror")
	e.claim.Status.Phase = corev1.ClaimPending
	return e
}

func (e *estate) newClaim(namespace, name, uid string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")}},
		},
	}
}

// bound gives the claim the mirror volume that the rules make for it.
func bound(e *estate) {
	decision := mirror.Decide(mirror.Facts{
		Names: e.names, Instance: servedBy, Now: since, Claim: e.claim, Class: e.class, NamespaceLabels: e.spaces["team-b"],
		Origin: e.origin, OriginVolume: e.originVolume,
	})
	if decision.Verdict != mirror.Allow {
		panic("the scenes' mirror is refused: " + decision.Message)
	}
	e.volume = decision.Volume
	e.volume.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}
	e.volume.CreationTimestamp, e.volume.Status.Phase = metav1.NewTime(since), corev1.VolumeBound
	e.claim.Spec.VolumeName, e.claim.Status.Phase = e.volume.Name, corev1.ClaimBound
	e.origin.Finalizers = []string{e.names.Finalizer()}
}

// said has the controller say no to the claim.
func said(reason mirror.Reason, message string) func(*estate) {
	return func(e *estate) { e.say(corev1.ConditionFalse, reason, message) }
}

func (e *estate) say(status corev1.ConditionStatus, reason mirror.Reason, message string) {
	e.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimConditionType(e.names.Condition()), Status: status, Reason: string(reason), Message: message,
		LastTransitionTime: metav1.NewTime(since),
	}}
}

// granted replaces what the origin's owner grants, by the name of an annotation
// without its prefix; "" takes one away.
func granted(pairs ...string) func(*estate) {
	return func(e *estate) {
		for i := 0; i < len(pairs); i += 2 {
			key := e.names.Provisioner() + "/" + pairs[i]
			e.origin.Annotations[key] = pairs[i+1]
			if pairs[i+1] == "" {
				delete(e.origin.Annotations, key)
			}
		}
	}
}

// revoked: the grant ended after the claim was bound, and the controller said so.
func revoked(e *estate) {
	bound(e)
	granted("required-target-ns-labels", "")(e)
	said(mirror.NotShared, "team-a/data is not shared with namespace team-b any more")(e)
	e.volume.Annotations[e.names.RevokedAt()] = since.Format(time.RFC3339)
}

// deleted has somebody delete a claim.
func deleted(claim *corev1.PersistentVolumeClaim) {
	claim.DeletionTimestamp = &metav1.Time{Time: since}
	claim.Finalizers = append(claim.Finalizers, "kubernetes.io/pvc-protection")
}

// used has Pods use a claim.
func used(namespace, claim string, pods ...string) func(*estate) {
	return func(e *estate) {
		for _, name := range pods {
			e.pods = append(e.pods, &corev1.Pod{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
			})
		}
	}
}

// cluster has the estate with these changes.
func cluster(changes ...func(*estate)) func(*fakeAPI) {
	return func(f *fakeAPI) {
		e := newEstate()
		for _, change := range changes {
			change(e)
		}
		e.onto(f)
	}
}

// tenant is cluster, seen with rights in the namespace team-b alone.
func tenant(changes ...func(*estate)) func(*fakeAPI) { return seenFrom("team-b", changes...) }

func seenFrom(namespace string, changes ...func(*estate)) func(*fakeAPI) {
	return func(f *fakeAPI) {
		cluster(changes...)(f)
		f.hidden, f.shown = []string{"api"}, []string{"api/v1/namespaces/" + namespace + "/"}
	}
}

func (e *estate) onto(f *fakeAPI) {
	if e.class != nil {
		f.add(e.class)
	}
	if e.origin != nil {
		f.add(e.origin, e.originVolume)
	}
	if e.claim != nil {
		f.add(e.claim)
	}
	if e.volume != nil {
		f.add(e.volume)
	}
	for name, labels := range e.spaces {
		f.add(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	for _, pod := range e.pods {
		f.add(pod)
	}
}
