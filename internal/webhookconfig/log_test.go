package webhookconfig

import (
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// logBuffer is the lines of a log.
type logBuffer struct {
	mu    sync.Mutex
	lines []string
}

func (b *logBuffer) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, args)
	}, funcr.Options{Verbosity: 2})
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}
