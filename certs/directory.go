package certs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

const (
	// mountedData is the link by which Kubernetes swaps all files of a mount at
	// once.
	dataLink = "..data"
	// settling is how long a change is waited out: files that are copied one by
	// one do not fit each other in between.
	debounce = 100 * time.Millisecond
	// fileLimit is more than any bundle of authorities takes.
	fileLimit = 1 << 20
	// swaps is how often a folder is read anew that is swapped meanwhile.
	maxReads = 5
)

// folder is a directory of files that others change. The certwatcher package of
// controller-runtime cannot take its place: it reads a certificate and a key
// alone, one after the other, so that a swapped mount can mix two moments; it
// does not see that only ca.crt has changed; it needs a good pair to start with;
// and it keeps no error that a readiness check could return.
type directory struct {
	path string
	poll time.Duration // at most this between two looks
	log  logr.Logger
	// hurry, if set, reports whether to look again after holdPoll.
	fastPoll func() bool
}

// follow looks now, after each change, and every poll, until ctx ends. The
// events only save time: on file systems that have none, polling does it all.
func (f directory) watch(ctx context.Context, look func()) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.log.Error(err, "file events are unavailable; polling", "interval", f.poll.String())
		f.pollLoop(ctx, look)
		return
	}
	defer func() { _ = watcher.Close() }()
	for ctx.Err() == nil {
		_ = watcher.Add(f.path) // before the look, so that none is missed; a folder that is not there is tried again
		look()
		f.waitForChange(ctx, watcher.Events, watcher.Errors)
	}
}

func (f directory) pollLoop(ctx context.Context, look func()) {
	for ctx.Err() == nil {
		look()
		f.waitForChange(ctx, nil, nil)
	}
}

// pause waits for a change that is over, or for the next poll.
func (f directory) waitForChange(ctx context.Context, events <-chan fsnotify.Event, faults <-chan error) {
	next := f.poll
	if f.fastPoll != nil && f.fastPoll() {
		next = min(next, pendingPoll)
	}
	timer := time.NewTimer(next)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-events:
		case <-faults: //nolint:errcheck // too many at once, say: there is something to see
		}
		timer.Reset(min(debounce, f.poll))
	}
}

// read returns the contents of files as they were at one moment, if the folder
// is a mount of Kubernetes; none for one that is not there. Of any other folder,
// what is read may not belong together.
func (f directory) read(names ...string) (map[string][]byte, error) {
	for try := 1; ; try++ {
		now := f.dataDir()
		out, err := readAll(now, names)
		if f.dataDir() == now || try == maxReads {
			return out, f.withPublicPath(err)
		}
	}
}

// data is where the files are just now.
func (f directory) dataDir() string {
	target, err := os.Readlink(filepath.Join(f.path, dataLink))
	switch {
	case err != nil:
		return f.path
	case filepath.IsAbs(target):
		return target
	}
	return filepath.Join(f.path, target)
}

// renamed names a file as people know it.
func (f directory) withPublicPath(err error) error {
	if fault, ok := errors.AsType[*FileError](err); ok {
		fault.Path = filepath.Join(f.path, filepath.Base(fault.Path))
	}
	return err
}

func readAll(dir string, names []string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range names {
		path := filepath.Join(dir, name)
		data, err := readFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, &FileError{Path: path, Err: err, Remedy: "make it readable for the server"}
		}
		out[name] = data
	}
	return out, nil
}

// readFile returns what a file holds: never nil, and at most fileLimit.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the path is a flag's
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, fileLimit+1))
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case len(data) > fileLimit:
		return nil, fmt.Errorf("more than %d bytes: %w", fileLimit, ErrNotPEM)
	}
	return data, nil
}

// withoutPath takes the path out of an error that is told beside it.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
