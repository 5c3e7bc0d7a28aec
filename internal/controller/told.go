package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// told remembers what was last said about an object that has no condition of
// Mooring's, so that it is said once for each change. The zero value remembers
// nothing.
type told struct {
	mutex sync.Mutex
	said  map[types.NamespacedName]string
}

// isNews reports whether a text is one that was not said last, and remembers
// it. Nothing to say is never news.
func (t *told) isNews(object types.NamespacedName, text string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if text == "" {
		delete(t.said, object)
		return false
	}
	if t.said[object] == text {
		return false
	}
	if t.said == nil {
		t.said = map[types.NamespacedName]string{}
	}
	t.said[object] = text
	return true
}

// last returns what was said last about an object, or "".
func (t *told) last(object types.NamespacedName) string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.said[object]
}

// forget drops what was said about an object that is gone.
func (t *told) forget(object types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.said, object)
}
