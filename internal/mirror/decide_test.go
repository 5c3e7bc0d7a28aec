package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const (
	rwx  = corev1.ReadWriteMany
	rox  = corev1.ReadOnlyMany
	rwo  = corev1.ReadWriteOnce
	rwop = corev1.ReadWriteOncePod
)

// row is the base case and one change.
type row struct {
	name    string
	change  func(*mirror.Facts)
	verdict mirror.Verdict
	reason  mirror.Reason
	says    string // part of the message
}

// allowed are changes that leave the base case allowed.
var allowed = []row{
	{"nothing changed", func(*mirror.Facts) {}, mirror.Allow, mirror.Mirrored, "mirrors drives/mydrive (ReadWrite)"},
	{"the annotation form", byAnnotation("drives/mydrive"), mirror.Allow, mirror.Mirrored, "mirrors drives/mydrive"},
	{"both forms, equal", func(f *mirror.Facts) { f.Claim.Annotations = map[string]string{names.Origin(): "drives/mydrive"} }, mirror.Allow, mirror.Mirrored, "mirrors drives/mydrive"},
	{"an empty apiGroup", func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef.APIGroup = ptr("") }, mirror.Allow, mirror.Mirrored, ""},
	{"volumeName is the mirror's own", func(f *mirror.Facts) { f.Claim.Spec.VolumeName = mirror.VolumeName(askUID) }, mirror.Allow, mirror.Mirrored, ""},
	{"an empty volumeAttributesClassName", func(f *mirror.Facts) { f.Claim.Spec.VolumeAttributesClassName = ptr("") }, mirror.Allow, mirror.Mirrored, ""},
	{"class says ReadWrite", func(f *mirror.Facts) { f.Class.Parameters = map[string]string{"access": "ReadWrite"} }, mirror.Allow, mirror.Mirrored, ""},
	{"class denies expansion", func(f *mirror.Facts) { f.Class.AllowVolumeExpansion = ptr(false) }, mirror.Allow, mirror.Mirrored, ""},
	{"class waits for a consumer", func(f *mirror.Facts) { f.Class.VolumeBindingMode = ptr(storagev1.VolumeBindingWaitForFirstConsumer) }, mirror.Allow, mirror.Mirrored, ""},
	{"class reclaims by Delete", func(f *mirror.Facts) { f.Class.ReclaimPolicy = ptr(corev1.PersistentVolumeReclaimDelete) }, mirror.Allow, mirror.Mirrored, ""},
	{"read-only under a read-write grant", modes(rox), mirror.Allow, mirror.Mirrored, "(ReadOnly)"},
	{"read-only under a read-only grant", all(modes(rox), readOnlyGrant), mirror.Allow, mirror.Mirrored, "(ReadOnly)"},
	{"read-only in a class for it", all(modes(rox), readOnlyClass), mirror.Allow, mirror.Mirrored, "(ReadOnly)"},
	{"read-only of a read-only origin", all(modes(rox), originModes(rox)), mirror.Allow, mirror.Mirrored, "(ReadOnly)"},
	{"both modes ask to write", modes(rox, rwx), mirror.Allow, mirror.Mirrored, "(ReadWrite)"},
	{"a ReadWriteOnce origin of a driver that can share it", originModes(rwo), mirror.Allow, mirror.Mirrored, ""},
	{"exactly the origin's size", request("5Gi"), mirror.Allow, mirror.Mirrored, ""},
	{"volumeMode unset", func(f *mirror.Facts) { f.Claim.Spec.VolumeMode, f.OriginVolume.Spec.VolumeMode = nil, nil }, mirror.Allow, mirror.Mirrored, ""},
	{"a unique handle has no rivals", rivals(mirror.Rival{Name: "older", UID: "x", Created: now.Add(-time.Hour)}), mirror.Allow, mirror.Mirrored, ""},
	{"a shared handle", sharedHandle, mirror.Allow, mirror.Mirrored, "a Pod cannot have two volumes of one origin"},
	{"a shared handle, and a younger rival", all(sharedHandle, rivals(mirror.Rival{Name: "younger", UID: "0", Created: now.Add(time.Second)})), mirror.Allow, mirror.Mirrored, ""},
	{"a shared handle, as old as its rival, lesser UID", all(sharedHandle, rivals(mirror.Rival{Name: "twin", UID: "ffff", Created: now})), mirror.Allow, mirror.Mirrored, ""},
	{"a shared handle, served itself, and an older rival that is not", all(sharedHandle, rivals(
		mirror.Rival{Name: "older", UID: "0", Created: now.Add(-time.Hour)},
		mirror.Rival{Name: "drive", UID: askUID, Created: now, Served: true},
	)), mirror.Allow, mirror.Mirrored, ""},
	{"a shared handle, and itself", all(sharedHandle, rivals(mirror.Rival{Name: "drive", UID: askUID, Created: now})), mirror.Allow, mirror.Mirrored, ""},
}

