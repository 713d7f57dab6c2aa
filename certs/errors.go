package certs

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// SecretError says what could not be read in the Secret of an Authority.
type SecretError struct {
	Namespace, Name string // the Secret
	Key             string // the data key or annotation
	Err             error
}

// Error names the Secret, the key and the fault, and never what is stored.
func (e *SecretError) Error() string {
	return fmt.Sprintf("secret %s/%s: %s: %v; it will be rewritten", e.Namespace, e.Name, e.Key, e.Err)
}

// Unwrap returns the fault.
func (e *SecretError) Unwrap() error { return e.Err }

// FileError says what is wrong with a file, and what to do about it.
type FileError struct {
	Path   string
	Err    error
	Remedy string
}

// Error names the file, the fault and the remedy, and never what it holds.
func (e *FileError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Path, e.Err, e.Remedy) }

// Unwrap returns the fault.
func (e *FileError) Unwrap() error { return e.Err }

var (
	// ErrMissing is in a FileError for a file that is not there.
	ErrMissing = errors.New("not found")

	// ErrTruncated is in a FileError for PEM that breaks off.
	ErrTruncated = errors.New("truncated PEM block")

	// ErrSwapped is in a FileError for a key where a certificate has to be, and
	// the other way round.
	ErrSwapped = errors.New("certificate and key are swapped")

	// ErrMismatch is in a FileError for files that do not belong together.
	ErrMismatch = errors.New("does not match the certificate")

	// ErrExpired is in a FileError for a certificate whose time is over.
	ErrExpired = errors.New("expired")

	// ErrNotYetValid is in a FileError for a certificate whose time has not come.
	ErrNotYetValid = errors.New("not valid yet")

	// ErrNotPEM is in a SecretError or FileError for data that holds no PEM certificate found.
	ErrNotPEM = errors.New("no PEM certificate found")

	// ErrNotAuthority is in a SecretError for a certificate that may not sign others.
	ErrNotAuthority = errors.New("not a certificate authority")

	// ErrContended is in the error of a write that another writer was faster
	// than, time after time.
	ErrContended = errors.New("concurrent update")
)

// fault is what is wrong with files as they are now. The zero value is for files
// that nobody has looked at.
type lastError struct{ err atomic.Pointer[error] }

// book keeps what is wrong, nil for nothing. It reports whether that is new:
// what is wrong already is logged once.
func (f *lastError) set(err error) (fresh bool) {
	previous := f.err.Swap(&err)
	return previous == nil || *previous == nil || err == nil || (*previous).Error() != err.Error()
}

func (f *lastError) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// because adds what is wrong to err.
func (f *lastError) wrap(err error) error {
	if now := f.get(); now != nil {
		return fmt.Errorf("%w: %w", err, now)
	}
	return err
}
