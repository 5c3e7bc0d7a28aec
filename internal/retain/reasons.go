package retain

// The reasons, by the step of a run that can end with them.
const (
	Unexpected Reason = "unexpected"
	Usage      Reason = "usage"

	ManifestInvalid   Reason = "manifest-invalid"
	PolicyInvalid     Reason = "policy-invalid"
	PolicyDenied      Reason = "policy-denied"
	KubeconfigRefused Reason = "kubeconfig-refused"
	ReceiptUnwritable Reason = "receipt-unwritable"
	ReceiptInvalid    Reason = "receipt-invalid"

	ApprovalMissing Reason = "approval-missing"
	ApprovalDiffers Reason = "approval-differs"
	ApprovalExpired Reason = "approval-expired"

	ReadFailed        Reason = "read-failed"
	PermissionMissing Reason = "permission-missing"
	PermissionExcess  Reason = "permission-excess"
	ClusterDiffers    Reason = "cluster-differs"
	Interrupted       Reason = "interrupted"

	VolumeDiffers      Reason = "volume-differs"
	VolumeExtraFields  Reason = "volume-extra-fields"
	VolumeTerminating  Reason = "volume-terminating"
	VolumeReleased     Reason = "volume-released"
	VolumeFailed       Reason = "volume-failed"
	VolumeMissing      Reason = "volume-missing"
	BoundClaimMissing  Reason = "bound-claim-missing"
	BoundOtherClaim    Reason = "bound-other-claim"
	BoundClaimDisowns  Reason = "bound-claim-disowns"
	BoundUnproven      Reason = "bound-unproven"
	BackendShared      Reason = "backend-shared"
	BackendNested      Reason = "backend-nested"
	ClaimContested     Reason = "claim-contested"
	ClaimTerminating   Reason = "claim-terminating"
	ClaimLost          Reason = "claim-lost"
	ClaimBoundElse     Reason = "claim-bound-elsewhere"
	ClaimOtherVolume   Reason = "claim-other-volume"
	ClaimTooLarge      Reason = "claim-too-large"
	ClaimOtherClass    Reason = "claim-other-class"
	ClaimOtherModes    Reason = "claim-other-modes"
	ClaimOtherMode     Reason = "claim-other-volume-mode"
	ClaimSelector      Reason = "claim-selector"
	ClaimOtherAttrs    Reason = "claim-other-attributes-class"
	DryRunRefused      Reason = "dry-run-refused"
	DryRunChanged      Reason = "dry-run-changed"
	AlreadyExists      Reason = "already-exists"
	CreateRefused      Reason = "create-refused"
	OutcomeUnknown     Reason = "outcome-unknown"
	CreatedNeedsReview Reason = "created-needs-review"
	ReceiptUnfinished  Reason = "receipt-unfinished"
	Drift              Reason = "drift"
)

const (
	compareWithLive = "Compare the live volume (mooring retain export pv/NAME) with the manifest and correct the one that is wrong."
	fixClaim        = "The claim's owner deletes and recreates the claim to fit, or the volume's owner corrects the manifest; then preview again."
	reviewBinding   = "An administrator finds out which claim the volume holds data for before anything else is done with it."
	readAgain       = "Mend the connection or the server and repeat; nothing was written."
)

// Reasons returns the closed list, in the order of the exit codes.
func Reasons() []Info {
	return append(append(inputReasons(), planReasons()...), writeReasons()...)
}

func inputReasons() []Info {
	return []Info{
		{Unexpected, 1, "An error that has no reason of its own.", "Read the message; report it if it is no fault of the surroundings."},
		{Usage, 2, "The command line is wrong.", "Read the --help of the command."},
		{ManifestInvalid, 10, "A manifest is not an acceptable retained volume.", "Correct the fields that are named; mooring retain check works offline."},
		{PolicyInvalid, 11, "The policy file is wrong.", "Correct the fields that are named."},
		{PolicyDenied, 12, "The manifest is acceptable, but outside the policy.", "Correct the manifest, or have the policy widened by those who keep it."},
		{KubeconfigRefused, 13, "The kubeconfig does not satisfy the contract.", "Write one with mooring retain kubeconfig, or correct the fields that are named."},
		{ReceiptUnwritable, 14, "The receipt cannot be written; nothing was written to the cluster.", "Name a file that does not exist in a directory that can be written."},
		{ReceiptInvalid, 15, "A file is no valid receipt, or was changed.", "Use the file that the run wrote."},
		{ApprovalMissing, 16, "Create was called without an approval.", "Preview, review, and pass --approved-plan or --approved."},
		{ApprovalDiffers, 17, "The situation is not the one that was approved.", "Preview again, and approve the new plan digest if it is right."},
		{ApprovalExpired, 18, "The approved preview is too old, or from the future.", "Preview again."},
		{ReadFailed, 20, "The cluster could not be read; an error is never taken for absence.", readAgain},
		{PermissionMissing, 21, "The identity lacks a right that it needs.", "Apply examples/retain-rbac.yaml for it."},
		{PermissionExcess, 22, "The identity could change or delete volumes.", "Use an identity with the rights of examples/retain-rbac.yaml only, or pass --allow-excess-permissions, which is recorded."},
		{ClusterDiffers, 23, "The cluster is not the one in the receipt.", "Use the kubeconfig of the receipt's cluster."},
		{Interrupted, 24, "The run was interrupted before it wrote anything more.", "Repeat it; the receipt says what was made before."},
	}
}