// notAllowed has at least one row for every reason that the ladder gives.
var notAllowed = []row{
	// Rung 1.
	{"no reference", func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef = nil }, mirror.Refuse, mirror.NoOrigin, names.Origin()},
	{"no claim", func(f *mirror.Facts) { f.Claim = nil }, mirror.Refuse, mirror.NoOrigin, "no claim"},
	{"no UID", func(f *mirror.Facts) { f.Claim.UID = "" }, mirror.Refuse, mirror.NoOrigin, "no claim"},
	{"annotation without namespace", byAnnotation("mydrive"), mirror.Refuse, mirror.OriginMalformed, `"mydrive"`},
	{"annotation empty", byAnnotation(""), mirror.Refuse, mirror.OriginMalformed, "<namespace>/<claim>"},
	{"annotation with two slashes", byAnnotation("drives/my/drive"), mirror.Refuse, mirror.OriginMalformed, "<namespace>/<claim>"},
	{"annotation in capitals", byAnnotation("Drives/mydrive"), mirror.Refuse, mirror.OriginMalformed, "<namespace>/<claim>"},
	{"annotation with spaces", byAnnotation("drives/mydrive "), mirror.Refuse, mirror.OriginMalformed, "<namespace>/<claim>"},
	{"reference without namespace", func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef.Namespace = nil }, mirror.Refuse, mirror.OriginMalformed, "no namespace"},
	{"reference to an empty namespace", func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef.Namespace = ptr("") }, mirror.Refuse, mirror.OriginMalformed, "no namespace"},
	{"reference to what is no name", func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef.Name = "../etc" }, mirror.Refuse, mirror.OriginMalformed, `"../etc"`},
	{"both forms, different", func(f *mirror.Facts) { f.Claim.Annotations = map[string]string{names.Origin(): "drives/other"} }, mirror.Refuse, mirror.OriginAmbiguous, "drives/other"},
	{"reference to a snapshot", func(f *mirror.Facts) {
		f.Claim.Spec.DataSourceRef.Kind, f.Claim.Spec.DataSourceRef.APIGroup = "VolumeSnapshot", ptr("snapshot.storage.k8s.io")
	}, mirror.Refuse, mirror.OriginKindUnsupported, `"VolumeSnapshot"`},
	{"reference to another group's claims", func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef.APIGroup = ptr("example.com") }, mirror.Refuse, mirror.OriginKindUnsupported, "without apiGroup"},
	{"the own namespace", func(f *mirror.Facts) { f.Claim.Namespace = "drives" }, mirror.Refuse, mirror.SameNamespace, "use it directly"},
	{"selector", func(f *mirror.Facts) { f.Claim.Spec.Selector = &metav1.LabelSelector{} }, mirror.Refuse, mirror.ClaimHasSelector, "spec.selector"},
	{"dataSource", func(f *mirror.Facts) {
		f.Claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "mydrive"}
	}, mirror.Refuse, mirror.ClaimHasDataSource, "spec.dataSource"},
	{"dataSource and annotation", all(byAnnotation("drives/mydrive"), func(f *mirror.Facts) {
		f.Claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "mydrive"}
	}), mirror.Refuse, mirror.ClaimHasDataSource, "spec.dataSource"},
	{"volumeName", func(f *mirror.Facts) { f.Claim.Spec.VolumeName = "pvc-origin" }, mirror.Refuse, mirror.ClaimNamesVolume, `"pvc-origin"`},
	{"volumeAttributesClassName", func(f *mirror.Facts) { f.Claim.Spec.VolumeAttributesClassName = ptr("gold") }, mirror.Refuse, mirror.ClaimHasAttributesClass, `"gold"`},

	// Rung 2.
	{"no class", func(f *mirror.Facts) { f.Class = nil }, mirror.Refuse, mirror.ClassNotFound, `"pvc-mirror"`},
	{"another provisioner's class", func(f *mirror.Facts) { f.Class.Provisioner = "nfs.csi.k8s.io" }, mirror.Refuse, mirror.ClassNotFound, names.Provisioner()},
	{"a class that the claim does not name", func(f *mirror.Facts) { f.Class.Name = "other" }, mirror.Refuse, mirror.ClassNotFound, `"pvc-mirror"`},
	{"the claim names no class", func(f *mirror.Facts) { f.Claim.Spec.StorageClassName = nil }, mirror.Refuse, mirror.ClassNotFound, `""`},
	{"unknown parameter", func(f *mirror.Facts) { f.Class.Parameters = map[string]string{"acess": "ReadOnly"} }, mirror.Refuse, mirror.ClassParameters, `"acess"`},
	{"unknown access", func(f *mirror.Facts) { f.Class.Parameters = map[string]string{"access": "readonly"} }, mirror.Refuse, mirror.ClassParameters, `"readonly"`},
	{"class allows expansion", func(f *mirror.Facts) { f.Class.AllowVolumeExpansion = ptr(true) }, mirror.Refuse, mirror.ClassAllowsExpansion, "allowVolumeExpansion: false"},

	// Rung 3.
	{"no origin", func(f *mirror.Facts) { f.Origin = nil }, mirror.Refuse, mirror.NotShared, "does not exist or is not shared"},
	{"another claim than the one named", func(f *mirror.Facts) { f.Origin.Name = "other" }, mirror.Refuse, mirror.NotShared, "is not shared"},
	{"another namespace than the one named", func(f *mirror.Facts) { f.Origin.Namespace = "other" }, mirror.Refuse, mirror.NotShared, "is not shared"},
	{"no grant", func(f *mirror.Facts) { f.Origin.Annotations = nil }, mirror.Refuse, mirror.NotShared, "ask its owner"},
	{"grant for others", func(f *mirror.Facts) { f.NamespaceLabels = map[string]string{"crownlabs.polito.it/type": "workspace"} }, mirror.Refuse, mirror.NotShared, "is not shared"},
	{"namespace not known", func(f *mirror.Facts) { f.NamespaceLabels = nil }, mirror.Refuse, mirror.NotShared, "is not shared"},

	// Rung 4.
	{"origin pending", func(f *mirror.Facts) { f.Origin.Status.Phase = corev1.ClaimPending }, mirror.Wait, mirror.OriginPending, "not bound yet"},
	{"origin without phase", func(f *mirror.Facts) { f.Origin.Status.Phase = "" }, mirror.Wait, mirror.OriginPending, "not bound yet"},
	{"origin volume not seen", func(f *mirror.Facts) { f.OriginVolume = nil }, mirror.Wait, mirror.OriginPending, "not seen yet"},
	{"origin terminating", func(f *mirror.Facts) { f.Origin.DeletionTimestamp = ptr(metav1.NewTime(now)) }, mirror.Refuse, mirror.OriginTerminating, "origin drives/mydrive is being deleted"},
	{"origin volume terminating", func(f *mirror.Facts) { f.OriginVolume.DeletionTimestamp = ptr(metav1.NewTime(now)) }, mirror.Refuse, mirror.OriginTerminating, "the volume of origin"},
	{"origin lost", func(f *mirror.Facts) { f.Origin.Status.Phase = corev1.ClaimLost }, mirror.Refuse, mirror.OriginLost, "lost"},
	{"volume bound to an earlier claim", func(f *mirror.Facts) { f.OriginVolume.Spec.ClaimRef.UID = "earlier" }, mirror.Refuse, mirror.OriginBindingBroken, "by UID"},
	{"volume bound by name only", func(f *mirror.Facts) { f.OriginVolume.Spec.ClaimRef.UID = "" }, mirror.Refuse, mirror.OriginBindingBroken, "by UID"},
	{"neither has a UID", func(f *mirror.Facts) { f.Origin.UID, f.OriginVolume.Spec.ClaimRef.UID = "", "" }, mirror.Refuse, mirror.OriginBindingBroken, "by UID"},
	{"volume without claimRef", func(f *mirror.Facts) { f.OriginVolume.Spec.ClaimRef = nil }, mirror.Refuse, mirror.OriginBindingBroken, "by UID"},
	{"volume of another namespace's claim", func(f *mirror.Facts) { f.OriginVolume.Spec.ClaimRef.Namespace = "other" }, mirror.Refuse, mirror.OriginBindingBroken, "by UID"},
	{"volume of another claim", func(f *mirror.Facts) { f.OriginVolume.Spec.ClaimRef.Name = "other" }, mirror.Refuse, mirror.OriginBindingBroken, "by UID"},
	{"claim of another volume", func(f *mirror.Facts) { f.Origin.Spec.VolumeName = "other" }, mirror.Refuse, mirror.OriginBindingBroken, "by UID"},

	// Rung 5.
	{"origin is a mirror", func(f *mirror.Facts) { f.OriginVolume.Annotations[names.MirrorClaimUID()] = "u" }, mirror.Refuse, mirror.OriginIsMirror, "itself a mirror"},
	{"origin is a mirror of another installation", func(f *mirror.Facts) { f.OriginVolume.Annotations["mirror.example.com/mirror-claim-uid"] = "u" }, mirror.Refuse, mirror.OriginIsMirror, "itself a mirror"},
	{"origin is a mirror of the name's earlier owner", func(f *mirror.Facts) { f.OriginVolume.Annotations[mooringapi.ProvisionedBy] = names.Provisioner() }, mirror.Refuse, mirror.OriginIsMirror, "itself a mirror"},

	// Rung 6.
	{"a host path", func(f *mirror.Facts) {
		f.OriginVolume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
	}, mirror.Refuse, mirror.SourceUnsupported, "only CSI volumes and in-tree NFS"},
	{"an unknown driver without CSIDriver object", all(sharedHandle, func(f *mirror.Facts) { f.Driver = nil }), mirror.Refuse, mirror.DriverUnknown, "no CSIDriver object"},
	{"another driver's CSIDriver object", all(sharedHandle, func(f *mirror.Facts) { f.Driver.Name = "other.example.com" }), mirror.Refuse, mirror.DriverUnknown, "no CSIDriver object"},
	{"unknown drivers refused", all(sharedHandle, func(f *mirror.Facts) { f.RefuseUnknownDrivers = true }), mirror.Refuse, mirror.DriverUnknown, "--unknown-drivers=refuse"},
	{"an attribute is missing", func(f *mirror.Facts) { delete(f.OriginVolume.Spec.CSI.VolumeAttributes, "share") }, mirror.Refuse, mirror.DriverRefused, "attribute share"},
	{"read-only of an unknown driver", all(sharedHandle, modes(rox)), mirror.Refuse, mirror.ReadOnlyUnsupported, "nothing would keep a Pod from writing"},

	// Rung 7.
	{"ReadWriteOnce", modes(rwo), mirror.Refuse, mirror.AccessModeUnsupported, "ReadWriteOnce:"},
	{"ReadWriteOncePod", modes(rwop), mirror.Refuse, mirror.AccessModeUnsupported, "ReadWriteOncePod:"},
	{"ReadWriteOnce beside ReadWriteMany", modes(rwx, rwo), mirror.Refuse, mirror.AccessModeUnsupported, "ReadWriteOnce:"},
	{"ReadWriteOnce of an unknown driver", all(sharedHandle, modes(rwo)), mirror.Refuse, mirror.AccessModeUnsupported, "ReadWriteOnce:"},
	{"no mode", modes(), mirror.Refuse, mirror.AccessModeUnsupported, "is empty"},
	{"to write in a read-only class", readOnlyClass, mirror.Refuse, mirror.ClassReadOnly, "StorageClass pvc-mirror"},
	{"to write under a read-only grant", readOnlyGrant, mirror.Refuse, mirror.GrantReadOnly, "ask for ReadOnlyMany"},
	{"both modes under a read-only grant", all(readOnlyGrant, modes(rox, rwx)), mirror.Refuse, mirror.GrantReadOnly, "ask for ReadOnlyMany"},
	{"origin for one Pod", originModes(rwop), mirror.Refuse, mirror.OriginExclusive, "one Pod alone"},
	{"origin for one Pod, read-only", all(originModes(rwop), modes(rox)), mirror.Refuse, mirror.OriginExclusive, "one Pod alone"},
	{"to write a read-only origin", originModes(rox), mirror.Refuse, mirror.OriginReadOnly, "ask for ReadOnlyMany"},
	{"to write an origin without modes", originModes(), mirror.Refuse, mirror.OriginReadOnly, "ask for ReadOnlyMany"},
	{"a block claim", func(f *mirror.Facts) { f.Claim.Spec.VolumeMode = ptr(corev1.PersistentVolumeBlock) }, mirror.Refuse, mirror.VolumeModeUnsupported, "spec.volumeMode is Block"},
	{"a block origin", func(f *mirror.Facts) { f.OriginVolume.Spec.VolumeMode = ptr(corev1.PersistentVolumeBlock) }, mirror.Refuse, mirror.VolumeModeUnsupported, "is Block: only file systems"},
	{"too large", request("5368709121"), mirror.Refuse, mirror.TooLarge, "is 5368709121 and origin drives/mydrive has 5Gi"},
	{"origin without capacity", func(f *mirror.Facts) { f.OriginVolume.Spec.Capacity = nil }, mirror.Refuse, mirror.TooLarge, "has 0"},

	// Rung 8.
	{"an older rival", all(sharedHandle, rivals(mirror.Rival{Name: "older", UID: "x", Created: now.Add(-time.Second)})), mirror.Refuse, mirror.DuplicateMirror, "claim older"},
	{"the oldest of several rivals, whatever their order", all(sharedHandle, rivals(
		mirror.Rival{Name: "b", UID: "b", Created: now.Add(-time.Second)},
		mirror.Rival{Name: "a", UID: "a", Created: now.Add(-time.Minute)},
		mirror.Rival{Name: "c", UID: "c", Created: now.Add(-time.Second)},
	)), mirror.Refuse, mirror.DuplicateMirror, "claim a of this namespace asked for it before"},
	{"a younger rival that is served", all(sharedHandle, rivals(
		mirror.Rival{Name: "older", UID: "x", Created: now.Add(-time.Second)},
		mirror.Rival{Name: "served", UID: "y", Created: now.Add(time.Second), Served: true},
	)), mirror.Refuse, mirror.DuplicateMirror, "claim served of this namespace mirrors it"},
	{"an older rival, both served", all(sharedHandle, rivals(
		mirror.Rival{Name: "older", UID: "x", Created: now.Add(-time.Hour), Served: true},
		mirror.Rival{Name: "drive", UID: askUID, Created: now, Served: true},
	)), mirror.Refuse, mirror.DuplicateMirror, "claim older"},
	{"a rival as old, of lesser UID", all(sharedHandle, rivals(mirror.Rival{Name: "twin", UID: "0", Created: now})), mirror.Refuse, mirror.DuplicateMirror, "claim twin"},
}

