// Package logbuffer holds the lines of a log for tests.
package logbuffer

import (
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Buffer collects the lines of a log. It is safe for concurrent use.
type Buffer struct {
	mu    sync.Mutex
	lines []string
}

// Logger returns a logger that writes to the buffer, at verbosity 2.
func (b *Buffer) Logger() logr.Logger { return b.At(2) }

// At returns a logger that writes to the buffer, at a verbosity.
func (b *Buffer) At(verbosity int) logr.Logger {
	return funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, args)
	}, funcr.Options{Verbosity: verbosity})
}

// String returns the lines, separated by line feeds.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}
