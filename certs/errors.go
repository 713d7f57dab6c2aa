package certs

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// SecretError is an invalid part of a Secret.
type SecretError struct {
	Namespace, Name string // the Secret
	Key             string // the data key or annotation
	Err             error
}

// Error returns the Secret, the key and the error, and never the stored value.
func (e *SecretError) Error() string {
	return fmt.Sprintf("secret %s/%s: %s: %v; it will be rewritten", e.Namespace, e.Name, e.Key, e.Err)
}

// Unwrap implements errors.Is and errors.As.
func (e *SecretError) Unwrap() error { return e.Err }

// FileError is an error of a file, with what to do about it.
type FileError struct {
	Path   string
	Err    error
	Remedy string
}

// Error returns the path, the error and the remedy, and never the content.
func (e *FileError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Path, e.Err, e.Remedy) }

// Unwrap implements errors.Is and errors.As.
func (e *FileError) Unwrap() error { return e.Err }

var (
	// ErrMissing is in a FileError for a file that does not exist.
	ErrMissing = errors.New("not found")

	// ErrTruncated is in a FileError for PEM data that is truncated.
	ErrTruncated = errors.New("truncated PEM block")

	// ErrSwapped is in a FileError for a key in place of a certificate, and vice
	// versa.
	ErrSwapped = errors.New("certificate and key are swapped")

	// ErrMismatch is in a FileError for a key that does not match the certificate.
	ErrMismatch = errors.New("does not match the certificate")

	// ErrExpired is in a FileError for an expired certificate.
	ErrExpired = errors.New("expired")

	// ErrNotYetValid is in a FileError for a certificate that is not valid yet.
	ErrNotYetValid = errors.New("not valid yet")

	// ErrNotPEM is in a SecretError or FileError for data without a PEM certificate.
	ErrNotPEM = errors.New("no PEM certificate found")

	// ErrTooLarge is in a FileError for a file that is larger than any valid one.
	ErrTooLarge = errors.New("file is too large")

	// ErrNotAuthority is in a SecretError for a certificate that is no CA.
	ErrNotAuthority = errors.New("not a certificate authority")

	// ErrContended is in the error of a write that conflicts with another one.
	ErrContended = errors.New("concurrent update")
)

// lastError is the result of the last read of files. The zero value is for files that
// were not read yet. It is safe for concurrent use.
type lastError struct{ err atomic.Pointer[error] }

// set stores err, which may be nil. It reports whether it differs from the one before,
// so that each error is logged once.
func (l *lastError) set(err error) (changed bool) {
	previous := l.err.Swap(&err)
	return previous == nil || *previous == nil || err == nil || (*previous).Error() != err.Error()
}

func (l *lastError) get() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// wrap adds the stored error to err.
func (l *lastError) wrap(err error) error {
	if last := l.get(); last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}