func readOnlyGrant(f *mirror.Facts) {
	f.Origin.Annotations = map[string]string{names.ReadOnlyGrant(): selector}
}

func readOnlyClass(f *mirror.Facts) { f.Class.Parameters = map[string]string{"access": "ReadOnly"} }

func originModes(m ...corev1.PersistentVolumeAccessMode) func(*mirror.Facts) {
	return func(f *mirror.Facts) { f.OriginVolume.Spec.AccessModes = m }
}

func request(quantity string) func(*mirror.Facts) {
	return func(f *mirror.Facts) {
		f.Claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(quantity)
	}
}

func TestDecide(t *testing.T) {
	for _, tc := range append(allowed, notAllowed...) {
		t.Run(tc.name, func(t *testing.T) {
			facts := base()
			tc.change(&facts)
			got := mirror.Decide(facts)
			if got.Verdict != tc.verdict || got.Reason != tc.reason {
				t.Errorf("got %v %s, want %v %s (%s)", got.Verdict, got.Reason, tc.verdict, tc.reason, got.Message)
			}
			if !strings.Contains(got.Message, tc.says) {
				t.Errorf("the message is %q, want %q in it", got.Message, tc.says)
			}
			if (got.Volume != nil) != (tc.verdict == mirror.Allow) {
				t.Errorf("verdict %v comes with volume %v", got.Verdict, got.Volume)
			}
		})
	}
}

