package controller

import (
	"slices"
	"sync"
)

// nameSet is a set of names that several workers change. The zero value is
// empty.
type nameSet struct {
	mutex sync.Mutex
	names map[string]bool
}

func (s *nameSet) add(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[name] = true
}

func (s *nameSet) remove(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.names, name)
}

func (s *nameSet) size() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.names)
}

// someNames lists the first ten of many names, sorted, for people.
func someNames(names []string) string {
	const most = 10
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	text := ""
	for i, name := range names {
		if i == most {
			return text + ", …"
		}
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return text
}
