package controller

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// The reasons of events that are not those of decisions.
const (
	eventGrantBroken     = "GrantBroken"
	eventAccessEnded     = "AccessEnded"
	eventAccessRegained  = "AccessRegained"
	eventDeletionHeld    = "DeletionHeld"
	eventDeletionAllowed = "DeletionAllowed"
	eventClaimDeleted    = "ClaimDeleted"
	eventRerecorded      = "Rerecorded"
	eventReferenceDrift  = "ReferenceDrift"
	eventRepaired        = "DriftRepaired"
	eventAffinityDiffers = "AffinityDiffers"
	eventAdopted         = "Adopted"
	eventNotAdopted      = "NotAdopted"
	eventBrakeEngaged    = "DeletionsStopped"
	eventBrakeLifted     = "DeletionsResumed"
)

// note says something about an object. Events with equal regarding and related
// objects and reasons are counted up by the API's client instead of being
// written again.
func (t *teller) note(s subject, kind, reason, format string, args ...any) {
	text := cut(fmt.Sprintf(format, args...), longestNote)
	t.recorder.Eventf(t.refrains.at(s.about, reason, text, time.Now()), s.related, kind, reason, s.action, "%s", text)
}

// subject is what an event is about, and in the course of what it happened.
type subject struct {
	about, related runtime.Object
	action         string
}

// brokenGrant tells an origin's owner what is wrong with the grant.
func (t *teller) brokenGrant(origin *corev1.PersistentVolumeClaim, problem string) {
	t.note(subject{origin, nil, "Share"}, corev1.EventTypeWarning, eventGrantBroken, "%s", problem)
}

// accessEnded tells an origin's owner which namespaces have lost access.
func (t *teller) accessEnded(origin *corev1.PersistentVolumeClaim, namespaces []string, why mirror.Reason) {
	t.note(subject{origin, namespaceRef(namespaces), "Share"}, corev1.EventTypeWarning, eventAccessEnded,
		"%s lost access: %s (%s)", count(namespaces), someNames(namespaces), whyEnded(why))
}

// accessRegained tells an origin's owner which namespaces have access again.
func (t *teller) accessRegained(origin *corev1.PersistentVolumeClaim, namespaces []string) {
	t.note(subject{origin, namespaceRef(namespaces), "Share"}, corev1.EventTypeNormal, eventAccessRegained,
		"%s again access: %s", have(namespaces), someNames(namespaces))
}

// deletionHeld tells why an origin that is being deleted is still there. Where
// its namespace is being deleted too, nothing can be written there any more, and
// the namespace is told.
func (t *teller) deletionHeld(origin *corev1.PersistentVolumeClaim, namespace *metav1.PartialObjectMetadata, users []string) {
	// What to do stands before the names, which may be long.
	text := fmt.Sprintf("claim %s is kept while it is mirrored: %s it. Either their mirror claims go, or its owner writes the annotation %s: \"true\". They are in %s",
		origin.Name, using(users), t.names.AllowDeletion(), someNames(users))
	t.note(subject{origin, nil, "Share"}, corev1.EventTypeWarning, eventDeletionHeld, "%s", text)
	if namespace != nil && namespace.DeletionTimestamp != nil {
		t.note(subject{namespace, nil, "Share"}, corev1.EventTypeWarning, eventDeletionHeld, "%s", text)
	}
}

// deletionAllowed records that an origin went although it had mirrors.
func (t *teller) deletionAllowed(origin *corev1.PersistentVolumeClaim, users []string) {
	t.note(subject{origin, nil, "Share"}, corev1.EventTypeWarning, eventDeletionAllowed,
		"let go while it is mirrored, since the annotation %s says so: %s it: %s", t.names.AllowDeletion(), using(users), someNames(users))
}

// ended tells the owner of a mirror claim that it is deleted.
func (t *teller) ended(claim *corev1.PersistentVolumeClaim, review mirror.Review, record mirror.Record, policy mirror.Policy) {
	t.note(subject{claim, nil, "Revoke"}, corev1.EventTypeWarning, eventClaimDeleted,
		"%s; revoked since %s and its class deletes claims %s after that: the claim is deleted, running Pods keep it until they end, and the data stay",
		review.Message, record.RevokedAt.UTC().Format("2006-01-02T15:04:05Z"), policy.After)
}

