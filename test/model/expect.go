package model

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The rules, stated once more, over all objects as they are: deliberately
// without the ladders of internal/mirror. Of that only the names of the reasons
// and of volumes are used.

// snapshot are all objects as they are at one time, or nearly.
type snapshot struct {
	now        time.Time
	claims     map[client.ObjectKey]*corev1.PersistentVolumeClaim
	volumes    map[string]*corev1.PersistentVolume
	namespaces map[string]map[string]string
	classes    map[string]*storagev1.StorageClass
}

// expectation is what must be the case of a claim.
type expectation struct {
	// bound says that the claim must be bound to a volume; reason is what its
	// condition must be False for, "" if it must not be.
	bound  bool
	reason mirror.Reason
	// until is when access ends; zero where it has no end.
	until time.Time
}

// allowed returns how much of an origin a namespace may have: 0, 1 to read, 2 to
// write, and until when.
func (s *snapshot) allowed(origin *corev1.PersistentVolumeClaim, namespace string) (access int, until time.Time) {
	if origin == nil {
		return 0, until
	}
	if text, given := origin.Annotations[names.GrantExpires()]; given {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || !s.now.Before(at) {
			return 0, until
		}
		until = at
	}
	for _, grant := range []struct {
		key    string
		access int
	}{{names.ReadWriteGrant(), 2}, {names.ReadOnlyGrant(), 1}} {
		text, given := origin.Annotations[grant.key]
		for _, selector := range selectors {
			if given && selector.text == text && selector.allow(s.namespaces[namespace]) {
				return grant.access, until
			}
		}
	}
	return 0, time.Time{}
}

func writes(claim *corev1.PersistentVolumeClaim) bool {
	return !slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany})
}

// asked returns the origin that a claim names, or why it names none.
func asked(claim *corev1.PersistentVolumeClaim) (client.ObjectKey, mirror.Reason) {
	var byRef, byText client.ObjectKey
	if ref := claim.Spec.DataSourceRef; ref != nil {
		byRef = client.ObjectKey{Namespace: *ref.Namespace, Name: ref.Name}
	}
	text, given := claim.Annotations[names.Origin()]
	if given {
		namespace, name, two := strings.Cut(text, "/")
		if !two {
			return byText, mirror.OriginMalformed
		}
		byText = client.ObjectKey{Namespace: namespace, Name: name}
	}
	switch {
	case byRef.Name == "" && !given:
		return byText, mirror.NoOrigin
	case byRef.Name == "":
		return byText, ""
	case given && byRef != byText:
		return client.ObjectKey{}, mirror.OriginAmbiguous
	}
	return byRef, ""
}

// expectUnbound says what must be of a claim that is not bound.
func (s *snapshot) expectUnbound(claim *corev1.PersistentVolumeClaim) expectation {
	key, reason := asked(claim)
	switch {
	case reason != "":
		return expectation{reason: reason}
	case !s.mayHaveName(claim):
		return expectation{reason: mirror.ClaimNamesVolume}
	}
	origin := s.claims[key]
	access, until := s.allowed(origin, claim.Namespace)
	if access == 0 {
		return expectation{reason: mirror.NotShared}
	}
	if reason := s.cannotShare(origin, claim, access); reason != "" {
		return expectation{reason: reason}
	}
	if s.isSecond(origin, claim) {
		return expectation{reason: mirror.DuplicateMirror}
	}
	volume := s.volumes[mirror.NameOf(claim)]
	switch {
	case volume == nil || s.isFor(volume, claim):
		return expectation{bound: true, until: until}
	case volume.Annotations[names.MirrorClaimUID()] == "" || s.isAnothers(volume, claim):
		return expectation{reason: mirror.VolumeNameTaken}
	case volume.Annotations[names.MirrorClaim()] != client.ObjectKeyFromObject(claim).String():
		return expectation{reason: mirror.VolumeNameTaken} // it is kept for a restored claim, which has another name
	}
	restored := s.expectBound(claim, volume) // it is given back to the claim, if that still is its mirror
	return expectation{bound: restored.reason == "", reason: restored.reason, until: until}
}

// isFor reports whether a volume was made for a claim, by its record, or without
// one by its claimRef.
func (s *snapshot) isFor(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	uid := types.UID(volume.Annotations[names.MirrorClaimUID()])
	return uid == claim.UID || uid == "" && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == claim.UID
}

// isAnothers reports whether a volume was made for another claim, which is there.
func (s *snapshot) isAnothers(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	for _, other := range s.claims {
		if string(other.UID) == volume.Annotations[names.MirrorClaimUID()] {
			return other.UID != claim.UID
		}
	}
	return false
}

// mayHaveName reports whether a claim asks for no volume by name, its own, or
// one that is in nobody's way.
func (s *snapshot) mayHaveName(claim *corev1.PersistentVolumeClaim) bool {
	name := claim.Spec.VolumeName
	if name == "" || name == mirror.VolumeName(claim.UID) {
		return true
	}
	for _, other := range s.claims {
		if mirror.VolumeName(other.UID) == name {
			return false
		}
	}
	return strings.HasPrefix(name, "pvc-")
}