func TestEveryReasonOfTheLadderHasARow(t *testing.T) {
	rows := map[mirror.Reason]mirror.Verdict{}
	for _, tc := range append(allowed, notAllowed...) {
		rows[tc.reason] = tc.verdict
	}
	for _, doc := range mirror.Reasons() {
		verdict, has := rows[doc.Reason]
		if doc.Rung > 0 && !has {
			t.Errorf("no row leads to %s", doc.Reason)
		}
		if has && verdict != doc.Verdict {
			t.Errorf("%s is documented as %v, and the rows have %v", doc.Reason, doc.Verdict, verdict)
		}
	}
}

// Several faults at once: the earlier rung speaks. A row's fault and every
// fault of the later rungs together must still give the row's reason.
func TestTheEarlierRungSpeaks(t *testing.T) {
	faults := []struct {
		rung   int
		reason mirror.Reason
		change func(*mirror.Facts)
	}{
		{1, mirror.ClaimNamesVolume, func(f *mirror.Facts) { f.Claim.Spec.VolumeName = "x" }},
		{2, mirror.ClassAllowsExpansion, func(f *mirror.Facts) { f.Class.AllowVolumeExpansion = ptr(true) }},
		{3, mirror.NotShared, func(f *mirror.Facts) { f.NamespaceLabels = nil }},
		{4, mirror.OriginLost, func(f *mirror.Facts) { f.Origin.Status.Phase = corev1.ClaimLost }},
		{5, mirror.OriginIsMirror, func(f *mirror.Facts) { f.OriginVolume.Annotations[names.MirrorClaimUID()] = "u" }},
		{6, mirror.DriverUnknown, func(f *mirror.Facts) { f.OriginVolume.Spec.CSI.Driver = "x.example.com"; f.Driver = nil }},
		{7, mirror.TooLarge, request("1Ti")},
	}
	documented := map[mirror.Reason]int{}
	for _, doc := range mirror.Reasons() {
		documented[doc.Reason] = doc.Rung
	}
	for i, fault := range faults {
		if documented[fault.reason] != fault.rung {
			t.Errorf("%s is documented for rung %d, want %d", fault.reason, documented[fault.reason], fault.rung)
		}
		facts := base()
		for _, later := range faults[i:] {
			later.change(&facts)
		}
		if got := mirror.Decide(facts); got.Reason != fault.reason {
			t.Errorf("with every fault from rung %d on: got %s, want %s", fault.rung, got.Reason, fault.reason)
		}
	}
	// The last rung needs what rung 6 has found out.
	facts := base()
	all(sharedHandle, request("1Ti"), rivals(mirror.Rival{Name: "older", UID: "x"}))(&facts)
	if got := mirror.Decide(facts); got.Reason != mirror.TooLarge {
		t.Errorf("too large and a duplicate: got %s, want %s", got.Reason, mirror.TooLarge)
	}
}

