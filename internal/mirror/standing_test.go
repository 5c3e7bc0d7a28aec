package mirror_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const (
	newClaimUID  = "aaaaaaaa-0000-4000-8000-00000000ffff"
	newOriginUID = "bbbbbbbb-0000-4000-8000-00000000ffff"
	newVolumeUID = "cccccccc-0000-4000-8000-00000000ffff"
)

// bound is the base case bound to the volume that was made for it, and granted:
// every case is this one and one change. The changes before are made before the
// volume is.
func bound(before ...func(*mirror.Facts)) mirror.Bound {
	facts := base()
	for _, change := range before {
		change(&facts)
	}
	decision := mirror.Decide(facts)
	if decision.Volume == nil {
		panic(decision.Message)
	}
	claim := facts.Claim.DeepCopy()
	claim.Spec.VolumeName, claim.Status.Phase = decision.Volume.Name, corev1.ClaimBound
	return mirror.Bound{
		Names: facts.Names, Now: facts.Now, Claim: claim, Volume: decision.Volume, NamespaceLabels: facts.NamespaceLabels,
		Origin: facts.Origin, OriginVolume: facts.OriginVolume, Driver: facts.Driver,
	}
}

// restoreClaim lets the mirror claim come back from a backup.
func restoreClaim(b *mirror.Bound) { b.Claim.UID = newClaimUID }

// restoreOrigin lets the origin and its volume come back from a backup.
func restoreOrigin(b *mirror.Bound) {
	b.Origin.UID, b.OriginVolume.UID, b.OriginVolume.Spec.ClaimRef.UID = newOriginUID, newVolumeUID, newOriginUID
}

// otherData gives the origin volume another directory.
func otherData(b *mirror.Bound) {
	b.OriginVolume.Spec.CSI.VolumeHandle = "nfs.example.com#export#another##"
	b.OriginVolume.Spec.CSI.VolumeAttributes["subdir"] = "another"
}

func ended(b *mirror.Bound) { b.Origin.Annotations = nil }

func annotate(key, value string) func(*mirror.Bound) {
	return func(b *mirror.Bound) { b.Volume.Annotations[key] = value }
}

func both(changes ...func(*mirror.Bound)) func(*mirror.Bound) {
	return func(b *mirror.Bound) {
		for _, change := range changes {
			change(b)
		}
	}
}

