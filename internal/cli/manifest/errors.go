package manifest

import (
	"errors"
	"fmt"
)

// Errors that the reader of a manifest finds.
var (
	// ErrFormat tells that a file is not a manifest at all.
	ErrFormat = errors.New("not a manifest")
	// ErrTooLarge tells that a file, or what its aliases stand for, is larger
	// than MaxSize.
	ErrTooLarge = errors.New("too large")
	// ErrEmpty tells that there is no manifest where one was looked for.
	ErrEmpty = errors.New("no manifests")
	// ErrDuplicate tells that an object is there twice.
	ErrDuplicate = errors.New("duplicate object")
)

// Position is where an object or an error is.
type Position struct {
	// File as it was named, "-" for standard input.
	File string
	// Document in the file and Line of its start, both from 1; 0 for the file
	// as a whole.
	Document, Line int
	// Item of a list, from 1; 0 outside one.
	Item int
}

// String returns the position as messages name it.
func (p Position) String() string {
	file := p.File
	if file == "-" {
		file = "standard input"
	}
	switch {
	case p.Document == 0 && p.Line == 0:
		return file
	case p.Document == 0:
		return fmt.Sprintf("%s:%d", file, p.Line)
	case p.Item == 0:
		return fmt.Sprintf("%s:%d (document %d)", file, p.Line, p.Document)
	default:
		return fmt.Sprintf("%s:%d (document %d, item %d)", file, p.Line, p.Document, p.Item)
	}
}

// Error is an error at a place in a manifest.
type Error struct {
	At  Position
	Err error
}

// Error returns the place and what is wrong there.
func (e *Error) Error() string { return e.At.String() + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

func (p Position) errorf(format string, args ...any) error {
	return &Error{At: p, Err: fmt.Errorf(format, args...)}
}