func TestZeroRefuses(t *testing.T) {
	for name, facts := range map[string]mirror.Facts{
		"nothing":        {},
		"an empty claim": {Claim: &corev1.PersistentVolumeClaim{}},
		"a claim alone":  {Claim: asking()},
		"empty objects": {
			Claim: asking(), Class: &storagev1.StorageClass{}, NamespaceLabels: map[string]string{},
			Origin: &corev1.PersistentVolumeClaim{}, OriginVolume: &corev1.PersistentVolume{}, Driver: &storagev1.CSIDriver{},
		},
	} {
		if got := mirror.Decide(facts); got.Verdict != mirror.Refuse || got.Reason == "" || got.Volume != nil {
			t.Errorf("%s: got %v %q %v, want a refusal with a reason", name, got.Verdict, got.Reason, got.Volume)
		}
	}
	if zero := (mirror.Decision{}); zero.Verdict.String() != "refuse" {
		t.Errorf("the zero decision is %v", zero.Verdict)
	}
}

// Every single fact that is missing refuses or waits.
func TestWhatIsMissingNeverAllows(t *testing.T) {
	for name, forget := range map[string]func(*mirror.Facts){
		"claim":            func(f *mirror.Facts) { f.Claim = nil },
		"class":            func(f *mirror.Facts) { f.Class = nil },
		"namespace labels": func(f *mirror.Facts) { f.NamespaceLabels = nil },
		"origin":           func(f *mirror.Facts) { f.Origin = nil },
		"origin volume":    func(f *mirror.Facts) { f.OriginVolume = nil },
	} {
		facts := base()
		forget(&facts)
		if got := mirror.Decide(facts); got.Verdict == mirror.Allow {
			t.Errorf("without %s: allowed", name)
		}
	}
}

