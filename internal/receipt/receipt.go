// Package receipt is the record of one retained-volumes run: what was asked,
// what was seen, what was planned and what was done, as an in-toto Statement
// that anybody can check against the schema in docs/receipt.schema.json.
//
// A receipt holds no secret: of the credentials only the name of the identity
// that the API server gave for them.
package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// PredicateType names the meaning of the predicate and its version. A change
// that a reader of version 1 would misread needs another version.
const PredicateType = "https://github.com/mooring-k8s/mooring/receipt/retained-volume/v1"

// Outcome is how a run, or its part for one volume, ended. The zero value is no
// outcome, and no receipt has it.
type Outcome string

// The outcomes, in the order in which a run can reach them.
const (
	// Intended: the next thing that the run did was to send a write. A receipt
	// that stays so is of a run that was killed.
	Intended Outcome = "intended"
	// Unknown: a write was sent and nobody can tell whether it was done.
	Unknown Outcome = "unknown"
	// Refused: nothing was written, for a reason of the closed list. A run that is
	// refused at one of several volumes may have created those before it.
	Refused Outcome = "refused"
	// WouldCreate: a preview found nothing in the way.
	WouldCreate Outcome = "would-create"
	// Unchanged: the volume is there exactly as its manifest says.
	Unchanged Outcome = "unchanged"
	// Created: the volume was made and read back as planned.
	Created Outcome = "created"
	// NeedsReview: the volume was made, and the read-back showed something that
	// the plan did not.
	NeedsReview Outcome = "needs-review"
	// NotReached: the volume was planned, and another one ended the run.
	NotReached Outcome = "not-reached"
)

// Wrote says whether a write request was sent, or may have been.
func (o Outcome) Wrote() bool {
	return o == Intended || o == Unknown || o == Created || o == NeedsReview
}

// Receipt is the predicate.
type Receipt struct {
	Action  string  `json:"action"` // preview or create
	Outcome Outcome `json:"outcome"`
	// Reason is of the closed list in docs/exit-codes.md; empty where the
	// outcome needs none.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	Tool        Tool         `json:"tool"`
	Cluster     *Cluster     `json:"cluster,omitempty"`
	Caller      *Caller      `json:"caller,omitempty"`
	Permissions *Permissions `json:"permissions,omitempty"`
	Volumes     []Volume     `json:"volumes"`
	// PlanDigest is the digest of Cluster's identity and every Planned.
	PlanDigest string    `json:"planDigest,omitempty"`
	Approval   *Approval `json:"approval,omitempty"`
	// StartedAt and FinishedAt are RFC 3339 in UTC by this machine's clock.
	StartedAt  string   `json:"startedAt"`
	FinishedAt string   `json:"finishedAt,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// Tool is the program that wrote the receipt.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Cluster identifies the API server that answered.
type Cluster struct {
	// UID is that of the namespace kube-system: the cluster's identity.
	UID string `json:"uid"`
	// CADigest is the digest of the certificates that the server was verified by.
	CADigest string `json:"caDigest"`
	Server   string `json:"server"`
	Version  string `json:"version"`
}

// Caller is the identity that the API server saw (SelfSubjectReview).
type Caller struct {
	Username string   `json:"username"`
	UID      string   `json:"uid,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

// Permissions is the permission proof.
type Permissions struct {
	// Denied are the questions that the API server answered with no, as it had to.
	Denied []string `json:"denied,omitempty"`
	// Excess are rights that the identity has and must not have.
	Excess []string `json:"excess,omitempty"`
	// ExcessAllowed says that the caller asked to go on in spite of them.
	ExcessAllowed bool `json:"excessAllowed,omitempty"`
	// Scope says what the proof does not cover.
	Scope string `json:"scope"`
}

// Volume is one manifest and what became of it.
type Volume struct {
	// Manifest is the normalised manifest: as it was sent, without comments.
	Manifest map[string]any `json:"manifest"`
	// FileDigest is the digest of the manifest file's bytes.
	FileDigest string  `json:"fileDigest"`
	Planned    Planned `json:"planned"`
	Outcome    Outcome `json:"outcome"`
	Reason     string  `json:"reason,omitempty"`
	Message    string  `json:"message,omitempty"`
	// Live is the volume as it was read last; absent if it was not there.
	Live *Live `json:"live,omitempty"`
	// OtherMetadata lists labels and annotations of other tools on the live
	// volume: accepted, and worth knowing.
	OtherMetadata []string `json:"otherMetadata,omitempty"`
}

// Planned is what the plan digest covers for one volume: no times, no caller,
// nothing that differs between two looks at one situation.
type Planned struct {
	Name           string `json:"name"`
	ManifestDigest string `json:"manifestDigest"`
	// Action is create, unchanged or refused.
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	Claim  Claim  `json:"claim"`
	// Backends are the places that the volume reaches, as they were compared.
	Backends []string `json:"backends"`
	// AllowedOverlaps are volumes on a nested path that the caller named, each
	// with its place: another place is another situation.
	AllowedOverlaps []string `json:"allowedOverlaps,omitempty"`
	// Mirrors are Mooring's mirror volumes of this very volume.
	Mirrors []string `json:"mirrors,omitempty"`
	LiveUID string   `json:"liveUID,omitempty"`
	// DryRunDigest is that of the object which the server's dry run returned,
	// without what the server makes anew each time.
	DryRunDigest string `json:"dryRunDigest,omitempty"`
}

// Claim is the identity of the claim that the volume is for, as it was read.
type Claim struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Present    bool   `json:"present"`
	UID        string `json:"uid,omitempty"`
	VolumeName string `json:"volumeName,omitempty"`
	Phase      string `json:"phase,omitempty"`
	SpecDigest string `json:"specDigest,omitempty"`
}

// Live identifies one reading of a live volume.
type Live struct {
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Phase           string `json:"phase,omitempty"`
	// Digest is that of the volume without status and server metadata.
	Digest string `json:"digest"`
	// ClaimUID is claimRef.uid, once the volume is bound.
	ClaimUID string `json:"claimUID,omitempty"`
}

// Approval is by what right create went on.
type Approval struct {
	// Kind is digest, preview or none.
	Kind       string `json:"kind"`
	PlanDigest string `json:"planDigest,omitempty"`
	// PreviewFinishedAt is the time in the approved preview, for kind preview.
	PreviewFinishedAt string `json:"previewFinishedAt,omitempty"`
}

// ComputePlanDigest returns the digest of the situation that the receipt
// describes: "sha256:" and hex digits. Equal situations have equal digests,
// whenever, by whomever and through whichever address they were seen.
func (r Receipt) ComputePlanDigest() string {
	situation := struct {
		PredicateType string    `json:"predicateType"`
		ClusterUID    string    `json:"clusterUID"`
		CADigest      string    `json:"caDigest"`
		Volumes       []Planned `json:"volumes"`
	}{PredicateType: PredicateType}
	if r.Cluster != nil {
		situation.ClusterUID, situation.CADigest = r.Cluster.UID, r.Cluster.CADigest
	}
	for _, v := range r.Volumes {
		situation.Volumes = append(situation.Volumes, v.Planned)
	}
	return Digest(situation)
}

// Digest returns "sha256:" and the digest of value as JSON with sorted keys and
// no white space. Values that JSON cannot hold are a programming error.
func Digest(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("digest of a value that JSON cannot hold: %v", err))
	}
	return DigestBytes(data)
}

// DigestBytes returns "sha256:" and the digest of data.
func DigestBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
