package mirror

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Record is what a mirror volume says about itself. The zero value is that of
// a volume which is no mirror of this provisioner name.
type Record struct {
	Claim           types.NamespacedName
	ClaimUID        types.UID
	Origin          types.NamespacedName
	OriginUID       types.UID
	OriginVolume    string
	OriginVolumeUID types.UID
	// ServedBy is the instance that looks after the mirror.
	ServedBy string
	// RevokedAt is when the mirror was found to have lost its grant; zero while
	// it has it. Adopted says that another provisioner made the volume.
	RevokedAt time.Time
	Adopted   bool
}

// RecordOf reads a volume's record. A record that was copied to a volume of
// another name, or is missing a part that nothing can be done without, is none.
func RecordOf(names mooringapi.Names, volume *corev1.PersistentVolume) Record {
	uid := types.UID(volume.Annotations[names.MirrorClaimUID()])
	claim, origin := split(volume.Annotations[names.MirrorClaim()]), split(volume.Annotations[names.OriginClaim()])
	isNamed := volume.Name == VolumeName(uid) || volume.Name == volume.Annotations[names.VolumeName()]
	if uid == "" || !isNamed || claim.Name == "" || origin.Name == "" {
		return Record{}
	}
	revoked, _ := time.Parse(time.RFC3339, volume.Annotations[names.RevokedAt()]) // unreadable: not yet
	return Record{
		Claim:           claim,
		ClaimUID:        uid,
		Origin:          origin,
		OriginUID:       types.UID(volume.Annotations[names.OriginClaimUID()]),
		OriginVolume:    volume.Annotations[names.OriginVolume()],
		OriginVolumeUID: types.UID(volume.Annotations[names.OriginVolumeUID()]),
		ServedBy:        volume.Annotations[names.ServedBy()],
		RevokedAt:       revoked,
		Adopted:         volume.Annotations[names.AdoptedAt()] != "",
	}
}

// IsMirror reports whether the record is one.
func (r Record) IsMirror() bool { return r.ClaimUID != "" }

func split(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// SameOrigin reports whether two records are of one origin: the same claim and
// volume, not only the same names.
func (r Record) SameOrigin(other Record) bool {
	return r.Origin == other.Origin && r.OriginUID == other.OriginUID &&
		r.OriginVolume == other.OriginVolume && r.OriginVolumeUID == other.OriginVolumeUID
}

// ClaimRef returns the claimRef that the volume was made with.
func (r Record) ClaimRef() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: claimKind, Namespace: r.Claim.Namespace, Name: r.Claim.Name, UID: r.ClaimUID}
}

// RefTo returns the claimRef of a volume that is this claim's alone.
func RefTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return Record{Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, ClaimUID: claim.UID}.ClaimRef()
}

// HasOwnClaimRef reports whether a mirror volume's claimRef is the one it was
// made with. With any other the binder could bind another claim to it: with
// none, with one that has no UID, or with a stranger's.
func HasOwnClaimRef(names mooringapi.Names, volume *corev1.PersistentVolume) bool {
	own, ref := RecordOf(names, volume).ClaimRef(), volume.Spec.ClaimRef
	return ref != nil && ref.UID == own.UID && ref.Namespace == own.Namespace && ref.Name == own.Name
}

// IsMadeFor reports whether a volume was made as the mirror volume of this claim
// and nobody else's: by its record, and by who made it. A volume that merely has
// the right name is a stranger.
func IsMadeFor(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	record := RecordOf(names, volume)
	return record.IsMirror() && record.ClaimUID == claim.UID &&
		record.Claim.Namespace == claim.Namespace && record.Claim.Name == claim.Name &&
		volume.Annotations[mooringapi.ProvisionedBy] == names.Provisioner()
}

// IsMirrorOf reports whether a volume was made for this claim, and is still only
// this claim's to be bound to.
func IsMirrorOf(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return IsMadeFor(names, volume, claim) && HasOwnClaimRef(names, volume)
}

// IsRestoredFor reports whether a volume was made for a claim of this name which
// is no more, and this claim, restored from a backup under another UID, names it
// as its volume, the recorded origin as its own, and asks for the same access. A
// claim that asks for no mirror has merely the same name; and one that asks to
// read, which a read-only grant lets in, must not get a volume that writes.
func IsRestoredFor(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	record := RecordOf(names, volume)
	return record.IsMirror() && record.ClaimUID != claim.UID && claim.Spec.VolumeName == volume.Name &&
		record.Claim.Namespace == claim.Namespace && record.Claim.Name == claim.Name &&
		accessRecorded(volume.Annotations[names.GrantedBy()]) == Access(claim).String() &&
		slices.Contains(Origins(names, claim), record.Origin)
}

// Leftover returns why a mirror volume no longer serves the claim that it was
// made for, or "" while it does. A leftover's object is deleted; that never
// touches the data.
//
// The claim is the one that the record names, nil if none of that name exists.
func Leftover(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	switch {
	case claim == nil:
		return "its claim is gone"
	case claim.UID != RecordOf(names, volume).ClaimUID && !Owns(claim, volume) && !IsRestoredFor(names, volume, claim):
		return "its claim was replaced by another of the same name"
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		return "its claim is bound to another volume"
	}
	return ""
}
