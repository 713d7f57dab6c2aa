package certs

import (
	"errors"
	"fmt"
)

// SecretError says what could not be read in the Secret of an Authority.
type SecretError struct {
	Namespace, Name string // the Secret
	Key             string // the data key or annotation
	Err             error
}

// Error names the Secret, the key and the fault, and never what is stored.
func (e *SecretError) Error() string {
	return fmt.Sprintf("secret %s/%s: %s: %v; it will be written anew", e.Namespace, e.Name, e.Key, e.Err)
}

// Unwrap returns the fault.
func (e *SecretError) Unwrap() error { return e.Err }

var (
	// ErrNotPEM is in a SecretError for data that holds no certificate in PEM.
	ErrNotPEM = errors.New("no certificate in PEM")

	// ErrNotAuthority is in a SecretError for a certificate that may not sign others.
	ErrNotAuthority = errors.New("not a certificate authority")

	// ErrContended is in the error of a write that another writer was faster
	// than, time after time.
	ErrContended = errors.New("written by another at the same time")
)
