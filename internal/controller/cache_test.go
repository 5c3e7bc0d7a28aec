package controller

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Whatever a user can write into a claim, and however much of it, the cache holds
// little, and what is decided and said is the same as of the whole claim.
func TestCacheHoldsLittleOfAnyClaim(t *testing.T) {
	var names mooringapi.Names
	long := strings.Repeat("x\u00e9\n", 80<<10) // more than any message quotes
	for what, write := range map[string]func(*corev1.PersistentVolumeClaim){
		"an origin":         annotates(names.Origin(), long),
		"an origin, nearly": annotates(names.Origin(), "owner/data"+long),
		"an annotation":     annotates("note", long),
		"a key of one's own under Mooring's name": annotates(names.Provisioner()+"/note", long),
		"the provisioner that is waited for":      annotates(storageProvisioner, long),
		"that deletion is allowed":                annotates(names.AllowDeletion(), long),
		"a grant":                                 annotates(names.ReadWriteGrant(), "a=b,"+long),
		"a grant that is one":                     annotates(names.ReadWriteGrant(), "a=b"+strings.Repeat(",a=b", 40_000)),
		"a grant of the greatest length":          annotates(names.ReadWriteGrant(), "a=b"+strings.Repeat(" ", mooringapi.MaxSelectorBytes-3)),
		"a read-only grant":                       annotates(names.ReadOnlyGrant(), strings.Repeat("a", 200<<10)),
		"an end":                                  annotates(names.GrantExpires(), "2027-01-01T00:00:00."+strings.Repeat("0", 200<<10)+"Z"),
		"a volume's name":                         func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = long },
		"a reference's name": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Namespace: ptr.To("owner"), Name: long}
		},
		"a reference's kind": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: long, Name: long}
		},
		"a data source": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: long, Name: long}
		},
		"a selector": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": long}}
		},
		"labels": func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": long} },
		"a condition of others": func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "Resizing", Message: long}}
		},
	} {
		whole := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "m", UID: "u"}}
		whole.Spec.StorageClassName = ptr.To("pvc-mirror")
		write(whole)
		kept, err := stripClaim(names)(whole.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		claim, _ := kept.(*corev1.PersistentVolumeClaim)
		text, err := json.Marshal(claim)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 40<<10 {
			t.Errorf("%s: the cache holds %d bytes", what, len(text))
		}
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror"}, Provisioner: names.Provisioner()}
		decide := func(claim *corev1.PersistentVolumeClaim) mirror.Decision {
			return mirror.Decide(mirror.Facts{Names: names, Claim: claim, Class: class, NamespaceLabels: map[string]string{"a": "b"}})
		}
		if diff := cmp.Diff(decide(whole), decide(claim)); diff != "" {
			t.Errorf("%s: decided otherwise of what the cache holds:\n%s", what, diff)
		}
		labels := map[string]string{"a": "b"}
		if of, by := grant.Parse(names, whole.Annotations), grant.Parse(names, claim.Annotations); of.For(labels, time.Time{}).Access != by.For(labels, time.Time{}).Access ||
			problemsText(of.Problems()) != problemsText(by.Problems()) {
			t.Errorf("%s: granted otherwise by what the cache holds:\n%s\n%s", what, problemsText(of.Problems()), problemsText(by.Problems()))
		}
	}
}

func annotates(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{key: value} }
}

func problemsText(problems []error) string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Error())
	}
	return strings.Join(all, "\n")
}
