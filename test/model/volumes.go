package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// volume checks one volume, if it is a mirror.
func (c *checker) volume(volume *corev1.PersistentVolume) {
	annotations := volume.Annotations
	isOurs := annotations[names.MirrorClaimUID()] != "" || annotations["pv.kubernetes.io/provisioned-by"] == names.Provisioner() ||
		volume.Labels[names.OriginLabel()] != ""
	if !isOurs {
		return
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		c.say(nil, volume, "its policy is %s", volume.Spec.PersistentVolumeReclaimPolicy)
	}
	isStripped := annotations[names.MirrorClaimUID()] == "" // and of one without claimRef and claim too, nobody can say whose it is
	if volume.Status.Phase == corev1.VolumeAvailable && !(isStripped && volume.Spec.ClaimRef == nil && !c.hasBearer(volume)) {
		c.say(nil, volume, "it is Available")
	}
	if annotations[names.MirrorClaimUID()] != "" {
		c.mirrorVolume(volume)
	}
}

// hasBearer reports whether there is a claim whose UID is the volume's name.
func (c *checker) hasBearer(volume *corev1.PersistentVolume) bool {
	for _, claim := range c.claims {
		if mirror.Owns(claim, volume) {
			return true
		}
	}
	return false
}

// mirrorVolume checks a volume with a record.
func (c *checker) mirrorVolume(volume *corev1.PersistentVolume) {
	annotations, ref := volume.Annotations, volume.Spec.ClaimRef
	key := split(annotations[names.MirrorClaim()])
	claim := c.claims[key]
	if claim == nil {
		c.say(nil, volume, "its claim %s is gone", key)
		return
	}
	isOwn := string(claim.UID) == annotations[names.MirrorClaimUID()]
	if !isOwn && (claim.Spec.VolumeName != volume.Name || !slices.Contains(named(claim), annotations[names.OriginClaim()])) {
		c.say(claim, volume, "its claim was replaced")
		return
	}
	if volume.DeletionTimestamp != nil && !c.m.deletedByHand(volume.Name) {
		c.say(claim, volume, "being deleted")
	}
	if ref == nil || isOwn && string(ref.UID) != annotations[names.MirrorClaimUID()] || ref.Name != key.Name || ref.Namespace != key.Namespace {
		c.say(claim, volume, "its claimRef is %+v", ref)
	}
	if annotations["pv.kubernetes.io/provisioned-by"] != names.Provisioner() {
		c.say(claim, volume, "it is provisioned by %q", annotations["pv.kubernetes.io/provisioned-by"])
	}
	if isOwn && volume.Status.Phase != corev1.VolumeBound {
		c.say(claim, volume, "it is %s", volume.Status.Phase)
	}
	if isOwn && volume.DeletionTimestamp == nil {
		c.isAsMade(claim, volume)
	}
}

// named returns the origins that a claim names in either form, also where they
// contradict each other.
func named(claim *corev1.PersistentVolumeClaim) []string {
	origins := []string{claim.Annotations[names.Origin()]}
	if ref := claim.Spec.DataSourceRef; ref != nil {
		origins = append(origins, *ref.Namespace+"/"+ref.Name)
	}
	return origins
}

