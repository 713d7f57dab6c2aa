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

// followed is a file that others change. It keeps the last content that was
// good, for as long as the file holds anything else.
type watchedFile[T any] struct {
	watchedFileOptions[T]

	dir     directory
	current atomic.Pointer[T] // nil until the first that is good
	lastErr lastError         // of the file as it is now
}

// followedOptions is what a followed file needs to know: all of it.
type watchedFileOptions[T any] struct {
	subject string // is read from it, for errors
	file    string
	// poll is how often it is read if no event came: 0 for DefaultFilePoll.
	poll time.Duration
	// read makes of the file by that name what it holds, or a *FileError.
	read  func(files map[string][]byte, name string) (*T, error)
	equal func(was, now *T) bool
	// tell logs a content that is new, and unread is the message of a fault.
	logLoaded    func(now *T)
	errorMessage string
	log          logr.Logger
}

func newWatchedFile[T any](o watchedFileOptions[T]) (*watchedFile[T], error) {
	poll := cmp.Or(o.poll, DefaultFilePoll)
	switch {
	case o.file == "":
		return nil, fmt.Errorf("%s: no file given", o.subject)
	case poll < 0:
		return nil, fmt.Errorf("%s: poll interval must not be negative", o.subject)
	}
	return &watchedFile[T]{watchedFileOptions: o, dir: directory{path: filepath.Dir(o.file), poll: poll, log: o.log}}, nil
}

// Start follows the file until ctx ends, and then returns nil. Call it once.
func (f *watchedFile[T]) Start(ctx context.Context) error {
	f.dir.watch(ctx, f.reload)
	return nil
}

// NeedLeaderElection tells controller-runtime to follow it on every replica.
func (f *watchedFile[T]) NeedLeaderElection() bool { return false }

func (f *watchedFile[T]) reload() {
	now, err := f.load()
	if fresh := f.lastErr.set(err); err != nil {
		if fresh {
			f.log.Error(err, f.errorMessage)
		}
		return
	}
	if was := f.current.Load(); was == nil || !f.equal(was, now) {
		f.current.Store(now)
		f.logLoaded(now)
	}
}

func (f *watchedFile[T]) load() (*T, error) {
	name := filepath.Base(f.file)
	files, err := f.dir.read(name)
	if err != nil {
		return nil, err
	}
	now, err := f.read(files, name)
	if fault, ok := errors.AsType[*FileError](err); ok {
		fault.Path = f.file
	}
	return now, err
}

// healthy is nil once something good was read, and else notYet and why.
func (f *watchedFile[T]) healthy(notYet error) error {
	if f.current.Load() != nil {
		return nil
	}
	return f.lastErr.wrap(notYet)
}

// problem is what is wrong with the file though something good is known, and
// what is done about it.
func (f *watchedFile[T]) problem(instead string) error {
	if err := f.lastErr.get(); err != nil && f.current.Load() != nil {
		return fmt.Errorf("%w; %s", err, instead)
	}
	return nil
}
