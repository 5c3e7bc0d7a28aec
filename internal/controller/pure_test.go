package controller

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// These tests need no server: what needs one is in test/integration.

var names mooringapi.Names

func TestOriginLocks(t *testing.T) {
	locks := newOriginLocks()
	origin := types.NamespacedName{Namespace: "drives", Name: "mydrive"}

	// Makers share: the second does not wait for the first.
	first := locks.share(origin)
	locks.share(origin)()
	first()

	// Whoever holds it alone is alone: no maker is inside meanwhile.
	var inside, seen atomic.Int32
	var everybody sync.WaitGroup
	for i := range 64 {
		everybody.Go(func() {
			if i%4 == 0 {
				defer locks.alone(origin)()
				seen.Add(inside.Load())
				return
			}
			defer locks.share(origin)()
			inside.Add(1)
			defer inside.Add(-1)
		})
	}
	everybody.Wait()
	if seen.Load() != 0 {
		t.Errorf("%d makers were inside while the lock was held alone", seen.Load())
	}

	// One origin has one lock; many origins have many.
	different := map[*sync.RWMutex]bool{}
	for _, letter := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		lock := locks.of(types.NamespacedName{Namespace: "drives", Name: letter})
		if again := locks.of(types.NamespacedName{Namespace: "drives", Name: letter}); again != lock {
			t.Error("one origin has two locks")
		}
		different[lock] = true
	}
	if len(different) < 10 {
		t.Errorf("26 origins have %d locks", len(different))
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		most       int
		want       string
	}{
		{"short", "abc", 5, "abc"},
		{"exactly", "abcde", 5, "abcde"},
		{"a byte too long", "abcdef", 5, "ab…"},
		{"within a character", "ééé", 5, "é…"},
		{"between characters", "aéé", 4, "a…"},
		{"empty", "", 5, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := cut(tc.text, tc.most)
			if got != tc.want || len(got) > tc.most || !utf8.ValidString(got) {
				t.Errorf("got %q (%d bytes), want %q", got, len(got), tc.want)
			}
		})
	}
	if got := cut(strings.Repeat("…", 1000), longestNote); len(got) > 1024 || len(got) < 1000 {
		t.Errorf("an event's note would have %d bytes", len(got))
	}
}

