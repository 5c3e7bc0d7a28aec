package mirror

//go:generate go run ../gen/reasons ../../docs/reasons.md

// Reason is why a claim is, or is not, mirrored. The list is closed: it feeds
// conditions, events, metrics and docs/reasons.md.
type Reason string

// Why a claim is mirrored, waits or is refused. What each means to whom stands
// in Reasons, in the order of the ladder.
const (
	NoOrigin                Reason = "NoOrigin"
	OriginMalformed         Reason = "OriginMalformed"
	OriginAmbiguous         Reason = "OriginAmbiguous"
	OriginKindUnsupported   Reason = "OriginKindUnsupported"
	SameNamespace           Reason = "SameNamespace"
	ClaimHasSelector        Reason = "ClaimHasSelector"
	ClaimHasDataSource      Reason = "ClaimHasDataSource"
	ClaimNamesVolume        Reason = "ClaimNamesVolume"
	ClaimHasAttributesClass Reason = "ClaimHasAttributesClass"

	ClassNotFound        Reason = "ClassNotFound"
	ClassParameters      Reason = "ClassParameters"
	ClassAllowsExpansion Reason = "ClassAllowsExpansion"

	NotShared Reason = "NotShared"

	OriginPending       Reason = "OriginPending"
	OriginTerminating   Reason = "OriginTerminating"
	OriginLost          Reason = "OriginLost"
	OriginBindingBroken Reason = "OriginBindingBroken"

	OriginIsMirror Reason = "OriginIsMirror"

	SourceUnsupported   Reason = "SourceUnsupported"
	DriverUnknown       Reason = "DriverUnknown"
	DriverRefused       Reason = "DriverRefused"
	ReadOnlyUnsupported Reason = "ReadOnlyUnsupported"

	AccessModeUnsupported Reason = "AccessModeUnsupported"
	ClassReadOnly         Reason = "ClassReadOnly"
	GrantReadOnly         Reason = "GrantReadOnly"
	OriginExclusive       Reason = "OriginExclusive"
	OriginReadOnly        Reason = "OriginReadOnly"
	VolumeModeUnsupported Reason = "VolumeModeUnsupported"
	TooLarge              Reason = "TooLarge"

	DuplicateMirror Reason = "DuplicateMirror"

	VolumeNameTaken Reason = "VolumeNameTaken"
	VolumeRejected  Reason = "VolumeRejected"
	MirrorOfAnother Reason = "MirrorOfAnother"

	OriginReplaced Reason = "OriginReplaced"
	RecordBroken   Reason = "RecordBroken"
	VolumeLost     Reason = "VolumeLost"

	Mirrored Reason = "Mirrored"
)

// EndsGrant reports whether a bound mirror that is told this reason has lost its
// grant. The other reasons say that something is not certain.
func EndsGrant(reason Reason) bool {
	switch reason {
	case NotShared, OriginTerminating, GrantReadOnly, OriginReplaced:
		return true
	default:
		return false
	}
}

// Side is who can mend what a reason names.
type Side string

// The sides.
const (
	AskingSide    Side = "asking side"
	Owner         Side = "owner"
	Administrator Side = "administrator"
	Nobody        Side = "nobody needs to"
)

// ReasonDoc is what a reason means: the source of docs/reasons.md.
type ReasonDoc struct {
	Reason  Reason
	Verdict Verdict
	// Rung is the rung of the ladder that gives the reason; 0 where it is not
	// the ladder that does.
	Rung    int
	Meaning string
	// Mends says who can mend it, Remedy how.
	Mends  Side
	Remedy string
	// Wakes is what makes the controller decide again.
	Wakes string
}

const (
	wakesClaim  = "a change of the claim"
	wakesClass  = "a change of the class"
	wakesOrigin = "a change of the origin claim or of its volume"
	newClaim    = "create the claim anew, "
)

// Reasons returns the closed list, in the order of the ladder.
func Reasons() []ReasonDoc {
	return append(append(askingReasons(), originReasons()...), volumeReasons()...)
}

