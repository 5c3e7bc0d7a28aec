package mirror_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// golden is the whole mirror volume of the base case, written out.
func golden() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   "pvc-aaaaaaaa-0000-4000-8000-000000000001",
			Labels: map[string]string{"pmp.crownlabs.polito.it/origin": "60acdc5ed012052e49c6"},
			Annotations: map[string]string{
				"pv.kubernetes.io/provisioned-by":           "pmp.crownlabs.polito.it",
				"pmp.crownlabs.polito.it/mirror-claim":      "tenant-1/drive",
				"pmp.crownlabs.polito.it/mirror-claim-uid":  "aaaaaaaa-0000-4000-8000-000000000001",
				"pmp.crownlabs.polito.it/origin-claim":      "drives/mydrive",
				"pmp.crownlabs.polito.it/origin-claim-uid":  "bbbbbbbb-0000-4000-8000-000000000002",
				"pmp.crownlabs.polito.it/origin-volume":     "pvc-origin",
				"pmp.crownlabs.polito.it/origin-volume-uid": "cccccccc-0000-4000-8000-000000000003",
				"pmp.crownlabs.polito.it/granted-by": `{"annotation":"pmp.crownlabs.polito.it/required-target-ns-labels",` +
					`"selector":"crownlabs.polito.it/type=tenant","access":"ReadWrite"}`,
				"pmp.crownlabs.polito.it/served-by": "mooring",
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      storage("5Gi"),
			AccessModes:                   []corev1.PersistentVolumeAccessMode{rwx},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              "mirror-f40103710e2fa52a2b98", // of nobody: sha256 of both UIDs
			MountOptions:                  []string{"hard", "nfsvers=4.1"},
			VolumeMode:                    ptr(corev1.PersistentVolumeFilesystem),
			NodeAffinity:                  affinity(),
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "tenant-1", Name: "drive", UID: askUID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:           "nfs.csi.k8s.io",
				VolumeHandle:     "mirror-aaaaaaaa-0000-4000-8000-000000000001",
				VolumeAttributes: map[string]string{"server": "nfs.example.com", "share": "/export", "subdir": "pvc-origin", "mountPermissions": "0"},
			}},
		},
	}
}

