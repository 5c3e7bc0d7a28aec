package retain

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

// Reader is what a run may read. Absence is only what the API server says of
// the very object; every other answer is an error.
type Reader interface {
	// Version returns the server's version, such as v1.37.2.
	Version(ctx context.Context) (string, error)
	// Namespace returns a namespace that must exist.
	Namespace(ctx context.Context, name string) (*corev1.Namespace, error)
	// Volume returns a volume as the server wrote it, or nil if there is none.
	Volume(ctx context.Context, name string) (map[string]any, error)
	// Volumes calls visit with every volume of one consistent list, one page
	// after the other. After an error the visits mean nothing.
	Volumes(ctx context.Context, visit func(*corev1.PersistentVolume)) error
	// Claim returns a claim, or nil if there is none.
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
}

// Reviewer is what a run may ask about itself. The questions are POSTs that
// store nothing.
type Reviewer interface {
	// WhoAmI returns the identity that the API server sees.
	WhoAmI(ctx context.Context) (receipt.Caller, error)
	// May says whether the identity has a right.
	May(ctx context.Context, right Right) (bool, error)
	// Rules returns all rights on cluster-wide objects, and whether the list is
	// known to be whole.
	Rules(ctx context.Context) (rights []Right, whole bool, err error)
}

// Creator is what a run may do. There is no method to change or delete.
type Creator interface {
	// DryRunCreate asks what a create would store. It stores nothing.
	DryRunCreate(ctx context.Context, volume map[string]any) (map[string]any, error)
	// CreateVolume sends POST persistentvolumes, once.
	CreateVolume(ctx context.Context, volume map[string]any) (map[string]any, error)
}

// Cluster is all that a run can reach of a cluster.
type Cluster interface {
	Reader
	Reviewer
	Creator
}

// Right is one verb on one kind of object, or on the one with that name.
type Right struct {
	Verb, Resource, Subresource, Name string
}

// String returns the right as receipts and people read it.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	return text
}