// cannotShare returns what keeps an origin from being mirrored by a claim that
// is granted.
func (s *snapshot) cannotShare(origin, claim *corev1.PersistentVolumeClaim, access int) mirror.Reason {
	volume := s.volumes[origin.Spec.VolumeName]
	switch {
	case origin.DeletionTimestamp != nil:
		return mirror.OriginTerminating
	case origin.Status.Phase != corev1.ClaimBound || volume == nil:
		return mirror.OriginPending
	case s.sharesHandle(volume) && !writes(claim):
		return mirror.ReadOnlyUnsupported
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOnce):
		return mirror.AccessModeUnsupported
	case writes(claim) && access < 2:
		return mirror.GrantReadOnly
	case claim.Spec.Resources.Requests.Storage().Cmp(*volume.Spec.Capacity.Storage()) > 0:
		return mirror.TooLarge
	}
	return ""
}

func (s *snapshot) sharesHandle(volume *corev1.PersistentVolume) bool {
	return volume.Spec.CSI != nil && volume.Spec.CSI.Driver == driver
}

// isSecond reports whether another claim of the namespace has, or is to have,
// the one mirror of an origin whose handle is shared.
func (s *snapshot) isSecond(origin, claim *corev1.PersistentVolumeClaim) bool {
	if !s.sharesHandle(s.volumes[origin.Spec.VolumeName]) {
		return false
	}
	if len(s.served(client.ObjectKeyFromObject(origin), claim)) > 0 {
		return true
	}
	for _, other := range s.claims {
		key, reason := asked(other)
		isRival := other.Namespace == claim.Namespace && other.UID != claim.UID && reason == "" && key == client.ObjectKeyFromObject(origin) &&
			!slices.Contains(other.Spec.AccessModes, corev1.ReadWriteOnce) && (other.Spec.VolumeName == "" || other.Spec.VolumeName == mirror.VolumeName(other.UID))
		before := other.CreationTimestamp.Before(&claim.CreationTimestamp) ||
			other.CreationTimestamp.Equal(&claim.CreationTimestamp) && other.UID < claim.UID
		if isRival && before {
			return true
		}
	}
	return false
}

// served returns the other claims of a namespace that have a mirror of an origin.
func (s *snapshot) served(origin client.ObjectKey, claim *corev1.PersistentVolumeClaim) []types.UID {
	var served []types.UID
	for _, volume := range s.volumes {
		uid := types.UID(volume.Annotations[names.MirrorClaimUID()])
		other := s.claims[split(volume.Annotations[names.MirrorClaim()])]
		if other != nil && other.UID == uid && uid != claim.UID && other.Namespace == claim.Namespace &&
			volume.Annotations[names.OriginClaim()] == origin.String() {
			served = append(served, uid)
		}
	}
	return served
}

func split(text string) client.ObjectKey {
	namespace, name, _ := strings.Cut(text, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// expectBound says what must be of a claim that is bound to its mirror volume,
// by the origin that the volume's record names.
func (s *snapshot) expectBound(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) expectation {
	key := split(volume.Annotations[names.OriginClaim()])
	origin := s.claims[key]
	access, until := s.allowed(origin, claim.Namespace)
	switch {
	case access == 0:
		return expectation{bound: true, reason: mirror.NotShared}
	case origin.DeletionTimestamp != nil:
		return expectation{bound: true, reason: mirror.OriginTerminating}
	case writes(claim) && access < 2:
		return expectation{bound: true, reason: mirror.GrantReadOnly}
	}
	data := s.volumes[origin.Spec.VolumeName]
	switch {
	case origin.Status.Phase != corev1.ClaimBound || data == nil:
		return expectation{bound: true, reason: mirror.OriginPending}
	case reached(data) != reached(volume):
		return expectation{bound: true, reason: mirror.OriginReplaced}
	}
	return expectation{bound: true, until: until}
}

// reached returns which data a volume of the model reaches.
func reached(volume *corev1.PersistentVolume) string {
	switch {
	case volume.Spec.NFS != nil:
		return volume.Spec.NFS.Path
	case volume.Spec.CSI != nil && volume.Spec.CSI.Driver == driver:
		return volume.Spec.CSI.VolumeHandle
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.VolumeAttributes["share"]
	}
	return ""
}

// deletes returns whether the class of a claim says Delete, and after how long.
func (s *snapshot) deletes(claim *corev1.PersistentVolumeClaim) (bool, time.Duration) {
	class := s.classes[*claim.Spec.StorageClassName]
	if class == nil || class.Annotations[names.OnRevoke()] != "Delete" {
		return false, 0
	}
	after, err := time.ParseDuration(class.Annotations[names.RevokeAfter()])
	return err == nil, after
}
