package retain

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/choice"
)

const hostile = "a\nb\r\x1b[31m\u202e\u009b\x00"

// situationFrom returns a manifest and a cluster that is changed as the choices
// say.
func situationFrom(t *testing.T, s *choice.Source) (Manifest, Facts) {
	t.Helper()
	manifest := choice.Of(s, nfsManifest(), csiManifest(driverNFS, object{"server": "nas.example.com", "share": "/export/v"}))
	m := parsed(t, manifest)
	var f Facts
	s.Perhaps(func() { f.Claim = claimFrom(s) })
	s.Perhaps(func() {
		f.Live = stored(t, manifest)
		if f.Claim != nil && s.Yes() {
			boundTo(f.Live, f.Claim)
		}
		for range s.Int(4) {
			set(f.Live, s.Text("status/phase", "spec/claimRef/uid", "spec/claimRef/name", "spec/nfs/path", "spec/nfs/readOnly", "spec/csi/volumeHandle",
				"spec/persistentVolumeReclaimPolicy", "spec/mountOptions", "spec/capacity/storage", "spec/unheard", "metadata/labels", "metadata/annotations",
				"metadata/deletionTimestamp", "metadata/uid", "metadata/finalizers", "spec"), valueFrom(s))
		}
	})
	for range s.Int(3) {
		f.Neighbours = append(f.Neighbours, neighbourFrom(s))
	}
	s.Perhaps(func() { f.AllowOverlap = []string{s.Text("other", "v", "", hostile)} })
	return m, f
}

func valueFrom(s *choice.Source) any {
	return choice.Of[any](s, nil, s.Text("Bound", "Available", "Released", "Failed", "Unheard", "uid-c", "c", "Delete", "", hostile), true, int64(7), 1.5,
		object{}, object{"a": "b"}, []any{}, []any{"ro", object{}}, []any{nil})
}

func claimFrom(s *choice.Source) *corev1.PersistentVolumeClaim {
	claim := fittingClaim()
	claim.UID = types.UID(s.Text("uid-c", "uid-d", ""))
	s.Perhaps(func() { claim.Spec.StorageClassName = choice.Of(s, nil, &claim.Namespace) })
	s.Perhaps(func() { claim.Spec.VolumeName = s.Text("v", "other", hostile) })
	s.Perhaps(func() {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{choice.Of(s, corev1.ReadWriteOnce, corev1.ReadOnlyMany)}
	})
	s.Perhaps(func() { claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("11Gi") })
	s.Perhaps(func() { claim.Annotations = s.Map(2, []string{bindCompleted, betaClass}, []string{"yes", "other", ""}) })
	claim.Status.Phase = corev1.PersistentVolumeClaimPhase(s.Text("Pending", "Bound", "Lost", "", "Unheard"))
	return claim
}

func neighbourFrom(s *choice.Source) Neighbour {
	pv := &corev1.PersistentVolume{}
	pv.Name, pv.UID = s.Text("other", "pvc-m", ""), types.UID(s.Text("uid-o", "m"))
	pv.Annotations = s.Map(3, []string{"mirror.example.com/mirror-claim-uid", "mirror.example.com/origin-volume", "mirror.example.com/origin-volume-uid"}, []string{"m", "v", "uid-v", ""})
	pv.Spec.PersistentVolumeReclaimPolicy = choice.Of(s, corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete)
	server, path := s.Text("nas.example.com", "NAS.example.com", "nas", ""), s.Text("/export/v", "/export", "/export/v/x", "/", "//export/../export/v", "", hostile)
	if s.Yes() {
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.Text(driverNFS, "x.example.com"), VolumeHandle: s.Text("h", ""), VolumeAttributes: map[string]string{"server": server, "share": path}}
	} else {
		pv.Spec.NFS = &corev1.NFSVolumeSource{Server: server, Path: path}
	}
	s.Perhaps(func() {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: s.Text("ns", "ns2"), Name: s.Text("c", "c2"), UID: types.UID(s.Text("m", "uid-c", ""))}
	})
	return NeighbourOf(pv)
}

// FuzzPlan holds what must be true of every plan: no panic, one answer, facts that
// are left as they are; nothing is created where there is a volume, and nothing
// kept that differs; and another neighbour never makes a plan out of a refusal.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, facts := situationFrom(t, choice.From(data))
		got := Decide(m, facts)
		again, same := situationFrom(t, choice.From(data))
		if !reflect.DeepEqual(facts, same) || !reflect.DeepEqual(m, again) {
			t.Fatal("the facts were changed")
		}
		if !reflect.DeepEqual(got, Decide(m, facts)) {
			t.Fatal("one situation has two plans")
		}
		switch {
		case (got.Action == Refuse) != (got.Reason != ""):
			t.Fatalf("%v for the reason %q", got.Action, got.Reason)
		case got.Action == Create && facts.Live != nil, got.Action == Keep && facts.Live == nil:
			t.Fatalf("%v, and the volume is %v", got.Action, facts.Live)
		case got.Action == Keep:
			if differences, _ := compare(m, facts.Live, evolved); len(differences) > 0 {
				t.Fatalf("kept, and it differs: %v", differences)
			}
		}
		for i := range facts.Neighbours {
			fewer := facts
			fewer.Neighbours = append(append([]Neighbour{}, facts.Neighbours[:i]...), facts.Neighbours[i+1:]...)
			if without := Decide(m, fewer); got.Action != Refuse && without.Action == Refuse {
				t.Fatalf("refused without neighbour %s, and %v with it", facts.Neighbours[i].Name, got.Action)
			}
		}
	})
}

// FuzzParsePolicy holds that a policy that is accepted names what it allows, and
// that one which names nothing allows nothing.
func FuzzParsePolicy(f *testing.F) {
	const header = "apiVersion: " + PolicyAPIVersion + "\nkind: " + PolicyKind + "\n"
	for _, body := range []string{
		"servers: []\ndrivers: []\nnamespaces: []\nstorageClasses: []\n",
		"servers: [{name: nas.example.com, exports: [/export]}]\ndrivers: ['*']\nnamespaces: ['*']\nstorageClasses: ['*']\n",
		"servers: [{name: '*', exports: [..]}]\ndrivers: null\nnamespaces: on\nstorageClasses: {}\n", "",
	} {
		f.Add([]byte(header + body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, problems := ParsePolicy(data)
		if len(problems) > 0 {
			if !reflect.DeepEqual(p, Policy{}) {
				t.Fatalf("refused, and it says %+v", p)
			}
			return
		}
		if p.Servers == nil || p.Drivers == nil || p.Namespaces == nil || p.StorageClasses == nil {
			t.Fatalf("a forgotten list was accepted: %+v", p)
		}
		m := parsed(t, nfsManifest())
		denied := strings.Join(strings.Fields(p.Check(m).Error()), " ")
		for what, forbidden := range map[string]bool{
			"spec.claimRef.namespace": !allows(p.Namespaces, "ns"), "spec.storageClassName": !allows(p.StorageClasses, "retained"),
		} {
			if forbidden != strings.Contains(denied, what) {
				t.Fatalf("%s: forbidden %t, and it is said: %s", what, forbidden, denied)
			}
		}
		if len(p.Servers) == 0 && len(p.Check(m)) == 0 {
			t.Fatal("a policy without servers allows an NFS volume")
		}
	})
}
