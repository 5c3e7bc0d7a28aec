// Package gate decides whether a run of a forge's workflow may touch the
// credentials of a cluster: only a manual dispatch, by an owner, of the head of a
// protected branch, from a checkout that is exactly that commit and holds nothing
// that it must not.
//
// facts.go, event.go, owners.go, conditions.go and verdict.go decide, and are PURE.
// The others find out: what the forge's API, git and the scan say.
package gate

// Answer is what somebody who was asked knows. The zero value is that nobody
// knows, which never counts as yes.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// Facts are all that a verdict rests on. The zero value refuses.
type Facts struct {
	Event    Event
	Forge    Forge
	Checkout Checkout
	Scan     Scan
}

// Event is what the runner says about why the workflow runs.
type Event struct {
	Name, Attempt          string
	Actor, TriggeringActor string // the latter is empty on Gitea and Forgejo
	Ref, Commit            string
	Repository             string // owner/name
	RunID                  string
}

// Branch is a branch as the forge's API knows it.
type Branch struct {
	Name      string
	Protected Answer
	Head      string // the commit, empty if not known
	// Problem says why nothing is known.
	Problem string
}

// Forge is what the forge's API answered.
type Forge struct {
	// Fork says whether the repository is one.
	Fork Answer
	// Problem says why the repository could not be read.
	Problem string
	// Default is the repository's default branch, where the owners are listed.
	Default Branch
	// Dispatched is the branch that the workflow was dispatched on.
	Dispatched Branch
	// Owners are the accounts listed on the default branch.
	Owners []string
	// OwnersFile is where they were read.
	OwnersFile string
	// OwnersProblem says why they are not known.
	OwnersProblem string
}

// Checkout is what git and the files say.
type Checkout struct {
	// Problem says why the checkout could not be read.
	Problem string
	Head    string
	// Changes are the first files that are not as the commit has them, and Changed
	// how many there are.
	Changes []string
	Changed int
	// Read says that every file was compared.
	Read bool
	// Manifests are the files that the run is about.
	Manifests []ManifestFile
}

// ManifestFile is one manifest of the run.
type ManifestFile struct {
	Path string `json:"path"`
	// Problem says why it is not acceptable.
	Problem string `json:"problem,omitempty"`
	// Digest of its bytes at the commit: "sha256:" and hex digits.
	Digest string `json:"digest,omitempty"`
}

// Scan is what was found in the files of the commit.
type Scan struct {
	Finished bool
	// Problem says why it did not finish.
	Problem  string
	Files    int
	Bytes    int64
	Findings []Finding
	// Found counts findings beyond those that are listed, too.
	Found int
	// Allowed counts lines that a gitleaks:allow comment of the commit accepts.
	Allowed int
}

// Finding is something that a calling repository must not hold. It never holds
// the secret itself.
type Finding struct {
	Rule string `json:"rule"`
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
	Says string `json:"says"`
}