// The asking side must not learn whether an origin exists.
func TestNotSharedIsOneText(t *testing.T) {
	want := ""
	for name, change := range map[string]func(*mirror.Facts){
		"absent":            func(f *mirror.Facts) { f.Origin, f.OriginVolume = nil, nil },
		"no grant":          func(f *mirror.Facts) { f.Origin.Annotations = nil },
		"grant for others":  func(f *mirror.Facts) { f.Origin.Annotations[names.ReadWriteGrant()] = "a=b" },
		"grant blank":       func(f *mirror.Facts) { f.Origin.Annotations[names.ReadWriteGrant()] = "" },
		"grant broken":      func(f *mirror.Facts) { f.Origin.Annotations[names.ReadWriteGrant()] = "((" },
		"grant negative":    func(f *mirror.Facts) { f.Origin.Annotations[names.ReadWriteGrant()] = "!a" },
		"grant expired":     func(f *mirror.Facts) { f.Origin.Annotations[names.GrantExpires()] = now.Format(time.RFC3339) },
		"end broken":        func(f *mirror.Facts) { f.Origin.Annotations[names.GrantExpires()] = "soon" },
		"namespace unknown": func(f *mirror.Facts) { f.NamespaceLabels = nil },
		"no labels":         func(f *mirror.Facts) { f.NamespaceLabels = map[string]string{} },
		"denied and lost": func(f *mirror.Facts) {
			f.Origin.Annotations = nil
			f.Origin.Status.Phase = corev1.ClaimLost
			f.Origin.DeletionTimestamp = ptr(metav1.NewTime(now))
		},
		"denied and a mirror": func(f *mirror.Facts) {
			f.Origin.Annotations = nil
			f.OriginVolume.Annotations[names.MirrorClaimUID()] = "u"
		},
		"denied and unsupported": func(f *mirror.Facts) {
			f.Origin.Annotations = nil
			f.OriginVolume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{}
		},
		"denied and too large": all(request("1Ti"), func(f *mirror.Facts) { f.Origin.Annotations = nil }),
	} {
		facts := base()
		change(&facts)
		got := mirror.Decide(facts)
		if got.Verdict != mirror.Refuse || got.Reason != mirror.NotShared {
			t.Errorf("%s: got %v %s", name, got.Verdict, got.Reason)
		}
		if want == "" {
			want = got.Message
		}
		if got.Message != want {
			t.Errorf("%s: says %q, the others say %q", name, got.Message, want)
		}
		if got.Grant.Annotation != "" || got.Grant.Selector != "" {
			t.Errorf("%s: a refusal carries the grant %v", name, got.Grant)
		}
	}
}