func TestVolume(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*mirror.Facts)
		expect func(*corev1.PersistentVolume)
	}{
		{"the base case", func(*mirror.Facts) {}, func(*corev1.PersistentVolume) {}},
		{"read-only", modes(rox), func(v *corev1.PersistentVolume) {
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{rox}
			v.Spec.MountOptions = []string{"hard", "nfsvers=4.1", "ro", "nosharecache"}
			v.Spec.CSI.ReadOnly = true
			v.Annotations[names.GrantedBy()] = strings.Replace(v.Annotations[names.GrantedBy()], "ReadWrite", "ReadOnly", 1)
		}},
		{"both modes, in the recipe's order", modes(rox, rwx), func(v *corev1.PersistentVolume) {
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{rwx, rox}
		}},
		{"no node affinity", func(f *mirror.Facts) { f.OriginVolume.Spec.NodeAffinity = nil }, func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = nil }},
		{"the origin reclaims by Delete and the class too", func(f *mirror.Facts) {
			f.Class.ReclaimPolicy = ptr(corev1.PersistentVolumeReclaimDelete)
		}, func(*corev1.PersistentVolume) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := base()
			tc.change(&facts)
			want := golden()
			tc.expect(want)
			if diff := cmp.Diff(want, mirror.Decide(facts).Volume); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The facts are the cache's own objects: neither Decide nor a change of its
// answer may reach them.
func TestTheFactsStayAsTheyAre(t *testing.T) {
	for _, change := range []func(*mirror.Facts){func(*mirror.Facts) {}, modes(rox), sharedHandle} {
		facts, same := base(), base()
		change(&facts)
		change(&same)
		volume := mirror.Decide(facts).Volume
		if volume.Spec.NodeAffinity != nil {
			volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = "changed"
		}
		volume.Spec.AccessModes[0] = "changed"
		volume.Spec.MountOptions[0] = "changed"
		volume.Spec.CSI.VolumeAttributes["changed"] = "changed"
		volume.Spec.Capacity[corev1.ResourceStorage] = storage("1")[corev1.ResourceStorage]
		if diff := cmp.Diff(same, facts, cmp.AllowUnexported(mooringapi.Names{})); diff != "" {
			t.Errorf("the facts changed (-before +after)\n%s", diff)
		}
	}
}

// Names as long as Kubernetes has any must fit wherever they are written.
func TestLongNames(t *testing.T) {
	facts := base()
	namespace := strings.Repeat("n", 63)
	facts.Claim.Namespace, facts.Claim.Name = strings.Repeat("m", 63), longest("c")
	facts.Claim.Spec.DataSourceRef.Namespace, facts.Claim.Spec.DataSourceRef.Name = ptr(namespace), longest("o")
	facts.Origin.Namespace, facts.Origin.Name = namespace, longest("o")
	facts.Origin.Spec.VolumeName, facts.OriginVolume.Name = longest("v"), longest("v")
	facts.OriginVolume.Spec.ClaimRef.Namespace, facts.OriginVolume.Spec.ClaimRef.Name = namespace, longest("o")
	got := mirror.Decide(facts)
	if got.Verdict != mirror.Allow {
		t.Fatalf("got %v %s: %s", got.Verdict, got.Reason, got.Message)
	}
	if len(longest("c")) != validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(longest("c"))) > 0 {
		t.Fatal("the test's names are not the longest there are")
	}
	record := mirror.RecordOf(names, got.Volume)
	want := mirror.Record{Claim: key(facts.Claim.Namespace, longest("c")), ClaimUID: askUID, Origin: key(namespace, longest("o")), OriginUID: facts.Origin.UID,
		OriginVolume: longest("v"), OriginVolumeUID: facts.OriginVolume.UID, ServedBy: facts.Instance}
	if record != want {
		t.Errorf("the record reads %v, want %v", record, want)
	}
	for label, value := range got.Volume.Labels {
		if problems := append(validation.IsQualifiedName(label), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			t.Errorf("label %s: %s: %v", label, value, problems)
		}
	}
	if problems := validation.IsDNS1123Subdomain(got.Volume.Name); len(problems) > 0 {
		t.Errorf("name %s: %v", got.Volume.Name, problems)
	}
}

func TestLongSelector(t *testing.T) {
	for _, tc := range []struct {
		name   string
		length int
		hashed bool
	}{
		{"as long as is recorded", 4096, false},
		{"a byte longer", 4097, true},
		{"as long as a grant may be", mooringapi.MaxSelectorBytes, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := base()
			text := selector + strings.Repeat(" ", tc.length-len(selector))
			facts.Origin.Annotations[names.ReadWriteGrant()] = text
			got := mirror.Decide(facts)
			if got.Verdict != mirror.Allow {
				t.Fatalf("got %s: %s", got.Reason, got.Message)
			}
			var recorded mirror.GrantedBy
			if err := json.Unmarshal([]byte(got.Volume.Annotations[names.GrantedBy()]), &recorded); err != nil {
				t.Fatal(err)
			}
			if hashed := strings.HasPrefix(recorded.Selector, "sha256:"); hashed != tc.hashed || !hashed && recorded.Selector != text {
				t.Errorf("recorded as %.80q", recorded.Selector)
			}
			if len(got.Volume.Annotations[names.GrantedBy()]) > 5000 {
				t.Errorf("%d bytes are recorded", len(got.Volume.Annotations[names.GrantedBy()]))
			}
		})
	}
}

func TestOriginHash(t *testing.T) {
	seen := map[string]types.NamespacedName{}
	for _, origin := range []types.NamespacedName{key("a", "b"), key("a", "c"), key("b", "b"), key("", "a/b"), key("ab", ""), key("a-b", "c"), key("a", "b-c")} {
		hash := mirror.OriginHash(origin)
		if hash != mirror.OriginHash(origin) {
			t.Errorf("%v has two hashes", origin)
		}
		if other, taken := seen[hash]; taken && other.String() != origin.String() {
			t.Errorf("%v and %v have one hash", origin, other)
		}
		seen[hash] = origin
	}
}
