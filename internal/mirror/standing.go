package mirror

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Bound are the facts about a mirror claim that is bound to its volume. What it
// mirrors is said by the volume's record, not by the claim.
type Bound struct {
	Names mooringapi.Names
	Now   time.Time

	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// NamespaceLabels are the labels of the claim's namespace; nil where it is
	// not known.
	NamespaceLabels map[string]string
	// Origin is the claim that the record names, whatever its UID, and
	// OriginVolume the volume that it names; nil where they do not exist.
	Origin       *corev1.PersistentVolumeClaim
	OriginVolume *corev1.PersistentVolume
	// RecordedVolume is the volume of the name in the record, nil where there is
	// none: by it an edited record is told from a true one.
	RecordedVolume *corev1.PersistentVolume
	// Driver is the CSIDriver object of the origin volume's driver, if any.
	Driver *storagev1.CSIDriver
}

// Standing is whether a bound mirror still has its grant. The zero value says
// that nothing is certain: nothing is confirmed then, and nothing taken.
type Standing int

// The standings.
const (
	Unclear Standing = iota
	Valid
	Revoked
)

// String returns the standing as it stands in logs.
func (s Standing) String() string {
	switch s {
	case Valid:
		return "valid"
	case Revoked:
		return "revoked"
	default:
		return "unclear"
	}
}

// Review is the answer to Bound. The zero value is unclear.
type Review struct {
	Standing Standing
	Reason   Reason
	// Message is a sentence for the mirror claim's owner.
	Message string
	// Mending says that the record was edited and is about to be put back, so
	// that there is nothing to tell anybody yet.
	Mending bool
	// Grant is what lets the claim in now; empty where nothing does.
	Grant grant.Grant
	// Record are the annotations by which the record is brought up to date with
	// a claim or an origin that came back under another UID; nil where it is.
	Record map[string]string
}

// review is one step of the ladder for bound mirrors: nil to go on.
type review func(*reviewer) *Review

var reviews = []review{recordIsWhole, stillGranted, originStays, accessStillGranted, originIsKnown, sameData}

// reviewer carries the facts up, and what was found on the way.
type reviewer struct {
	Bound
	record Record
	grant  grant.Grant
}

// Judge returns how a bound mirror stands. The same facts always give the same
// answer.
func Judge(facts Bound) Review {
	r := &reviewer{Bound: facts}
	for _, step := range reviews {
		if said := step(r); said != nil {
			said.Grant = r.grant
			return *said
		}
	}
	return Review{Standing: Valid, Reason: Mirrored, Message: r.validMessage(), Grant: r.grant, Record: r.refreshed()}
}

func (r *reviewer) validMessage() string {
	if r.grant.Expires.IsZero() {
		return "bound to its mirror volume"
	}
	return fmt.Sprintf("mirrors %s (%s) until %s, when the grant ends", r.record.Origin, Access(r.Claim), r.grant.Expires.UTC().Format(time.RFC3339))
}

// 1. The volume is this claim's mirror, and its record names the origin that
// its other witnesses name.
func recordIsWhole(r *reviewer) *Review {
	if r.Claim == nil || r.Volume == nil {
		return &Review{Reason: RecordBroken, Message: "there is no claim with its volume to judge"}
	}
	r.record = RecordOf(r.Names, r.Volume)
	if !r.record.IsMirror() || r.record.ClaimUID != r.Claim.UID && !IsRestoredFor(r.Names, r.Volume, r.Claim) {
		return &Review{Reason: RecordBroken, Message: "volume " + r.Volume.Name + " has no record of this claim: an administrator must look at it"}
	}
	recorded := r.RecordedVolume
	if recorded == nil {
		recorded = r.OriginVolume
	}
	switch origin, known := TrueOrigin(r.Names, r.Volume, r.Claim, recorded); {
	case !known:
		return &Review{Reason: RecordBroken, Message: "the record of volume " + r.Volume.Name + " was edited, and what it mirrors is not certain: an administrator must look at it"}
	case origin != r.record.Origin:
		return &Review{Mending: true, Reason: RecordBroken, Message: "the record of volume " + r.Volume.Name + " was edited, and is put back"}
	}
	return nil
}

