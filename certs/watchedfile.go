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
type followed[T any] struct {
	followedOptions[T]

	folder folder
	good   atomic.Pointer[T] // nil until the first that is good
	fault  fault             // of the file as it is now
}

// followedOptions is what a followed file needs to know: all of it.
type followedOptions[T any] struct {
	what string // is read from it, for errors
	file string
	// poll is how often it is read if no event came: 0 for DefaultFilePoll.
	poll time.Duration
	// read makes of the file by that name what it holds, or a *FileError.
	read func(files map[string][]byte, name string) (*T, error)
	same func(was, now *T) bool
	// tell logs a content that is new, and unread is the message of a fault.
	tell   func(now *T)
	unread string
	log    logr.Logger
}

func newFollowed[T any](o followedOptions[T]) (*followed[T], error) {
	poll := cmp.Or(o.poll, DefaultFilePoll)
	switch {
	case o.file == "":
		return nil, fmt.Errorf("%s: no file given", o.what)
	case poll < 0:
		return nil, fmt.Errorf("%s: poll interval must not be negative", o.what)
	}
	return &followed[T]{followedOptions: o, folder: folder{path: filepath.Dir(o.file), poll: poll, log: o.log}}, nil
}

// Start follows the file until ctx ends, and then returns nil. Call it once.
func (f *followed[T]) Start(ctx context.Context) error {
	f.folder.follow(ctx, f.look)
	return nil
}

// NeedLeaderElection tells controller-runtime to follow it on every replica.
func (f *followed[T]) NeedLeaderElection() bool { return false }

func (f *followed[T]) look() {
	now, err := f.content()
	if fresh := f.fault.book(err); err != nil {
		if fresh {
			f.log.Error(err, f.unread)
		}
		return
	}
	if was := f.good.Load(); was == nil || !f.same(was, now) {
		f.good.Store(now)
		f.tell(now)
	}
}

func (f *followed[T]) content() (*T, error) {
	name := filepath.Base(f.file)
	files, err := f.folder.read(name)
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
func (f *followed[T]) healthy(notYet error) error {
	if f.good.Load() != nil {
		return nil
	}
	return f.fault.because(notYet)
}

// problem is what is wrong with the file though something good is known, and
// what is done about it.
func (f *followed[T]) problem(instead string) error {
	if err := f.fault.now(); err != nil && f.good.Load() != nil {
		return fmt.Errorf("%w; %s", err, instead)
	}
	return nil
}