func TestIsSaid(t *testing.T) {
	decision := mirror.Decision{Verdict: mirror.Refuse, Reason: mirror.NotShared, Message: "ask its owner"}
	said := corev1.PersistentVolumeClaimCondition{Status: corev1.ConditionFalse, Reason: "NotShared", Message: "ask its owner"}
	for _, tc := range []struct {
		name   string
		change func(*corev1.PersistentVolumeClaimCondition)
		want   bool
	}{
		{"said", func(*corev1.PersistentVolumeClaimCondition) {}, true},
		{"said at another time", func(c *corev1.PersistentVolumeClaimCondition) { c.LastTransitionTime = metav1.Now() }, true},
		{"another status", func(c *corev1.PersistentVolumeClaimCondition) { c.Status = corev1.ConditionTrue }, false},
		{"another reason", func(c *corev1.PersistentVolumeClaimCondition) { c.Reason = "NoOrigin" }, false},
		{"another message", func(c *corev1.PersistentVolumeClaimCondition) { c.Message = "" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			condition := said
			tc.change(&condition)
			if got := sayingOf(decision).isIn(&condition); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if sayingOf(decision).isIn(nil) {
		t.Error("nothing was said yet")
	}
	for verdict, want := range map[mirror.Verdict]corev1.ConditionStatus{
		mirror.Refuse: corev1.ConditionFalse, mirror.Wait: corev1.ConditionFalse, mirror.Allow: corev1.ConditionTrue,
	} {
		if got := sayingOf(mirror.Decision{Verdict: verdict}).status; got != want {
			t.Errorf("%v is told as %s", verdict, got)
		}
	}
}

func TestRecently(t *testing.T) {
	var r recently[types.UID, string]
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := r.rest("a", "x", now); got != 0 {
		t.Errorf("the zero value remembers: %v", got)
	}
	r.remember("a", "x", now)
	for _, tc := range []struct {
		name, claim, what string
		after, want       time.Duration
	}{
		{"at once", "a", "x", 0, cachePatience},
		{"a little later", "a", "x", time.Second, cachePatience - time.Second},
		{"another claim", "b", "x", 0, 0},
		{"something else", "a", "y", 0, 0},
		{"too long ago", "a", "x", cachePatience, 0},
		{"and forgotten then", "a", "x", 0, 0},
	} {
		if got := r.rest(types.UID(tc.claim), tc.what, now.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	r.remember("a", "x", now)
	r.forget("a")
	if got := r.rest("a", "x", now); got != 0 {
		t.Errorf("forgotten, and yet %v", got)
	}
	for i := range 3 * mostNotes {
		r.remember(types.UID(strconv.Itoa(i)), "x", now.Add(time.Duration(i)*time.Second))
	}
	if len(r.notes) > mostNotes+1 {
		t.Errorf("%d notes are kept of claims that are long gone", len(r.notes))
	}
}

func TestUntilBinderWrote(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 10, 0, time.UTC)
	for _, tc := range []struct {
		name        string
		age         time.Duration
		annotations map[string]string
		want        time.Duration
	}{
		{"new", 0, nil, binderPatience},
		{"half a second old", time.Second / 2, nil, binderPatience - time.Second/2},
		{"old", time.Hour, nil, 0},
		{"of a clock that is a little ahead", -time.Second, nil, binderPatience + time.Second},
		{"of a clock that is far ahead", -time.Hour, nil, 0},
		{"new, and the binder has written", 0, map[string]string{storageProvisioner: "x"}, 0},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(now.Add(-tc.age)), Annotations: tc.annotations}}
		if got := untilBinderWrote(claim, now); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestTold(t *testing.T) {
	var told told
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	for _, step := range []struct {
		origin types.NamespacedName
		text   string
		news   bool
	}{
		{a, "", false}, {a, "broken", true}, {a, "broken", false}, {b, "broken", true},
		{a, "broken otherwise", true}, {a, "", false}, {a, "broken otherwise", true},
	} {
		if got := told.isNews(step.origin, step.text); got != step.news {
			t.Errorf("%s told %q: news %v, want %v", step.origin.Name, step.text, got, step.news)
		}
	}
	told.forget(b)
	if !told.isNews(b, "broken") {
		t.Error("a claim created anew is not told")
	}
}

func TestStripClaim(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "c", UID: "u", ResourceVersion: "7", Generation: 2,
			Finalizers:      []string{names.Finalizer(), "kubernetes.io/pvc-protection"},
			Labels:          map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Annotations: map[string]string{
				names.ReadWriteGrant(): "a=b", names.Origin(): "x/y", "kubectl.kubernetes.io/last-applied-configuration": "long",
				"volume.kubernetes.io/storage-provisioner": names.Provisioner(),
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: ptr.To("s")},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Conditions: []corev1.PersistentVolumeClaimCondition{
			{Type: "Unused"}, {Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Reason: "NotShared"},
		}},
	}
	want := claim.DeepCopy()
	want.Labels, want.OwnerReferences, want.ManagedFields = nil, nil, nil
	want.Annotations = map[string]string{names.ReadWriteGrant(): "a=b", names.Origin(): "x/y", storageProvisioner: names.Provisioner()}
	want.Status.Conditions = want.Status.Conditions[1:]
	checkStripped(t, stripClaim(names), claim, want)
}

func TestStripVolume(t *testing.T) {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "v", UID: "u", ResourceVersion: "7",
			Labels:        map[string]string{names.OriginLabel(): "hash", "a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Annotations: map[string]string{
				names.MirrorClaimUID(): "u", mooringapi.ProvisionedBy: names.Provisioner(), "note": "x",
				"mirror.example.com/mirror-claim-uid": "u", "pv.kubernetes.io/bound-by-controller": "yes",
			},
		},
		Spec: corev1.PersistentVolumeSpec{MountOptions: []string{"ro"}, ClaimRef: &corev1.ObjectReference{Name: "c"}},
	}
	want := volume.DeepCopy()
	want.Labels, want.ManagedFields = map[string]string{names.OriginLabel(): "hash"}, nil
	want.Annotations = map[string]string{
		names.MirrorClaimUID(): "u", mooringapi.ProvisionedBy: names.Provisioner(), "mirror.example.com/mirror-claim-uid": "u",
	}
	checkStripped(t, stripVolume(names), volume, want)
}