// isAsMade checks what of a volume somebody may have edited.
func (c *checker) isAsMade(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	if volume.Spec.Capacity.Storage().Cmp(*claim.Status.Capacity.Storage()) > 0 {
		c.say(claim, volume, "its capacity %v is above the claim's %v", volume.Spec.Capacity.Storage(), claim.Status.Capacity.Storage())
	}
	if volume.Annotations[names.AdoptedAt()] != "" {
		return
	}
	if !strings.HasPrefix(volume.Spec.StorageClassName, "mirror-") {
		c.say(claim, volume, "its class is %s", volume.Spec.StorageClassName)
	}
	origin := c.model(volume)
	if origin == nil {
		return
	}
	follows := !c.sharesHandle(origin) // a node service that is not known could take it for a wish to grow
	if size := origin.Spec.Capacity.Storage(); follows && size.Cmp(*volume.Spec.Capacity.Storage()) != 0 || size.Cmp(*claim.Status.Capacity.Storage()) != 0 {
		c.say(claim, volume, "the origin has %v, the volume %v, the claim shows %v", size, volume.Spec.Capacity.Storage(), claim.Status.Capacity.Storage())
	}
	if slices.Contains(volume.Spec.MountOptions, "ro") == writes(claim) || slices.Contains(volume.Spec.MountOptions, "vers=3") {
		c.say(claim, volume, "its mount options are %v", volume.Spec.MountOptions)
	}
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, mode) || slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteOnce) {
			c.say(claim, volume, "its modes are %v", volume.Spec.AccessModes)
		}
	}
	if key := split(volume.Annotations[names.OriginClaim()]); volume.Labels[names.OriginLabel()] != mirror.OriginHash(key) {
		c.say(claim, volume, "its label is %q, not that of %s", volume.Labels[names.OriginLabel()], key)
	}
}

// origin checks one origin, there or not.
func (c *checker) origin(key client.ObjectKey) {
	origin := c.claims[key]
	if origin == nil {
		return // that it may be gone is watched
	}
	var own, possible []string
	for _, volume := range c.volumes {
		isRecorded := volume.Annotations[names.OriginClaim()] == key.String()
		if isRecorded || volume.Labels[names.OriginLabel()] == mirror.OriginHash(key) {
			possible = append(possible, volume.Name)
		}
		if isRecorded && volume.Annotations[names.OriginClaimUID()] == string(origin.UID) {
			own = append(own, volume.Name)
		}
	}
	held := slices.Contains(origin.Finalizers, names.Finalizer())
	switch {
	case held && len(possible) == 0 && !c.isDoubted(key):
		c.say(origin, nil, "it has the finalizer and no mirror")
	case held && origin.DeletionTimestamp != nil && origin.Annotations[names.AllowDeletion()] == "true":
		c.say(origin, nil, "its owner lets it go, and it has the finalizer")
	case !held && len(own) > 0 && origin.DeletionTimestamp == nil:
		c.say(origin, nil, "it has mirrors (%v) and no finalizer", own)
	case origin.DeletionTimestamp != nil && slices.Contains(origin.Finalizers, foreign):
		if err := c.m.freeForeign(origin); err != nil && !isPassing(err) {
			c.m.Fatalf("remove the finalizer of others: %v", err)
		}
		c.say(origin, nil, "it has the finalizer of others")
	case origin.DeletionTimestamp != nil && !held:
		c.say(origin, nil, "being deleted: %v", origin.Finalizers)
	case origin.DeletionTimestamp == nil && origin.Status.Phase != corev1.ClaimBound:
		c.say(origin, nil, "it is %s", origin.Status.Phase)
	}
}

// isDoubted reports whether a claim that names an origin is bound to a volume of
// Mooring's which has lost its record and its label: it may be that origin's.
func (c *checker) isDoubted(origin client.ObjectKey) bool {
	for _, claim := range c.claims {
		volume := c.volumes[claim.Spec.VolumeName]
		if volume != nil && slices.Contains(named(claim), origin.String()) && mirror.IsFormer(names, volume) {
			return true
		}
	}
	return false
}

func (m *Model) deletedByHand(volume string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.volumes[volume]
}

// Summary prints what was done and what it cost, and checks that neither events
// nor writes have piled up.
func (m *Model) Summary() {
	m.Helper()
	slices.Sort(m.rests)
	text := ""
	for _, kind := range kinds {
		text += fmt.Sprintf(", %d %s (%v)", m.kinds[kind.name], kind.name, m.took[kind.name].Round(time.Second/10))
	}
	m.Logf("seed %d: %d operations (%s) in %d bursts; to rest: median %v, worst %v", m.options.Seed, m.applied, text[2:],
		len(m.rests), m.rests[len(m.rests)/2], m.rests[len(m.rests)-1])
	m.Logf("seen: %s", m.seen.summary())
	m.seen.countDeletions()
	m.countEvents()
	m.countWrites()
}
