package certs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// reloadedFile is a file that changes. It keeps the last valid content while the file
// is invalid.
type reloadedFile[T any] struct {
	opts reloadedFileOptions[T]

	watcher fileWatcher
	current atomic.Pointer[T] // nil until the first valid one
	lastErr lastError         // of the last read of the file
}

// reloadedFileOptions configures a reloadedFile. All but poll are required.
type reloadedFileOptions[T any] struct {
	subject string // what the file has, for errors
	file    string
	// poll is how often the file is read without an event (default
	// DefaultFilePoll).
	poll time.Duration
	// read parses the file of that name; its errors are *FileError.
	read  func(files map[string][]byte, name string) (*T, error)
	equal func(a, b *T) bool
	// logLoaded logs new content; errorMessage is the log message of an error.
	logLoaded    func(*T)
	errorMessage string
	log          logr.Logger
}

func newReloadedFile[T any](o reloadedFileOptions[T]) (*reloadedFile[T], error) {
	poll := cmp.Or(o.poll, DefaultFilePoll)
	switch {
	case o.file == "":
		return nil, fmt.Errorf("%s: no file given", o.subject)
	case poll < 0:
		return nil, fmt.Errorf("%s: poll interval must not be negative", o.subject)
	}
	return &reloadedFile[T]{opts: o, watcher: fileWatcher{path: filepath.Dir(o.file), poll: poll, log: o.log}}, nil
}

// Start watches the file until ctx ends, and then returns nil. Call it once.
func (f *reloadedFile[T]) Start(ctx context.Context) error {
	f.watcher.watch(ctx, f.reload)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica watches
// the file.
func (f *reloadedFile[T]) NeedLeaderElection() bool { return false }

func (f *reloadedFile[T]) reload() {
	loaded, err := f.load()
	if changed := f.lastErr.set(err); err != nil {
		if changed {
			f.opts.log.Error(err, f.opts.errorMessage)
		}
		return
	}
	if previous := f.current.Load(); previous == nil || !f.opts.equal(previous, loaded) {
		f.current.Store(loaded)
		f.opts.logLoaded(loaded)
	}
}

func (f *reloadedFile[T]) load() (*T, error) {
	name := filepath.Base(f.opts.file)
	files, err := f.watcher.read(name)
	if err != nil {
		return nil, err
	}
	loaded, err := f.opts.read(files, name)
	if fileErr, ok := errors.AsType[*FileError](err); ok {
		fileErr.Path = f.opts.file
	}
	return loaded, err
}

// healthy returns nil once valid content was read, else notYet with the cause.
func (f *reloadedFile[T]) healthy(notYet error) error {
	if f.current.Load() != nil {
		return nil
	}
	return f.lastErr.wrap(notYet)
}

// problem returns the error of the file, followed by instead, while earlier content is
// in use; else nil.
func (f *reloadedFile[T]) problem(instead string) error {
	if err := f.lastErr.get(); err != nil && f.current.Load() != nil {
		return fmt.Errorf("%w; %s", err, instead)
	}
	return nil
}