// standings are what a mirror for reading and writing can come to.
var standings = []struct {
	name    string
	change  func(*mirror.Bound)
	want    mirror.Standing
	reason  mirror.Reason
	message string // part of it
}{
	{"as it was made", func(*mirror.Bound) {}, mirror.Valid, mirror.Mirrored, "bound to its mirror volume"},

	// 1. The volume is this claim's.
	{"no claim", func(b *mirror.Bound) { b.Claim = nil }, mirror.Unclear, mirror.RecordBroken, "no claim with its volume"},
	{"no volume", func(b *mirror.Bound) { b.Volume = nil }, mirror.Unclear, mirror.RecordBroken, "no claim with its volume"},
	{"no record", func(b *mirror.Bound) { b.Volume.Annotations = nil }, mirror.Unclear, mirror.RecordBroken, "has no record of this claim"},
	{"another claim's record", annotate(names.MirrorClaimUID(), newClaimUID), mirror.Unclear, mirror.RecordBroken, "has no record of this claim"},
	{"the record of another name's volume", func(b *mirror.Bound) { b.Volume.Name = "pvc-" + newClaimUID }, mirror.Unclear, mirror.RecordBroken, "has no record"},
	{"no origin in the record", annotate(names.OriginClaim(), ""), mirror.Unclear, mirror.RecordBroken, "has no record"},
	{"another origin in the record", annotate(names.OriginClaim(), "drives/other"), mirror.Unclear, mirror.RecordBroken, "was edited"},
	{"another origin in the record, and no grant", both(annotate(names.OriginClaim(), "drives/other"), ended), mirror.Unclear, mirror.RecordBroken, "was edited"},
	{"the label edited", func(b *mirror.Bound) { b.Volume.Labels[names.OriginLabel()] = "x" }, mirror.Valid, mirror.Mirrored, "bound"},
	{"the label removed", func(b *mirror.Bound) { b.Volume.Labels = nil }, mirror.Valid, mirror.Mirrored, "bound"},
	{"the label edited, and no grant", both(func(b *mirror.Bound) { b.Volume.Labels = nil }, ended), mirror.Revoked, mirror.NotShared, "not shared any more"},
	{"the label edited, and the origin restored", both(func(b *mirror.Bound) { b.Volume.Labels = nil }, restoreOrigin), mirror.Unclear, mirror.RecordBroken, "was edited"},
	{"the label edited, and the origin gone", both(func(b *mirror.Bound) { b.Volume.Labels = nil }, func(b *mirror.Bound) { b.Origin = nil }),
		mirror.Revoked, mirror.NotShared, "does not exist any more or"}, // its volume still says that it was the origin
	{"the label edited, and the origin and its volume gone", both(func(b *mirror.Bound) { b.Volume.Labels = nil }, func(b *mirror.Bound) { b.Origin, b.OriginVolume = nil, nil }),
		mirror.Unclear, mirror.RecordBroken, "was edited"},

	// 2. The owner grants it.
	{"namespace not known", func(b *mirror.Bound) { b.NamespaceLabels = nil }, mirror.Unclear, mirror.NotShared, "are not known"},
	{"namespace not known, and no grant", both(func(b *mirror.Bound) { b.NamespaceLabels = nil }, ended), mirror.Unclear, mirror.NotShared, "are not known"},
	{"origin gone", func(b *mirror.Bound) { b.Origin = nil }, mirror.Revoked, mirror.NotShared, "does not exist any more or is not shared any more"},
	{"another claim for the origin", func(b *mirror.Bound) { b.Origin.Name = "other" }, mirror.Revoked, mirror.NotShared, "does not exist any more or"},
	{"of another namespace", func(b *mirror.Bound) { b.Origin.Namespace = "other" }, mirror.Revoked, mirror.NotShared, "does not exist any more or"},
	{"grant removed", ended, mirror.Revoked, mirror.NotShared, "not shared any more with namespace tenant-1"},
	{"grant narrowed", func(b *mirror.Bound) { b.Origin.Annotations[names.ReadWriteGrant()] += ",special" }, mirror.Revoked, mirror.NotShared, "shared"},
	{"grant broken", func(b *mirror.Bound) { b.Origin.Annotations[names.ReadWriteGrant()] = "((" }, mirror.Revoked, mirror.NotShared, "shared"},
	{"label gone", func(b *mirror.Bound) { b.NamespaceLabels = map[string]string{} }, mirror.Revoked, mirror.NotShared, "shared"},
	{"expired", expiring(0), mirror.Revoked, mirror.NotShared, "shared"},
	{"an end that is no time", func(b *mirror.Bound) { b.Origin.Annotations[names.GrantExpires()] = "soon" }, mirror.Revoked, mirror.NotShared, "shared"},
	{"about to expire", expiring(time.Second), mirror.Valid, mirror.Mirrored, "mirrors drives/mydrive (ReadWrite) until 2027-01-01T12:00:01Z, when the grant ends"},

	// 3. It stays.
	{"origin being deleted", func(b *mirror.Bound) { b.Origin.DeletionTimestamp = &metav1.Time{Time: now} }, mirror.Revoked, mirror.OriginTerminating, "is being deleted, which ends"},
	{"being deleted and not shared", both(func(b *mirror.Bound) { b.Origin.DeletionTimestamp = &metav1.Time{Time: now} }, ended),
		mirror.Revoked, mirror.NotShared, "does not exist any more or"},

	// 4. The access is as wide.
	{"read-only now", readOnlyNow, mirror.Revoked, mirror.GrantReadOnly, "is shared read-only now, and this claim is read-write"},

	// 5. What the origin is can be seen.
	{"origin pending", func(b *mirror.Bound) { b.Origin.Status.Phase = corev1.ClaimPending }, mirror.Unclear, mirror.OriginPending, "not bound yet"},
	{"origin lost", func(b *mirror.Bound) { b.Origin.Status.Phase = corev1.ClaimLost }, mirror.Unclear, mirror.OriginLost, "lost its volume"},
	{"no origin volume", func(b *mirror.Bound) { b.OriginVolume = nil }, mirror.Unclear, mirror.OriginPending, "not seen yet"},
	{"origin unbound", func(b *mirror.Bound) { b.OriginVolume.Spec.ClaimRef = nil }, mirror.Unclear, mirror.OriginBindingBroken, "do not name each other"},
	{"origin bound by name only", func(b *mirror.Bound) { b.OriginVolume.Spec.ClaimRef.UID = "" }, mirror.Unclear, mirror.OriginBindingBroken, "by UID"},
	{"origin volume of another claim", func(b *mirror.Bound) { b.OriginVolume.Spec.ClaimRef.UID = newOriginUID }, mirror.Unclear, mirror.OriginBindingBroken, "by UID"},
	{"origin names another volume", func(b *mirror.Bound) { b.Origin.Spec.VolumeName = "other" }, mirror.Unclear, mirror.OriginBindingBroken, "by UID"},
	{"origin volume being deleted", func(b *mirror.Bound) { b.OriginVolume.DeletionTimestamp = &metav1.Time{Time: now} }, mirror.Unclear, mirror.OriginTerminating, "the volume of origin"},

	// 6. It has the same data.
	{"origin restored, the same data", restoreOrigin, mirror.Valid, mirror.Mirrored, "bound"},
	{"origin restored, other data", both(restoreOrigin, otherData), mirror.Revoked, mirror.OriginReplaced, "replaced by a claim with other data"},
	{"origin restored, another kind of volume", both(restoreOrigin, func(b *mirror.Bound) {
		b.OriginVolume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/export"}}
	}), mirror.Revoked, mirror.OriginReplaced, "other data"},
	{"origin restored as a mirror", both(restoreOrigin, func(b *mirror.Bound) { b.OriginVolume.Annotations[names.MirrorClaimUID()] = "x" }),
		mirror.Revoked, mirror.OriginReplaced, "other data"},
	{"origin restored, not shared", both(restoreOrigin, ended), mirror.Revoked, mirror.NotShared, "does not exist any more or"},
	{"origin restored, not bound yet", both(restoreOrigin, func(b *mirror.Bound) { b.Origin.Status.Phase = "" }), mirror.Unclear, mirror.OriginPending, "not bound"},
	{"the record's UID of the origin edited", annotate(names.OriginClaimUID(), "x"), mirror.Valid, mirror.Mirrored, "bound"},

	// The claim itself came back.
	{"claim restored", restoreClaim, mirror.Valid, mirror.Mirrored, "bound"},
	{"claim and origin restored", both(restoreClaim, restoreOrigin), mirror.Valid, mirror.Mirrored, "bound"},
	{"claim restored, not shared", both(restoreClaim, ended), mirror.Revoked, mirror.NotShared, "shared"},
	{"claim restored, origin with other data", both(restoreClaim, restoreOrigin, otherData), mirror.Revoked, mirror.OriginReplaced, "other data"},
	{"claim restored under another name", both(restoreClaim, func(b *mirror.Bound) { b.Claim.Name = "other" }), mirror.Unclear, mirror.RecordBroken, "no record of this claim"},
	{"claim restored in another namespace", both(restoreClaim, func(b *mirror.Bound) { b.Claim.Namespace = "tenant-2" }), mirror.Unclear, mirror.RecordBroken, "no record"},
	{"claim of that name that names no volume", both(restoreClaim, func(b *mirror.Bound) { b.Claim.Spec.VolumeName = "" }), mirror.Unclear, mirror.RecordBroken, "no record"},
	{"claim of that name without origin", both(restoreClaim, func(b *mirror.Bound) { b.Claim.Spec.DataSourceRef = nil }), mirror.Unclear, mirror.RecordBroken, "no record"},
	{"claim of that name that asks for less", both(restoreClaim, func(b *mirror.Bound) {
		b.Claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	}), mirror.Unclear, mirror.RecordBroken, "no record"},
}