func planReasons() []Info {
	return []Info{
		{VolumeDiffers, 30, "A live volume of that name differs from the manifest.", compareWithLive},
		{VolumeExtraFields, 31, "A live volume of that name has fields that the manifest has not.", compareWithLive},
		{VolumeTerminating, 32, "A live volume of that name is being deleted.", "Wait until it is gone, and find out who deletes it."},
		{VolumeReleased, 33, "A live volume of that name was released by its claim.", reviewBinding},
		{VolumeFailed, 34, "A live volume of that name has failed.", reviewBinding},
		{VolumeMissing, 35, "The volume is not there.", "Find out who deleted it; the data of a Retain volume is still at its backend."},
		{BoundClaimMissing, 36, "The volume is bound to a claim that is not there.", reviewBinding},
		{BoundOtherClaim, 37, "The volume is bound to a claim of that name with another UID.", reviewBinding},
		{BoundClaimDisowns, 38, "The claim that the volume is bound to names another volume.", reviewBinding},
		{BoundUnproven, 39, "The volume and its claim do not both say that they are bound.", "Wait for the binder and repeat; if it stays, an administrator looks at both."},
		{BackendShared, 40, "Another volume reaches the same backend.", "Keep one of the two; Mooring's mirrors share a volume safely."},
		{BackendNested, 41, "Another volume reaches a directory above or below this one.", "Choose another directory, or name the volume with --allow-overlap pv/NAME, which is recorded."},
		{ClaimContested, 42, "Another volume is reserved for the same claim, or another manifest wants it.", "Correct the claimRef of one of the two."},
		{ClaimTerminating, 43, "The claim is being deleted.", "Wait until it is gone."},
		{ClaimLost, 44, "The claim has lost its volume.", "The claim's owner deletes the claim; then preview again."},
		{ClaimBoundElse, 45, "The claim is bound to another volume.", fixClaim},
		{ClaimOtherVolume, 46, "The claim asks for another volume by name.", fixClaim},
		{ClaimTooLarge, 47, "The claim asks for more than the volume's capacity, so it would never bind.", fixClaim},
		{ClaimOtherClass, 48, "The claim has another storage class than the volume.", fixClaim},
		{ClaimOtherModes, 49, "The claim asks for access modes that the volume has not.", fixClaim},
		{ClaimOtherMode, 50, "The claim asks for another volume mode.", fixClaim},
		{ClaimSelector, 51, "The claim's selector does not match the volume's labels.", fixClaim},
		{ClaimOtherAttrs, 52, "The claim has another volume attributes class.", fixClaim},
		{DryRunRefused, 60, "The server's dry run refused the volume.", "Read the server's message; a webhook that refuses every dry run must be mended, since create never goes on without one."},
		{DryRunChanged, 61, "Admission added or changed fields in the dry run.", "Write what admission adds into the manifest, or exempt volumes from that admission."},
	}
}

func writeReasons() []Info {
	return []Info{
		{AlreadyExists, 70, "Somebody created a volume of that name between plan and create.", "Preview again: it says what is there now."},
		{CreateRefused, 71, "The server refused the create; nothing was made.", "Read the server's message."},
		{OutcomeUnknown, 72, "A create was sent and its outcome cannot be known.", "Preview again: it says unchanged if the volume is there, and create if it is not. Nothing was sent twice."},
		{CreatedNeedsReview, 73, "The volume was created, and the read-back shows something that the plan did not.", "Compare the receipt with the live volume before it is used."},
		{ReceiptUnfinished, 74, "The run did what it says on stderr, and its receipt could not be written.", "Keep the output; verify the volume with a new preview."},
		{Drift, 80, "The live volume is not what the receipt says any more.", compareWithLive},
	}
}