// isRecordedOrigin reports whether the origin and its volume are the very ones
// of the record.
func (r *reviewer) isRecordedOrigin() bool {
	return r.isOriginNamed() && r.OriginVolume != nil && boundByUID(r.Origin, r.OriginVolume) &&
		r.Origin.UID == r.record.OriginUID && r.OriginVolume.Name == r.record.OriginVolume && r.OriginVolume.UID == r.record.OriginVolumeUID
}

// isOriginNamed reports whether the origin exists and is the one that the record
// names.
func (r *reviewer) isOriginNamed() bool {
	return r.Origin != nil && r.Origin.Namespace == r.record.Origin.Namespace && r.Origin.Name == r.record.Origin.Name
}

// 2. The owner grants it to this namespace now. One text for an origin that is
// gone and one that is not shared any more.
func stillGranted(r *reviewer) *Review {
	if r.NamespaceLabels == nil {
		return &Review{Reason: NotShared, Message: "the labels of namespace " + r.Claim.Namespace + " are not known"}
	}
	if r.isOriginNamed() {
		r.grant = grant.Evaluate(r.Names, r.Origin.Annotations, r.NamespaceLabels, r.Now)
	}
	if r.grant.Access == grant.None {
		return &Review{Standing: Revoked, Reason: NotShared,
			Message: fmt.Sprintf("%s does not exist any more or is not shared any more with namespace %s: ask its owner to share it", r.record.Origin, r.Claim.Namespace)}
	}
	return nil
}

// 3. Who deletes the origin ends its grants.
func originStays(r *reviewer) *Review {
	if r.Origin.DeletionTimestamp == nil {
		return nil
	}
	return &Review{Standing: Revoked, Reason: OriginTerminating, Message: fmt.Sprintf("origin %s is being deleted, which ends its grants", r.record.Origin)}
}

// 4. The grant is as wide as the mirror.
func accessStillGranted(r *reviewer) *Review {
	if Access(r.Claim) == grant.ReadOnly || r.grant.Access == grant.ReadWrite {
		return nil
	}
	return &Review{Standing: Revoked, Reason: GrantReadOnly,
		Message: fmt.Sprintf("origin %s is shared read-only now, and this claim is read-write: create a claim with ReadOnlyMany instead", r.record.Origin)}
}

// 5. What the origin is now can be seen. That it cannot, ends no grant.
func originIsKnown(r *reviewer) *Review {
	c := &climber{Facts: Facts{Origin: r.Origin, OriginVolume: r.OriginVolume}, origin: r.record.Origin}
	said := originIsBound(c)
	if said == nil {
		return nil
	}
	return &Review{Reason: said.reason, Message: said.message}
}

// 6. It is the recorded origin; or one that came back from a backup under
// another UID, with the same data.
func sameData(r *reviewer) *Review {
	if r.isRecordedOrigin() {
		return nil
	}
	c := &climber{Facts: Facts{Names: r.Names, OriginVolume: r.OriginVolume}, origin: r.record.Origin}
	if originIsNoMirror(c) == nil && Reaches(r.Volume, r.OriginVolume, r.Claim, r.Driver) {
		return nil
	}
	return &Review{Standing: Revoked, Reason: OriginReplaced,
		Message: fmt.Sprintf("origin %s was replaced by a claim with other data: this claim still reaches the former's; create it anew", r.record.Origin)}
}

// refreshed returns what the record must say of a claim and an origin that came
// back under other UIDs; nil where it says so.
func (r *reviewer) refreshed() map[string]string {
	n := r.Names
	if r.isRecordedOrigin() && r.record.ClaimUID == r.Claim.UID {
		return nil
	}
	record := map[string]string{
		n.MirrorClaimUID():  string(r.Claim.UID),
		n.OriginClaimUID():  string(r.Origin.UID),
		n.OriginVolume():    r.OriginVolume.Name,
		n.OriginVolumeUID(): string(r.OriginVolume.UID),
		n.GrantedBy():       grantedBy(r.grant, Access(r.Claim)),
	}
	if r.Volume.Name != VolumeName(r.Claim.UID) {
		record[n.VolumeName()] = r.Volume.Name
	}
	return record
}