// expiring lets the grant end after some time.
func expiring(after time.Duration) func(*mirror.Bound) {
	return func(b *mirror.Bound) {
		b.Origin.Annotations[names.GrantExpires()] = b.Now.Add(after).Format(time.RFC3339)
	}
}

func readOnlyNow(b *mirror.Bound) {
	b.Origin.Annotations = map[string]string{names.ReadOnlyGrant(): selector}
}

func TestJudge(t *testing.T) {
	for _, tc := range standings {
		t.Run(tc.name, func(t *testing.T) {
			facts := bound()
			tc.change(&facts)
			got := mirror.Judge(facts)
			if got.Standing != tc.want || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%v %s %q\nwant %v %s %q", got.Standing, got.Reason, got.Message, tc.want, tc.reason, tc.message)
			}
			if again := mirror.Judge(facts); !cmp.Equal(got, again) {
				t.Errorf("and then %v", again)
			}
			if got.Standing != mirror.Valid && got.Record != nil {
				t.Errorf("the record would become %v although the mirror is %v", got.Record, got.Standing)
			}
		})
	}
}

// A mirror for reading needs no more than a grant for reading.
func TestJudgeReadOnly(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*mirror.Bound)
		want   mirror.Standing
		reason mirror.Reason
	}{
		{"granted to write", func(*mirror.Bound) {}, mirror.Valid, mirror.Mirrored},
		{"granted to read", readOnlyNow, mirror.Valid, mirror.Mirrored},
		{"granted no more", ended, mirror.Revoked, mirror.NotShared},
		{"origin restored", restoreOrigin, mirror.Valid, mirror.Mirrored},
		{"claim restored", restoreClaim, mirror.Valid, mirror.Mirrored},
		{"claim restored, to write", both(restoreClaim, func(b *mirror.Bound) {
			b.Claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), mirror.Unclear, mirror.RecordBroken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := bound(modes(corev1.ReadOnlyMany))
			tc.change(&facts)
			if got := mirror.Judge(facts); got.Standing != tc.want || got.Reason != tc.reason {
				t.Errorf("%v %s %q, want %v %s", got.Standing, got.Reason, got.Message, tc.want, tc.reason)
			}
		})
	}
}

