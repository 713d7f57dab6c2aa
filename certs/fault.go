package certs

import (
	"fmt"
	"sync/atomic"
)

// fault is what is wrong with files as they are now. The zero value is for files
// that nobody has looked at.
type fault struct{ err atomic.Pointer[error] }

// book keeps what is wrong, nil for nothing. It reports whether that is new:
// what is wrong already is logged once.
func (f *fault) book(err error) (fresh bool) {
	before := f.err.Swap(&err)
	return before == nil || *before == nil || err == nil || (*before).Error() != err.Error()
}

func (f *fault) now() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// because adds what is wrong to err.
func (f *fault) because(err error) error {
	if now := f.now(); now != nil {
		return fmt.Errorf("%w: %w", err, now)
	}
	return err
}
