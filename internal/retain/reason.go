// Package retain puts a volume that must never be lost under Kubernetes' care:
// it checks a manifest, plans against the live cluster, creates exactly once
// and reads back. It never changes or deletes anything.
//
// PURE files say what may happen: manifest*.go, policy.go, backend*.go,
// compare.go, plan*.go, claim.go, reason*.go. The others make it happen.
package retain

import (
	"errors"
	"fmt"
)

// Reason is why a run did not end well. The list is closed: it feeds the exit
// codes, the receipts and docs/exit-codes.md.
type Reason string

// Error is an end of a run that has a reason of the list.
type Error struct {
	Reason Reason
	// Message is one sentence, or several lines where there are several
	// problems. It never holds a secret.
	Message string
	// Cause is the error below, if there is one; its text is part of Message.
	Cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Reason, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func refusef(reason Reason, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Reason: reason, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// ReasonOf returns the reason that err carries, or Unexpected for an error
// without one. It must not be asked about nil.
func ReasonOf(err error) Reason {
	var with *Error
	if errors.As(err, &with) {
		return with.Reason
	}
	return Unexpected
}

// Info describes a reason for people and programs.
type Info struct {
	Reason Reason
	// ExitCode is the exit code of mooring when a run ends for this reason.
	ExitCode int
	// Meaning says what was found.
	Meaning string
	// Next says who does what about it.
	Next string
}

// InfoOf returns the description of a reason of the list; of any other it
// returns that of Unexpected.
func InfoOf(reason Reason) Info {
	for _, info := range Reasons() {
		if info.Reason == reason {
			return info
		}
	}
	return Reasons()[0]
}