// rerecorded tells that a restored claim or origin was recognized.
func (t *teller) rerecorded(claim *corev1.PersistentVolumeClaim, origin types.NamespacedName) {
	t.note(subject{claim, nil, "Mirror"}, corev1.EventTypeNormal, eventRerecorded,
		"this claim or its origin %s came back under another UID, with the same data and a grant: recorded", origin)
}

// referenceDrifted tells that a claim names another origin than it mirrors.
func (t *teller) referenceDrifted(claim *corev1.PersistentVolumeClaim, recorded types.NamespacedName, named string) {
	t.note(subject{claim, nil, "Mirror"}, corev1.EventTypeWarning, eventReferenceDrift,
		"this claim names %s and mirrors %s, which it was bound to: to mirror another origin, create a new claim", named, recorded)
}

// repaired tells administrators that a mirror volume was edited.
func (t *teller) repaired(volume *corev1.PersistentVolume, fields string) {
	t.note(subject{volume, nil, "Mirror"}, corev1.EventTypeWarning, eventRepaired, "somebody changed this mirror volume; put back: %s", fields)
}

// affinityDiffers tells administrators that a mirror volume cannot follow its
// origin to other nodes.
func (t *teller) affinityDiffers(volume, origin *corev1.PersistentVolume) {
	t.note(subject{volume, origin, "Mirror"}, corev1.EventTypeWarning, eventAffinityDiffers,
		"the node affinity of origin volume %s has changed, and this cluster does not let a volume's be changed: "+
			"delete the mirror claim and create it anew", origin.Name)
}

// adopted tells a claim's owner that Mooring looks after its mirror now.
func (t *teller) adopted(claim *corev1.PersistentVolumeClaim, origin types.NamespacedName) {
	t.note(subject{claim, nil, "Adopt"}, corev1.EventTypeNormal, eventAdopted, "its volume, which another provisioner made, mirrors %s: recorded, and kept whatever happens to it", origin)
}

// recordMissing tells administrators that a mirror volume's record is missing,
// and what is missing to write it again.
func (t *teller) recordMissing(volume *corev1.PersistentVolume, missing string) {
	t.note(subject{volume, nil, "Mirror"}, corev1.EventTypeWarning, string(mirror.RecordBroken), "somebody removed this mirror volume's record, and what it mirrors cannot be proven: %s. Nothing is done to it", missing)
}

// notAdopted tells administrators that it is not certain what a volume mirrors.
func (t *teller) notAdopted(volume *corev1.PersistentVolume, missing string) {
	t.note(subject{volume, nil, "Adopt"}, corev1.EventTypeWarning, eventNotAdopted, "made by another provisioner of this name, and what it mirrors cannot be proven: %s. Nothing is done to it", missing)
}

// brakeEngaged tells administrators that nothing is deleted any more.
func (t *teller) brakeEngaged(record *corev1.ConfigMap, lost, limit int) {
	t.note(subject{record, nil, "Revoke"}, corev1.EventTypeWarning, eventBrakeEngaged,
		"%d mirrors lost their grant within 10 minutes, more than %d: no claim is deleted until an administrator has looked and sets data.state of this ConfigMap to lifted", lost, limit)
}

// brakeLifted confirms it.
func (t *teller) brakeLifted(record *corev1.ConfigMap) {
	t.note(subject{record, nil, "Revoke"}, corev1.EventTypeNormal, eventBrakeLifted, "lifted by an administrator: deletions go on")
}

// namespaceRef returns the first of some namespaces as an event's related
// object, so that events about others are not taken for the same one.
func namespaceRef(namespaces []string) runtime.Object {
	namespace := newNamespace()
	namespace.Name = namespaces[0]
	return namespace
}

func whyEnded(why mirror.Reason) string {
	switch why {
	case mirror.GrantReadOnly:
		return "the grant is read-only now, and their mirrors are read-write"
	case mirror.OriginReplaced:
		return "this claim has other data than the one that they mirror"
	case mirror.OriginTerminating:
		return "this claim is being deleted"
	default:
		return "the grant no longer matches them, or has ended"
	}
}

func count(namespaces []string) string {
	if len(namespaces) == 1 {
		return "1 namespace"
	}
	return fmt.Sprintf("%d namespaces", len(namespaces))
}

func have(namespaces []string) string { return count(namespaces) + verb(namespaces, " has", " have") }

func using(namespaces []string) string {
	return count(namespaces) + verb(namespaces, " mirrors", " mirror")
}

func verb(namespaces []string, one, many string) string {
	if len(namespaces) == 1 {
		return one
	}
	return many
}