func askingReasons() []ReasonDoc {
	return []ReasonDoc{
		{NoOrigin, Refuse, 1, "The claim names no origin. Where the cluster's gate CrossNamespaceVolumeDataSource is off, the API server drops a dataSourceRef silently.",
			AskingSide, "write the annotation `<name>/origin: <namespace>/<claim>`", wakesClaim},
		{OriginMalformed, Refuse, 1, "The annotation `<name>/origin` is not `<namespace>/<claim>`, or the dataSourceRef names no namespace or what cannot be a claim's name.",
			AskingSide, "mend the annotation; a dataSourceRef is immutable, so " + newClaim + "or with the annotation alone", wakesClaim},
		{OriginAmbiguous, Refuse, 1, "The dataSourceRef and the annotation `<name>/origin` name different origins.",
			AskingSide, "remove the annotation or make it equal", wakesClaim},
		{OriginKindUnsupported, Refuse, 1, "The dataSourceRef is not of kind PersistentVolumeClaim in the core API group.",
			AskingSide, newClaim + "naming a claim: nothing else can be mirrored", wakesClaim},
		{SameNamespace, Refuse, 1, "The origin is in the claim's own namespace, where Pods can use it directly.",
			AskingSide, "use the origin claim itself", wakesClaim},
		{ClaimHasSelector, Refuse, 1, "The claim has a selector, which asks the binder for some other volume.",
			AskingSide, newClaim + "without selector", wakesClaim},
		{ClaimHasDataSource, Refuse, 1, "The claim has a dataSource, which asks for a copy.",
			AskingSide, newClaim + "without dataSource", wakesClaim},
		{ClaimNamesVolume, Refuse, 1, "The claim has a volumeName of its own choice, so a mirror volume made for it could be bound by somebody else.",
			AskingSide, newClaim + "without volumeName", wakesClaim},
		{ClaimHasAttributesClass, Refuse, 1, "The claim has a volumeAttributesClassName. The binder would bind it to a volume of that class only, which a mirror never is; and the driver would change the origin.",
			AskingSide, newClaim + "without volumeAttributesClassName", wakesClaim},
		{ClassNotFound, Refuse, 2, "The claim asks for a mirror but its StorageClass is missing or belongs to another provisioner.",
			AskingSide, newClaim + "with a class of Mooring (usually `pvc-mirror`), or have the class created", "the class appearing"},
		{ClassParameters, Refuse, 2, "The StorageClass has a parameter that Mooring does not know, or a value of `access` other than ReadWrite and ReadOnly.",
			Administrator, "create the class anew; parameters are immutable", wakesClass},
		{ClassAllowsExpansion, Refuse, 2, "The StorageClass allows expansion. The driver's resizer acts on a mirror as on the origin, so growing the claim would grow the origin.",
			Administrator, "set `allowVolumeExpansion: false`", wakesClass},
		{NotShared, Refuse, 3, "The origin does not exist, or its owner has not shared it with this namespace, or the grant is broken or has expired. Which of these it is, the asking side is not told.",
			Owner, "grant access: `<name>/required-target-ns-labels` on the origin claim with a selector that the namespace's labels match", "a change of the origin claim or of the namespace's labels"},
	}
}