func TestJudgeNothing(t *testing.T) {
	if got := mirror.Judge(mirror.Bound{}); got.Standing != mirror.Unclear || got.Reason == "" || got.Message == "" || got.Record != nil {
		t.Errorf("without facts: %+v", got)
	}
	if (mirror.Review{}).Standing != mirror.Unclear {
		t.Error("the zero review says something")
	}
	for standing, want := range map[mirror.Standing]string{mirror.Unclear: "unclear", mirror.Valid: "valid", mirror.Revoked: "revoked", 99: "unclear"} {
		if got := standing.String(); got != want {
			t.Errorf("%d is %q, want %q", standing, got, want)
		}
	}
}

// The asking side is not told whether an origin that is not shared with it any
// more exists, nor what became of it.
func TestJudgeTellsNothingOfOriginsNotShared(t *testing.T) {
	gone := bound()
	gone.Origin, gone.OriginVolume = nil, nil
	want := mirror.Judge(gone)
	for name, change := range map[string]func(*mirror.Bound){
		"exists":        func(*mirror.Bound) {},
		"broken":        func(b *mirror.Bound) { b.Origin.Annotations = map[string]string{names.ReadWriteGrant(): "(("} },
		"expired":       expiring(-time.Hour),
		"pending":       func(b *mirror.Bound) { b.Origin.Status.Phase = corev1.ClaimPending },
		"lost":          func(b *mirror.Bound) { b.Origin.Status.Phase = corev1.ClaimLost },
		"being deleted": func(b *mirror.Bound) { b.Origin.DeletionTimestamp = &metav1.Time{Time: now} },
		"no volume":     func(b *mirror.Bound) { b.OriginVolume = nil },
		"replaced":      both(restoreOrigin, otherData),
		"a mirror":      func(b *mirror.Bound) { b.OriginVolume.Annotations[names.MirrorClaimUID()] = "x" },
	} {
		facts := bound()
		facts.Origin.Annotations = map[string]string{names.ReadWriteGrant(): "other"}
		change(&facts)
		if got := mirror.Judge(facts); !cmp.Equal(got, want) {
			t.Errorf("%s: %q\nwhere there is none: %q", name, got.Message, want.Message)
		}
	}
}

