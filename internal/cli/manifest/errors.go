package manifest

import (
	"errors"
	"fmt"
)

// Errors of Read and FromObjects.
var (
	// ErrFormat is the error of a document that is not a manifest.
	ErrFormat = errors.New("invalid manifest")
	// ErrTooLarge is the error of a file that is larger than MaxSize, as it is or
	// with its aliases expanded.
	ErrTooLarge = errors.New("too large")
	// ErrEmpty is the error of a path without manifests.
	ErrEmpty = errors.New("no manifests found")
)

// Position is the position of an object or an error in a file.
type Position struct {
	// File is the path as the user gave it, "-" for standard input.
	File string
	// Document is the number of the document in the file, and Line the line at
	// which it starts, both from 1. 0 stands for the whole file.
	Document, Line int
	// Item is the number of the item in a list, from 1; 0 outside of lists.
	Item int
}

// String returns the position for messages.
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

// positionError is an error about a manifest, with its position.
type positionError struct{ error }

// Unwrap returns the error.
func (e positionError) Unwrap() error { return e.error }

// IsInvalid reports whether an error is about the content of a manifest.
func IsInvalid(err error) bool {
	_, ok := errors.AsType[positionError](err)
	return ok
}

// errorf returns an error at the position.
func (p Position) errorf(format string, args ...any) error {
	return positionError{fmt.Errorf("%s: "+format, append([]any{p}, args...)...)}
}