// What a user wrote must not forge lines of an event or move a cursor.
func TestMessagesAreFitForATerminal(t *testing.T) {
	evil := "x\n\x1b[31mroot\u202e"
	for name, change := range map[string]func(*mirror.Facts){
		"annotation":     byAnnotation(evil),
		"reference":      func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef.Name = evil },
		"reference kind": func(f *mirror.Facts) { f.Claim.Spec.DataSourceRef.Kind = evil },
		"volumeName":     func(f *mirror.Facts) { f.Claim.Spec.VolumeName = evil },
		"class name":     func(f *mirror.Facts) { f.Claim.Spec.StorageClassName = ptr(evil) },
		"parameter":      func(f *mirror.Facts) { f.Class.Parameters = map[string]string{evil: evil} },
		"long":           func(f *mirror.Facts) { f.Claim.Spec.VolumeName = strings.Repeat("é", 100_000) },
	} {
		facts := base()
		change(&facts)
		got := mirror.Decide(facts)
		if got.Verdict != mirror.Refuse || strings.ContainsAny(got.Message, "\n\x1b\u202e") || len(got.Message) > 4000 {
			t.Errorf("%s: got %v, %d bytes: %q", name, got.Verdict, len(got.Message), got.Message)
		}
	}
}

// The same facts give the same words, in whatever order they come.
func TestDecideIsDeterministic(t *testing.T) {
	for name, change := range map[string]func(*mirror.Facts){
		"parameters": func(f *mirror.Facts) {
			f.Class.Parameters = map[string]string{}
			for _, key := range strings.Split("abcdefghij", "") {
				f.Class.Parameters[key] = key
			}
		},
		"rivals": func(f *mirror.Facts) {
			sharedHandle(f)
			for i := range 10 {
				f.Rivals = append(f.Rivals, mirror.Rival{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Created: now.Add(-time.Second)})
			}
		},
	} {
		said := map[string]bool{}
		for range 50 {
			facts := base()
			change(&facts)
			rand.Shuffle(len(facts.Rivals), func(i, j int) { facts.Rivals[i], facts.Rivals[j] = facts.Rivals[j], facts.Rivals[i] })
			said[mirror.Decide(facts).Message] = true
		}
		if len(said) != 1 {
			t.Errorf("%s: %d texts: %v", name, len(said), said)
		}
	}
}

func TestRivalOf(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*mirror.Facts)
		served bool
		want   bool
	}{
		{"a claim that can be mirrored", func(*mirror.Facts) {}, false, true},
		{"one that is refused for its modes", func(f *mirror.Facts) {
			f.Claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		}, false, false},
		{"one of volumeMode Block", func(f *mirror.Facts) { f.Claim.Spec.VolumeMode = ptr(corev1.PersistentVolumeBlock) }, false, false},
		{"one that names no origin", func(f *mirror.Facts) { f.Claim.Annotations, f.Claim.Spec.DataSourceRef = nil, nil }, false, false},
		{"one that is served, whatever it names now", func(f *mirror.Facts) { f.Claim.Annotations, f.Claim.Spec.DataSourceRef = nil, nil }, true, true},
	} {
		facts := base()
		tc.change(&facts)
		rival, ok := mirror.RivalOf(names, facts.Claim, tc.served)
		if ok != tc.want || rival.UID != facts.Claim.UID || rival.Served != tc.served {
			t.Errorf("%s: got %+v, %v; want %v", tc.name, rival, ok, tc.want)
		}
	}
}
