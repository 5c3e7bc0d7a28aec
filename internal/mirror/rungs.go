package mirror

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/recipe"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Rung 1.
func claimIsFit(c *climber) *refusal {
	if c.Claim == nil || c.Claim.UID == "" {
		// Not read from a cluster. Without a UID nothing could be made that is
		// this claim's alone.
		return refused(NoOrigin, "there is no claim to decide about")
	}
	spec := c.Claim.Spec
	found, said := origin(c.Names, c.Claim)
	switch {
	case spec.DataSource != nil:
		return refused(ClaimHasDataSource, "spec.dataSource asks for a copy: a mirror is named by the annotation %s or a dataSourceRef with namespace", c.Names.Origin())
	case said != nil:
		return said
	case spec.Selector != nil:
		return refused(ClaimHasSelector, "spec.selector asks the binder for another volume: create the claim without it")
	case spec.VolumeName != "" && spec.VolumeName != VolumeName(c.Claim.UID) && !(c.FormerName && IsRestored(c.Claim)):
		return refused(ClaimNamesVolume, "spec.volumeName asks for volume %s: create the claim without it", quote(spec.VolumeName))
	case deref(spec.VolumeAttributesClassName, "") != "":
		return refused(ClaimHasAttributesClass, "spec.volumeAttributesClassName is %s: a mirror has none, and the binder would wait for it without end: create the claim without it",
			quote(*spec.VolumeAttributesClassName))
	}
	c.origin = found
	return nil
}

// Rung 2.
func classIsFit(c *climber) *refusal {
	asked := deref(c.Claim.Spec.StorageClassName, "")
	if c.Class == nil || c.Class.Name != asked || c.Class.Provisioner != c.Names.Provisioner() {
		return refused(ClassNotFound, "spec.storageClassName %s is no StorageClass with provisioner %s", quote(asked), c.Names.Provisioner())
	}
	for _, key := range slices.Sorted(maps.Keys(c.Class.Parameters)) {
		value := c.Class.Parameters[key]
		known := key == mooringapi.ParameterAccess && (value == mooringapi.AccessReadWrite || value == mooringapi.AccessReadOnly)
		if !known {
			return refused(ClassParameters, "StorageClass %s has the parameter %s: %s; expected none, or %s: %s or %s",
				c.Class.Name, quote(key), quote(value), mooringapi.ParameterAccess, mooringapi.AccessReadWrite, mooringapi.AccessReadOnly)
		}
	}
	if deref(c.Class.AllowVolumeExpansion, false) {
		return refused(ClassAllowsExpansion, "StorageClass %s allows expansion, by which a mirror could grow its origin: set allowVolumeExpansion: false", c.Class.Name)
	}
	return nil
}

// Rung 3. One text for an origin that does not exist, is not shared with this
// namespace, or has a broken grant: nobody learns which.
func ownerGrants(c *climber) *refusal {
	named := c.Origin != nil && c.Origin.Namespace == c.origin.Namespace && c.Origin.Name == c.origin.Name
	if named && c.NamespaceLabels != nil {
		c.grant = grant.Evaluate(c.Names, c.Origin.Annotations, c.NamespaceLabels, c.Now)
	}
	if c.grant.Access == grant.None {
		return refused(NotShared, "%s does not exist or is not shared with namespace %s: ask its owner to share it", c.origin, c.Claim.Namespace)
	}
	return nil
}

// Rung 4.
func originIsBound(c *climber) *refusal {
	switch phase := c.Origin.Status.Phase; {
	case c.Origin.DeletionTimestamp != nil:
		return refused(OriginTerminating, "origin %s is being deleted", c.origin)
	case phase == corev1.ClaimLost:
		return refused(OriginLost, "origin %s has lost its volume", c.origin)
	case phase != corev1.ClaimBound:
		return waiting(OriginPending, "origin %s is not bound yet", c.origin)
	case c.OriginVolume == nil:
		return waiting(OriginPending, "the volume of origin %s is not seen yet", c.origin)
	case !boundByUID(c.Origin, c.OriginVolume):
		return refused(OriginBindingBroken, "origin %s and its volume do not name each other by UID", c.origin)
	case c.OriginVolume.DeletionTimestamp != nil:
		return refused(OriginTerminating, "the volume of origin %s is being deleted", c.origin)
	}
	return nil
}

func boundByUID(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	ref := volume.Spec.ClaimRef
	return claim.Spec.VolumeName == volume.Name &&
		ref != nil && claim.UID != "" && ref.UID == claim.UID &&
		ref.Namespace == claim.Namespace && ref.Name == claim.Name
}

// Rung 5. The volume's record says so, which its owner cannot edit, not the
// claim. A volume made under the provisioner name without a record is a mirror
// too: that of a provisioner which had the name before Mooring.
func originIsNoMirror(c *climber) *refusal {
	annotations := c.OriginVolume.Annotations
	if mooringapi.IsMirrorVolume(annotations) || annotations[mooringapi.ProvisionedBy] == c.Names.Provisioner() {
		return refused(OriginIsMirror, "origin %s is itself a mirror: name the claim that it mirrors", c.origin)
	}
	return nil
}

