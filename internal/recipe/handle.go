package recipe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Handle is what a mirror volume's volume handle is.
type Handle string

// The kinds of handle.
const (
	// NoHandle: the source has none.
	NoHandle Handle = "none"
	// UniqueHandle: one of the mirror's own, so that kubelet tells origin and
	// mirror apart.
	UniqueHandle Handle = "unique"
	// SharedHandle: the origin's, because the driver finds the data by it.
	SharedHandle Handle = "shared"
)

// HandleRule is how a mirror's handle is made. The zero value makes none.
type HandleRule struct {
	Kind Handle
	// Form is the handle as it stands in documentation.
	Form string
	// Make returns the handle of a mirror of the origin with that handle, or
	// why not.
	Make func(origin string, claim types.UID) (handle, why string)
}

// longestHandle is the limit of the CSI specification, in bytes.
const longestHandle = 128

// The rules that several drivers share.
var (
	// NoHandleRule is for sources without a handle.
	NoHandleRule = HandleRule{Kind: NoHandle}
	// OpaqueHandle is for drivers whose node service does not interpret the
	// handle. It is a fresh one, not the origin's with something added, so that
	// the driver's controller can read nothing of the origin out of it.
	OpaqueHandle = HandleRule{Kind: UniqueHandle, Form: "mirror-<UID>", Make: opaque}
	// OriginHandle is for drivers that find the data by it.
	OriginHandle = HandleRule{Kind: SharedHandle, Form: "the origin's", Make: same}
)

func opaque(_ string, claim types.UID) (string, string) { return "mirror-" + string(claim), "" }

func same(origin string, _ types.UID) (string, string) { return origin, "" }

// of returns the handle, or why there is none.
func (h HandleRule) of(origin string, claim types.UID) (handle, why string) {
	if h.Make == nil {
		return "", "the recipe makes no handle"
	}
	if handle, why = h.Make(origin, claim); why != "" || h.Kind == SharedHandle {
		return handle, why
	}
	switch {
	case len(handle) > longestHandle:
		return "", fmt.Sprintf("a mirror's volume handle would have %d bytes, and the CSI specification allows %d", len(handle), longestHandle)
	case handle == origin:
		return "", "a mirror's volume handle would be the origin's"
	case strings.Contains(handle, "^"):
		// kubelet divides its names of volumes at it.
		return "", "the origin's volume handle has the character ^"
	}
	return handle, ""
}
