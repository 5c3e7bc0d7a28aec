package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/choice"
	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// boundFrom returns a bound mirror with its parts, and its record, changed as the
// choices say.
func boundFrom(s *choice.Source) mirror.Bound {
	b := bound()
	s.Perhaps(func() { b = bound(modes(corev1.ReadOnlyMany)) })
	s.Perhaps(func() { chooseMeta(s, &b.Claim.ObjectMeta) })
	s.Perhaps(func() { chooseRecord(s, b.Volume) })
	s.Perhaps(func() { b.NamespaceLabels = s.Map(3, labelKeys, []string{"tenant", ""}) })
	s.Perhaps(func() { chooseOrigin(s, b.Origin) })
	s.Perhaps(func() { chooseVolume(s, b.OriginVolume) })
	s.Perhaps(func() { b.RecordedVolume = originVolume() })
	s.Perhaps(func() { chooseVolume(s, b.Volume) })
	for _, forget := range []func(){
		func() { b.Claim = nil }, func() { b.Volume = nil }, func() { b.NamespaceLabels = nil },
		func() { b.Origin = nil }, func() { b.OriginVolume = nil },
	} {
		if s.Int(32) == 31 {
			forget()
		}
	}
	return b
}

func chooseRecord(s *choice.Source, volume *corev1.PersistentVolume) {
	for _, key := range []string{
		names.MirrorClaim(), names.MirrorClaimUID(), names.OriginClaim(), names.OriginClaimUID(), names.OriginVolume(), names.OriginVolumeUID(),
		names.GrantedBy(), names.RevokedAt(), names.VolumeName(), names.AdoptedAt(), names.ServedBy(),
	} {
		s.Perhaps(func() {
			volume.Annotations[key] = s.Text("", "drives/mydrive", "drives/other", "tenant-1/drive", askUID, originUID, volumeUID, "pvc-origin", hostile)
		})
	}
}

// mayBeTaken is what has to be known before a mirror is called revoked: whose it
// is, and that its grant has ended or its origin is another one than the record's.
func mayBeTaken(b mirror.Bound) bool {
	if b.Claim == nil || b.Volume == nil || b.NamespaceLabels == nil {
		return false
	}
	record := mirror.RecordOf(b.Names, b.Volume)
	if !record.IsMirror() {
		return false
	}
	if b.Origin == nil || b.Origin.DeletionTimestamp != nil || record.Origin.Namespace != b.Origin.Namespace || record.Origin.Name != b.Origin.Name ||
		grant.Evaluate(b.Names, b.Origin.Annotations, b.NamespaceLabels, b.Now).Access < mirror.Access(b.Claim) {
		return true
	}
	v := b.OriginVolume
	isBound := v != nil && v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == b.Origin.UID && b.Origin.Status.Phase == corev1.ClaimBound
	isRecorded := v != nil && record.OriginUID == b.Origin.UID && record.OriginVolume == v.Name && record.OriginVolumeUID == v.UID
	return isBound && !isRecorded
}

// FuzzJudgeFacts holds what must be true of every review.
func FuzzJudgeFacts(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		facts := boundFrom(choice.From(data))
		got := mirror.Judge(facts)
		again := boundFrom(choice.From(data))
		switch {
		case !cmp.Equal(facts, again, byValue):
			t.Fatalf("the facts were changed\n%s", cmp.Diff(facts, again, byValue))
		case !cmp.Equal(got, mirror.Judge(again)):
			t.Fatal("the same facts give two reviews")
		case got.Reason == "" || got.Message == "":
			t.Fatalf("%v without words", got.Standing)
		case got.Standing == mirror.Revoked && !mayBeTaken(facts):
			t.Fatalf("taken although it is not certain: %+v", got)
		case got.Standing != mirror.Valid && got.Record != nil:
			t.Fatalf("%v, and the record would be changed", got.Standing)
		case got.Standing == mirror.Valid && grant.Evaluate(facts.Names, facts.Origin.Annotations, facts.NamespaceLabels, facts.Now).Access < mirror.Access(facts.Claim):
			t.Fatalf("valid without a grant: %+v", got)
		}
		checkText(t, got.Message)
		for _, key := range []string{names.ReadWriteGrant(), names.ReadOnlyGrant()} {
			less := boundFrom(choice.From(data))
			if less.Origin == nil {
				return
			}
			delete(less.Origin.Annotations, key)
			if without := mirror.Judge(less); without.Standing == mirror.Valid && got.Standing != mirror.Valid {
				t.Fatalf("valid without %s, and %v with it", key, got.Standing)
			}
		}
	})
}

// FuzzRecord reads records that somebody edited, and what would be repaired of
// them: no panic, one answer, and a mirror that is repaired is Retain and bound to
// the claim of its record.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := boundFrom(choice.From(data))
		if b.Volume == nil || b.Claim == nil {
			return
		}
		record := mirror.RecordOf(names, b.Volume)
		if record != mirror.RecordOf(names, b.Volume) {
			t.Fatal("one volume has two records")
		}
		if record.IsMirror() && (record.Claim.Name == "" || record.Origin.Name == "") {
			t.Fatalf("a mirror of nothing: %+v", record)
		}
		by := mirror.GrantedByOf(names, b.Volume)
		if by != mirror.GrantedByOf(names, b.Volume) {
			t.Fatal("one volume has two grants")
		}
		one, known := mirror.TrueOrigin(names, b.Volume, b.Claim, b.RecordedVolume)
		if two, again := mirror.TrueOrigin(names, b.Volume, b.Claim, b.RecordedVolume); one != two || known != again {
			t.Fatal("one volume has two origins")
		}
		if known && one.Name == "" {
			t.Fatal("it is certain that nothing is mirrored")
		}
		_ = mirror.Leftover(names, b.Volume, b.Claim)
		_ = mirror.IsStripped(names, b.Volume)
		if mirror.IsMadeFor(names, b.Volume, b.Claim) && record.ClaimUID != b.Claim.UID {
			t.Fatalf("made for %s, and recorded for %s", b.Claim.UID, record.ClaimUID)
		}
	})
}

// FuzzPolicyOf holds that only what is plainly a wish to delete deletes.
func FuzzPolicyOf(f *testing.F) {
	for _, after := range []string{"5m", "", "-1s", "5", "1h30m", "9999999h", "5m\n"} {
		f.Add("Delete", after)
		f.Add("delete", after)
	}
	f.Fuzz(func(t *testing.T, on, after string) {
		class := &storagev1.StorageClass{Provisioner: names.Provisioner()}
		class.Annotations = map[string]string{names.OnRevoke(): on, names.RevokeAfter(): after}
		got := mirror.PolicyOf(names, class)
		if got.Delete && (on != "Delete" || after == "" || got.After < 0) {
			t.Fatalf("%q, %q: %+v", on, after, got)
		}
		if again := mirror.PolicyOf(names, class); again != got {
			t.Fatalf("%+v and then %+v", got, again)
		}
		class.Provisioner = "somebody.example.com"
		if (mirror.PolicyOf(names, class) != mirror.Policy{}) {
			t.Fatal("another provisioner's class decides")
		}
	})
}