func originReasons() []ReasonDoc {
	return []ReasonDoc{
		{OriginPending, Wait, 4, "The origin claim is not bound yet.", Owner, "wait, or see why the origin is pending", wakesOrigin},
		{OriginTerminating, Refuse, 4, "The origin claim or its volume is being deleted.", Owner, "keep the origin", wakesOrigin},
		{OriginLost, Refuse, 4, "The origin claim has lost its volume.", Owner, "restore the origin volume", wakesOrigin},
		{OriginBindingBroken, Refuse, 4, "The origin claim and its volume do not name each other by UID, so what the claim reaches is not certain.",
			Owner, "restore the binding", wakesOrigin},
		{OriginIsMirror, Refuse, 5, "The origin is itself a mirror, of Mooring or of a provisioner that had its name before; its owner is somebody else, who has not been asked.", AskingSide, "name the mirror's own origin, whose owner can share it", wakesOrigin},
		{SourceUnsupported, Refuse, 6, "The origin volume is neither CSI nor in-tree NFS.", Owner, "move the data to a volume that many nodes can mount", wakesOrigin},
		{DriverUnknown, Refuse, 6, "The table does not know the origin's driver, and nothing shows that its volumes can be shared.", Administrator, "see docs/drivers.md, \"any other driver\": a CSIDriver object with attachRequired: false and ReadWriteMany, or a recipe", wakesOrigin + ", or of the CSIDriver object"},
		{DriverRefused, Refuse, 6, "The table knows the origin's driver, and this volume cannot be mirrored.", Owner, "see the message, and docs/drivers.md for what of the driver is mirrored", wakesOrigin},
		{ReadOnlyUnsupported, Refuse, 6, "Nothing would enforce a read-only mirror of this driver's volume.", AskingSide, newClaim + "with ReadWriteMany if the grant allows it", wakesOrigin},
		{AccessModeUnsupported, Refuse, 7, "A mirror is ReadWriteMany or ReadOnlyMany; ReadWriteOnce and ReadWriteOncePod promise what a mirror cannot keep.", AskingSide, newClaim + "with ReadWriteMany or ReadOnlyMany", wakesClaim},
		{ClassReadOnly, Refuse, 7, "The claim asks for ReadWriteMany and its class is `access: ReadOnly`.", AskingSide, newClaim + "with ReadOnlyMany or another class", wakesClass},
		{GrantReadOnly, Refuse, 7, "The claim asks for ReadWriteMany and the grant is read-only.", AskingSide, newClaim + "with ReadOnlyMany", wakesOrigin},
		{OriginExclusive, Refuse, 7, "The origin volume is ReadWriteOncePod: its owner asked that one Pod alone use it.", Owner, "use another access mode for data that is shared", wakesOrigin},
		{OriginReadOnly, Refuse, 7, "The claim asks for ReadWriteMany and the origin volume itself is only ReadOnlyMany.", AskingSide, newClaim + "with ReadOnlyMany", wakesOrigin},
		{VolumeModeUnsupported, Refuse, 7, "The claim or the origin volume is of volumeMode Block.", AskingSide, "only file systems can be mirrored", wakesOrigin},
		{TooLarge, Refuse, 7, "The claim requests more than the origin's capacity; such a claim would never bind.", AskingSide, newClaim + "with a smaller request (1 byte is enough)", wakesOrigin},
		{DuplicateMirror, Refuse, 8, "Another claim of the namespace mirrors the same origin, or asked for it before, and this driver's mirrors share the origin's handle, so that a Pod with both would get one mount twice.",
			AskingSide, "use that claim", "that claim going away"},
	}
}

// volumeReasons are given by what happens to the mirror volume, not by the
// ladder.
func volumeReasons() []ReasonDoc {
	return []ReasonDoc{
		{VolumeNameTaken, Refuse, 0, "A volume of the name that belongs to this claim exists and is not its mirror.", Administrator, "delete that volume object, after a look at what it is", "that volume going away"},
		{VolumeRejected, Refuse, 0, "The API server does not let the mirror volume be made: an admission policy, or a missing right of Mooring's.", Administrator, "see the message for who rejects it", "half a minute, or " + wakesClaim},
		{MirrorOfAnother, Refuse, 0, "The claim was bound to a mirror volume that was made for another claim, after somebody had changed that volume's claimRef. The volume is taken from it, and the claim ends Lost or Pending.", AskingSide, "delete the claim", wakesClaim},
		{OriginReplaced, Refuse, 0, "The claim is bound, and its origin was replaced by another claim of the same name whose data are other ones. The mirror still reaches the former data.",
			AskingSide, newClaim + "and it mirrors the new origin", wakesOrigin},
		{RecordBroken, Refuse, 0, "The claim is bound, and its volume's record was edited so that it is not certain what it mirrors. Nothing is taken from the claim.",
			Administrator, "put the volume's annotations back, or delete the claim and create it anew", "a change of the volume"},
		{VolumeLost, Refuse, 0, "The claim was bound, and somebody deleted its volume's object. The data are untouched where they are.",
			AskingSide, "delete the claim and create it anew", wakesClaim},
		{Mirrored, Allow, 0, "The claim is mirrored. Written only where something else was said before, or where the grant has an end, which it names.", Nobody, "", ""},
	}
}