func checkStripped(t *testing.T, strip func(any) (any, error), object, want client.Object) {
	t.Helper()
	got, err := strip(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// What is not of that kind, such as a tombstone, passes as it is.
	if got, err := strip("tombstone"); got != "tombstone" || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for kind, options := range CacheOptions(names).ByObject {
		if options.Transform == nil {
			t.Errorf("%T is cached whole", kind)
		}
	}
}

// Whatever the cache leaves out must not change a decision: facts of stripped
// objects decide as facts of whole ones do.
func TestDecisionsReadNothingThatIsStripped(t *testing.T) {
	origin := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drives", Name: "mydrive", UID: "o", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{names.ReadWriteGrant(): "team", "note": "x"}},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "v"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "vu", Annotations: map[string]string{"note": "x"}, Labels: map[string]string{"a": "b"}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			ClaimRef:               &corev1.ObjectReference{Namespace: "drives", Name: "mydrive", UID: "o"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}},
		},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "c", UID: "u", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{names.Origin(): "drives/mydrive", "note": "x"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			StorageClassName: ptr.To("pvc-mirror"),
		},
	}
	facts := mirror.Facts{
		Names: names, Claim: claim, Origin: origin, OriginVolume: volume, NamespaceLabels: map[string]string{"team": "x"},
		Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror"}, Provisioner: names.Provisioner()},
	}
	whole := mirror.Decide(facts)
	facts.Claim, facts.Origin, facts.OriginVolume = claim.DeepCopy(), origin.DeepCopy(), volume.DeepCopy()
	for object, strip := range map[client.Object]func(any) (any, error){
		facts.Claim: stripClaim(names), facts.Origin: stripClaim(names), facts.OriginVolume: stripVolume(names),
	} {
		if _, err := strip(object); err != nil {
			t.Fatal(err)
		}
	}
	if whole.Verdict != mirror.Allow {
		t.Fatalf("the case should be allowed: %s", whole.Message)
	}
	if diff := cmp.Diff(whole, mirror.Decide(facts)); diff != "" {
		t.Errorf("(-whole +stripped)\n%s", diff)
	}
}

func TestIsServed(t *testing.T) {
	lab, err := labels.Parse("team=lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		selector labels.Selector
		labels   map[string]string
		want     bool
	}{
		{"no selector", nil, map[string]string{}, true},
		{"no selector, namespace not known", nil, nil, true},
		{"matches", lab, map[string]string{"team": "lab"}, true},
		{"does not match", lab, map[string]string{"team": "other"}, false},
		{"namespace not known", lab, nil, false},
	} {
		r := &claimReconciler{options: Options{NamespaceSelector: tc.selector}}
		if got := r.isServed(tc.labels); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestWishes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		claim corev1.PersistentVolumeClaim
		want  bool
	}{
		{"nothing", corev1.PersistentVolumeClaim{}, false},
		{"the annotation, however bad", corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.Origin(): ""}}}, true},
		{"a reference to another namespace", corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			DataSourceRef: &corev1.TypedObjectReference{Namespace: ptr.To("x")}}}, true},
		{"a clone within the namespace", corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			DataSourceRef: &corev1.TypedObjectReference{Name: "x"}}}, false},
	} {
		if got := wishes(names, &tc.claim); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestMirrorsByState(t *testing.T) {
	condition := func(reason mirror.Reason, status corev1.ConditionStatus) []corev1.PersistentVolumeClaimCondition {
		return []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Reason: string(reason), Status: status,
		}}
	}
	for want, claims := range map[string][]corev1.PersistentVolumeClaimStatus{
		"bound": {{Phase: corev1.ClaimBound}, {Phase: corev1.ClaimBound, Conditions: condition(mirror.Mirrored, corev1.ConditionTrue)},
			{Phase: corev1.ClaimBound, Conditions: condition(mirror.OriginLost, corev1.ConditionFalse)}},
		"lost":    {{Phase: corev1.ClaimLost}},
		"revoked": {{Phase: corev1.ClaimBound, Conditions: condition(mirror.NotShared, corev1.ConditionFalse)}},
		"refused": {{Phase: corev1.ClaimPending, Conditions: condition(mirror.NotShared, corev1.ConditionFalse)}},
		"pending": {{Phase: corev1.ClaimPending}, {Phase: corev1.ClaimPending, Conditions: condition(mirror.OriginPending, corev1.ConditionFalse)}, {}},
	} {
		for _, status := range claims {
			if got := stateOf(names, &corev1.PersistentVolumeClaim{Status: status}); got != want {
				t.Errorf("%v is %s, want %s", status, got, want)
			}
		}
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := newMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := newMetrics(registry); err == nil {
		t.Error("the same metrics twice: no error")
	}
}

func TestProbeWithoutNamespaceKnowsNothing(t *testing.T) {
	if state, err := (&probe{}).ask(context.Background()); state != referenceUnknown || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
	if (&probe{}).NeedLeaderElection() {
		t.Error("every replica should know")
	}
}
