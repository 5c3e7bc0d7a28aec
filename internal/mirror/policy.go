package mirror

import (
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Policy is what happens to a mirror whose grant has ended. The zero value only
// reports it.
type Policy struct {
	// Delete says that the mirror claim is deleted After the grant was found to
	// have ended.
	Delete bool
	After  time.Duration
}

// defaultRevokeAfter is the delay where the class says Delete and no more.
const defaultRevokeAfter = 5 * time.Minute

// PolicyOf reads the policy of a class; nil is a class that is gone. Whatever is
// not plainly a wish to delete only reports.
func PolicyOf(names mooringapi.Names, class *storagev1.StorageClass) Policy {
	if class == nil || class.Provisioner != names.Provisioner() || class.Annotations[names.OnRevoke()] != mooringapi.OnRevokeDelete {
		return Policy{}
	}
	text, given := class.Annotations[names.RevokeAfter()]
	if !given {
		return Policy{Delete: true, After: defaultRevokeAfter}
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < 0 {
		return Policy{}
	}
	return Policy{Delete: true, After: after}
}

// Limit is how many mirrors may lose their grant within a time before nothing
// is deleted any more: the larger of a count and a percentage of all mirrors.
type Limit struct{ Count, Percent int }

// Of returns the limit for so many mirrors.
func (l Limit) Of(mirrors int) int { return max(l.Count, mirrors*l.Percent/100) }
