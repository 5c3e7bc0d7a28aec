package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// refrainTime is how long a text is remembered: longer than the API's client
// counts up an event that is told again (client-go tools/events, finishTime).
const refrainTime = 10 * time.Minute

// refrains remember at which version of an object a text about it was told. The
// client counts up what is told again only about the very same version, and each
// change of a condition makes another: told at the version of the first time, a
// grant that comes and goes makes few events and not thousands. The zero value
// remembers nothing.
type refrains struct {
	mutex sync.Mutex
	told  map[refrain]*telling
}

type refrain struct {
	about        types.UID
	reason, text string
}

type telling struct {
	version string
	last    time.Time
}

// at returns an object for an event to refer to: as it is, or at the version at
// which the same was told of it before.
func (r *refrains) at(object runtime.Object, reason, text string, now time.Time) runtime.Object {
	original, err := meta.Accessor(object)
	if err != nil {
		return object
	}
	version := r.version(refrain{original.GetUID(), reason, text}, original.GetResourceVersion(), now)
	if version == original.GetResourceVersion() {
		return object
	}
	object = object.DeepCopyObject()
	if copied, err := meta.Accessor(object); err == nil {
		copied.SetResourceVersion(version)
	}
	return object
}

func (r *refrains) version(what refrain, version string, now time.Time) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.told == nil {
		r.told = map[refrain]*telling{}
	}
	if len(r.told) >= mostNotes {
		maps.DeleteFunc(r.told, func(_ refrain, t *telling) bool { return now.Sub(t.last) >= refrainTime })
	}
	if before := r.told[what]; before != nil && now.Sub(before.last) < refrainTime {
		before.last = now
		return before.version
	}
	r.told[what] = &telling{version, now}
	return version
}