// What the record is brought up to date with after a restore, and nothing else.
func TestJudgeRefreshesTheRecord(t *testing.T) {
	original := bound().Volume.Annotations
	for _, tc := range []struct {
		name   string
		change func(*mirror.Bound)
		want   map[string]string // nil for nothing
	}{
		{"nothing was restored", func(*mirror.Bound) {}, nil},
		{"another grant lets it in now", func(b *mirror.Bound) { b.Origin.Annotations[names.ReadWriteGrant()] = "crownlabs.polito.it/type" }, nil},
		{"the origin", restoreOrigin, map[string]string{names.OriginClaimUID(): newOriginUID, names.OriginVolumeUID(): newVolumeUID}},
		{"the claim", restoreClaim, map[string]string{names.MirrorClaimUID(): newClaimUID, names.VolumeName(): "pvc-" + askUID}},
		{"both", both(restoreClaim, restoreOrigin), map[string]string{names.MirrorClaimUID(): newClaimUID, names.VolumeName(): "pvc-" + askUID,
			names.OriginClaimUID(): newOriginUID, names.OriginVolumeUID(): newVolumeUID}},
		{"the origin, under another volume name", both(restoreOrigin, func(b *mirror.Bound) {
			b.Origin.Spec.VolumeName, b.OriginVolume.Name = "pvc-new", "pvc-new"
		}), map[string]string{names.OriginClaimUID(): newOriginUID, names.OriginVolumeUID(): newVolumeUID, names.OriginVolume(): "pvc-new"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := bound()
			tc.change(&facts)
			got := mirror.Judge(facts)
			if (got.Record == nil) != (tc.want == nil) {
				t.Fatalf("record %v, want %v", got.Record, tc.want)
			}
			// Written, it is as if the volume had been made so, and is judged without
			// another change.
			maps.Copy(facts.Volume.Annotations, got.Record)
			want := maps.Clone(original)
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(want, facts.Volume.Annotations); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if again := mirror.Judge(facts); again.Standing != mirror.Valid || again.Record != nil {
				t.Errorf("once written: %+v", again)
			}
		})
	}
}

func TestJudgeSaysWhichGrant(t *testing.T) {
	facts := bound()
	expiring(time.Hour)(&facts)
	want := grant.Grant{Access: grant.ReadWrite, Annotation: names.ReadWriteGrant(), Selector: selector, Expires: now.Add(time.Hour)}
	if got := mirror.Judge(facts).Grant; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	ended(&facts)
	if got := mirror.Judge(facts).Grant; got != (grant.Grant{}) {
		t.Errorf("without a grant: %+v", got)
	}
}

// Another provisioner's mirrors have the very source of their origin, which a
// restored origin is known by.
func TestJudgeKnowsFormerMirrors(t *testing.T) {
	facts := bound()
	facts.Volume.Spec.PersistentVolumeSource = *facts.OriginVolume.Spec.PersistentVolumeSource.DeepCopy()
	facts.Volume.Annotations[names.AdoptedAt()] = "2026-12-01T00:00:00Z"
	restoreOrigin(&facts)
	if got := mirror.Judge(facts); got.Standing != mirror.Valid || got.Record[names.OriginClaimUID()] != newOriginUID {
		t.Errorf("%+v", got)
	}
	otherData(&facts)
	if got := mirror.Judge(facts); got.Standing != mirror.Revoked || got.Reason != mirror.OriginReplaced {
		t.Errorf("with other data: %+v", got)
	}
}

func TestNamesOfOtherProvisionersRevokeNothing(t *testing.T) {
	other, err := mooringapi.NewNames("mirror.example.com")
	if err != nil {
		t.Fatal(err)
	}
	facts := bound()
	facts.Names = other
	if got := mirror.Judge(facts); got.Standing != mirror.Unclear || got.Reason != mirror.RecordBroken {
		t.Errorf("%+v", got)
	}
}