// Rung 6.
func driverHasRecipe(c *climber) *refusal {
	c.mirror = recipe.Make(recipe.Request{
		Origin:        c.OriginVolume,
		ClaimUID:      MadeFor(NameOf(c.Claim)),
		ReadOnly:      c.access() == grant.ReadOnly,
		Driver:        c.Driver,
		RefuseUnknown: c.RefuseUnknownDrivers,
	})
	switch c.mirror.Outcome {
	case recipe.Made:
		return nil
	case recipe.SourceUnsupported:
		return refused(SourceUnsupported, "%s", c.mirror.Detail)
	case recipe.DriverUnknown:
		return refused(DriverUnknown, "%s", c.mirror.Detail)
	case recipe.ReadOnlyUnsupported:
		return refused(ReadOnlyUnsupported, "%s", c.mirror.Detail)
	default:
		return refused(DriverRefused, "%s", c.mirror.Detail)
	}
}

// access is what the claim asks for: to read only, if it asks for ReadOnlyMany
// and nothing else; else to write, also where the next rung refuses the mode.
func (c *climber) access() grant.Access { return Access(c.Claim) }

// Access returns what a claim asks for. Its modes are immutable, so that this
// holds for as long as it lives.
func Access(claim *corev1.PersistentVolumeClaim) grant.Access {
	modes := claim.Spec.AccessModes
	for _, mode := range modes {
		if mode != corev1.ReadOnlyMany {
			return grant.ReadWrite
		}
	}
	if len(modes) == 0 {
		return grant.ReadWrite
	}
	return grant.ReadOnly
}

// Rung 7.
func claimFitsOrigin(c *climber) *refusal {
	for _, fits := range []func(*climber) *refusal{modesAreShareable, accessIsGranted, isFilesystem, isNotTooLarge} {
		if said := fits(c); said != nil {
			return said
		}
	}
	return nil
}

func modesAreShareable(c *climber) *refusal {
	modes := c.Claim.Spec.AccessModes
	for _, mode := range modes {
		if mode != corev1.ReadWriteMany && mode != corev1.ReadOnlyMany {
			return refused(AccessModeUnsupported, "spec.accessModes has %s: expected ReadWriteMany or ReadOnlyMany", mode)
		}
	}
	if len(modes) == 0 {
		return refused(AccessModeUnsupported, "spec.accessModes is empty: expected ReadWriteMany or ReadOnlyMany")
	}
	return nil
}

func accessIsGranted(c *climber) *refusal {
	offered := c.OriginVolume.Spec.AccessModes
	if slices.Contains(offered, corev1.ReadWriteOncePod) {
		return refused(OriginExclusive, "the volume of origin %s is ReadWriteOncePod: one Pod alone may use it", c.origin)
	}
	if c.access() == grant.ReadOnly {
		return nil
	}
	if c.Class.Parameters[mooringapi.ParameterAccess] == mooringapi.AccessReadOnly {
		return refused(ClassReadOnly, "spec.accessModes has ReadWriteMany and StorageClass %s is for read-only mirrors: ask for ReadOnlyMany", c.Class.Name)
	}
	if c.grant.Access != grant.ReadWrite {
		return refused(GrantReadOnly, "spec.accessModes has ReadWriteMany and origin %s is shared read-only: ask for ReadOnlyMany", c.origin)
	}
	if !slices.ContainsFunc(offered, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadOnlyMany }) {
		return refused(OriginReadOnly, "spec.accessModes has ReadWriteMany and the volume of origin %s is ReadOnlyMany: ask for ReadOnlyMany", c.origin)
	}
	return nil
}

func isFilesystem(c *climber) *refusal {
	asked := deref(c.Claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	offered := deref(c.OriginVolume.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if asked != corev1.PersistentVolumeFilesystem || offered != corev1.PersistentVolumeFilesystem {
		return refused(VolumeModeUnsupported, "spec.volumeMode is %s and that of origin %s is %s: only file systems can be mirrored", asked, c.origin, offered)
	}
	return nil
}

func isNotTooLarge(c *climber) *refusal {
	asked := c.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	capacity := c.OriginVolume.Spec.Capacity[corev1.ResourceStorage]
	if asked.Cmp(capacity) > 0 {
		return refused(TooLarge, "spec.resources.requests.storage is %s and origin %s has %s: ask for at most that (1 byte is enough)",
			asked.String(), c.origin, capacity.String())
	}
	return nil
}

// Rung 8.
func claimIsFirst(c *climber) *refusal {
	if !c.mirror.SharedHandle {
		return nil
	}
	self := Rival{UID: c.Claim.UID, Created: c.Claim.CreationTimestamp.Time}
	for _, rival := range c.Rivals {
		if rival.UID == self.UID {
			self.Served = rival.Served
		}
	}
	first := self
	for _, rival := range c.Rivals {
		if rival.UID != self.UID && rival.comesBefore(first) {
			first = rival
		}
	}
	if first.UID == c.Claim.UID {
		return nil
	}
	how := "asked for it before"
	if first.Served {
		how = "mirrors it"
	}
	return refused(DuplicateMirror, "claim %s of this namespace %s, and this driver's mirrors of %s cannot be told apart in one Pod: use that claim",
		first.Name, how, c.origin)
}

// deref returns what a pointer of the API points to, or the API's default.
func deref[T any](p *T, unset T) T {
	if p == nil {
		return unset
	}
	return *p
}
