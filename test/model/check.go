package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// checker collects what is not as it must be.
type checker struct {
	*snapshot
	m        *Model
	engaged  bool // the brake is
	problems []problem
}

// problems returns everything that is not, or not yet, as it must be.
func (m *Model) problems() []problem {
	c := &checker{snapshot: m.snapshot(), m: m}
	_, c.engaged = m.brake()
	for _, claim := range c.claims {
		if slices.Contains(m.tenants, claim.Namespace) {
			c.claim(claim)
		}
	}
	for _, volume := range c.volumes {
		c.volume(volume)
	}
	for i := range m.origins {
		c.origin(m.originKey(i))
	}
	return c.problems
}

func (m *Model) snapshot() *snapshot {
	s := &snapshot{
		claims: map[client.ObjectKey]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{},
		namespaces: map[string]map[string]string{}, classes: map[string]*storagev1.StorageClass{},
	}
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	var namespaces corev1.NamespaceList
	var classes storagev1.StorageClassList
	for _, list := range []client.ObjectList{&classes, &namespaces, &claims, &volumes} {
		m.must(m.List(context.Background(), list), "list %T", list)
	}
	for i := range claims.Items {
		s.claims[keyOf(&claims.Items[i])] = &claims.Items[i]
	}
	for i := range volumes.Items {
		s.volumes[volumes.Items[i].Name] = &volumes.Items[i]
	}
	for _, namespace := range namespaces.Items {
		s.namespaces[namespace.Name] = namespace.Labels
	}
	for i := range classes.Items {
		s.classes[classes.Items[i].Name] = &classes.Items[i]
	}
	s.now = time.Now()
	return s
}

func (c *checker) say(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if volume != nil {
		text = "volume " + volume.Name + ": " + text
	}
	if claim != nil {
		text = fmt.Sprintf("claim %s: %s", keyOf(claim), text)
	}
	c.problems = append(c.problems, problem{text, claim, volume})
}

// claim checks one claim of a tenant.
func (c *checker) claim(claim *corev1.PersistentVolumeClaim) {
	volume := c.volumes[claim.Spec.VolumeName]
	isOver := claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost
	switch {
	case claim.DeletionTimestamp != nil:
		c.say(claim, volume, "being deleted")
	case isOver && volume == nil && !mirror.IsRestored(claim):
		if !c.m.deletedByHand(claim.Spec.VolumeName) {
			c.say(claim, nil, "nobody deleted its volume, and it is gone")
		}
		c.says(claim, nil, mirror.VolumeLost)
	case isOver && volume != nil:
		c.bound(claim, volume)
	default:
		c.unbound(claim)
	}
}

func (c *checker) unbound(claim *corev1.PersistentVolumeClaim) {
	expected := c.expectUnbound(claim)
	volume := c.volumes[mirror.NameOf(claim)]
	if expected.bound {
		c.say(claim, volume, "must be bound")
		return
	}
	if volume != nil && volume.Annotations[names.MirrorClaimUID()] == string(claim.UID) {
		c.say(claim, volume, "must not be bound (%s), and has a volume", expected.reason)
	}
	c.says(claim, volume, expected.reason)
}

// says checks the condition of a claim: False for this reason, or with "" not
// False at all.
func (c *checker) says(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, reason mirror.Reason) {
	condition := conditionOf(claim)
	switch {
	case reason == "" && condition.Status == corev1.ConditionFalse:
		c.say(claim, volume, "must be mirrored, and its condition is False %s: %s", condition.Reason, condition.Message)
	case reason != "" && (condition.Status != corev1.ConditionFalse || condition.Reason != string(reason)):
		c.say(claim, volume, "its condition must be False %s and is %q %s: %s", reason, condition.Status, condition.Reason, condition.Message)
	}
}

// bound checks a claim that is bound, or was, and whose volume is there.
func (c *checker) bound(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	expected := c.expectBound(claim, volume)
	uid := volume.Annotations[names.MirrorClaimUID()]
	switch {
	case uid == "":
		c.stripped(claim, volume)
		return
	case c.isBroken(claim, volume):
		c.says(claim, volume, mirror.RecordBroken)
		return
	case uid != string(claim.UID) && expected.reason == "":
		c.say(claim, volume, "restored, granted, and not recorded yet")
		return
	case volume.DeletionTimestamp != nil && expected.reason == "":
		c.says(claim, volume, mirror.VolumeLost)
		return
	case claim.Status.Phase == corev1.ClaimLost && uid == string(claim.UID):
		c.say(claim, volume, "Lost although its volume is there")
	}
	c.says(claim, volume, expected.reason)
	revokedAt := volume.Annotations[names.RevokedAt()]
	if expected.reason == "" {
		if revokedAt != "" {
			c.say(claim, volume, "must be mirrored, and is marked as revoked at %s", revokedAt)
		}
		if condition := conditionOf(claim); !expected.until.IsZero() && !strings.Contains(condition.Message, expected.until.UTC().Format(time.RFC3339)) {
			c.say(claim, volume, "its condition does not say that access ends at %v: %q %s", expected.until, condition.Status, condition.Message)
		}
		return
	}
	c.revoked(claim, volume, expected.reason)
}

// revoked checks a claim whose grant has ended, or of which that is not certain.
func (c *checker) revoked(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, reason mirror.Reason) {
	if reason == mirror.OriginPending {
		c.say(claim, volume, "its origin is pending")
		return
	}
	revokedAt, err := time.Parse(time.RFC3339, volume.Annotations[names.RevokedAt()])
	if err != nil {
		c.say(claim, volume, "revoked (%s), and since when is not recorded: %v", reason, err)
		return
	}
	deletes, after := c.deletes(claim)
	isAdopted := volume.Annotations[names.AdoptedAt()] != ""
	if deletes && !isAdopted && !c.engaged && c.now.After(revokedAt.Add(after)) {
		c.say(claim, volume, "revoked (%s) since %v, and its class says Delete after %v", reason, revokedAt, after)
	}
}

// stripped checks a claim whose volume has lost its record: it gets it back
// where what it mirrors can be proven.
func (c *checker) stripped(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	key, reason := asked(claim)
	origin := c.claims[key]
	if reason != "" || origin == nil || volume.Name != mirror.VolumeName(claim.UID) || volume.DeletionTimestamp != nil {
		return
	}
	data := c.volumes[origin.Spec.VolumeName]
	if data != nil && origin.Status.Phase == corev1.ClaimBound && reached(data) == reached(volume) {
		c.say(claim, volume, "has no record, although what it mirrors can be proven")
	}
}

// isBroken reports whether a record contradicts itself, and nothing says which
// part of it is true.
func (c *checker) isBroken(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	label, recorded := volume.Labels[names.OriginLabel()], split(volume.Annotations[names.OriginClaim()])
	if label == mirror.OriginHash(recorded) {
		return false
	}
	if named, reason := asked(claim); reason == "" && label == mirror.OriginHash(named) {
		return false
	}
	return c.model(volume) == nil
}

// model returns the origin volume of a mirror volume, if it is certainly the
// one of the record.
func (c *checker) model(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	origin := c.volumes[volume.Annotations[names.OriginVolume()]]
	if origin == nil || string(origin.UID) != volume.Annotations[names.OriginVolumeUID()] || origin.Spec.ClaimRef == nil ||
		string(origin.Spec.ClaimRef.UID) != volume.Annotations[names.OriginClaimUID()] ||
		origin.Spec.ClaimRef.Namespace+"/"+origin.Spec.ClaimRef.Name != volume.Annotations[names.OriginClaim()] {
		return nil
	}
	return origin
}
