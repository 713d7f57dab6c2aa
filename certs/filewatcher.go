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
	// dataLink is the symbolic link by which the kubelet replaces all files of a
	// mount at once.
	dataLink = "..data"
	// debounce is the wait after an event: files that are copied one by one do not
	// match in between.
	debounce = 100 * time.Millisecond
	// fileLimit is the maximum size of a file, more than any CA bundle needs.
	fileLimit = 1 << 20
	// maxReads limits how often files are read again that were replaced meanwhile.
	maxReads = 5
)

// fileWatcher watches a directory of files. The certwatcher package of
// controller-runtime cannot replace it: it reads only a certificate and a key, one
// after the other, so it can mix two versions of a mount; it does not notice that
// only ca.crt changed; it needs a valid pair to start with; and it keeps no error
// for a readiness check.
type fileWatcher struct {
	path string
	poll time.Duration // maximum time between two reads
	log  logr.Logger
	// fastPoll, if set, reports whether to read again after pendingPoll.
	fastPoll func() bool
}

// watch calls onChange now, after each change, and after each poll interval, until
// ctx ends. Events only save time: file systems without them are polled.
func (w fileWatcher) watch(ctx context.Context, onChange func()) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Error(err, "file events are unavailable; polling", "interval", w.poll.String())
		w.pollLoop(ctx, onChange)
		return
	}
	defer func() { _ = watcher.Close() }()
	for ctx.Err() == nil {
		_ = watcher.Add(w.path) // before the read, so that no change is missed; retried if the directory does not exist
		onChange()
		w.waitForChange(ctx, watcher.Events, watcher.Errors)
	}
}

func (w fileWatcher) pollLoop(ctx context.Context, onChange func()) {
	for ctx.Err() == nil {
		onChange()
		w.waitForChange(ctx, nil, nil)
	}
}

// waitForChange waits until a change is complete, or for the next poll.
func (w fileWatcher) waitForChange(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error) {
	next := w.poll
	if w.fastPoll != nil && w.fastPoll() {
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
		case <-errs: //nolint:errcheck // such as an overflow: read the files
		}
		timer.Reset(min(debounce, w.poll))
	}
}

// read returns the contents of files by name, without those that do not exist. They
// are of one version if the directory is a mount of Kubernetes; else they may not
// match.
func (w fileWatcher) read(names ...string) (map[string][]byte, error) {
	for try := 1; ; try++ {
		now := w.dataDir()
		out, err := readAll(now, names)
		if w.dataDir() == now || try == maxReads {
			return out, w.withPublicPath(err)
		}
	}
}

// dataDir is the directory that has the files now.
func (w fileWatcher) dataDir() string {
	target, err := os.Readlink(filepath.Join(w.path, dataLink))
	switch {
	case err != nil:
		return w.path
	case filepath.IsAbs(target):
		return target
	}
	return filepath.Join(w.path, target)
}

// withPublicPath replaces the path in a FileError by the configured one.
func (w fileWatcher) withPublicPath(err error) error {
	if fileErr, ok := errors.AsType[*FileError](err); ok {
		fileErr.Path = filepath.Join(w.path, filepath.Base(fileErr.Path))
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
		case errors.Is(err, ErrTooLarge):
			return nil, &FileError{Path: path, Err: err, Remedy: fmt.Sprintf("provide a file of at most %d bytes", fileLimit)}
		case err != nil:
			return nil, &FileError{Path: path, Err: err, Remedy: "make it readable for the server"}
		}
		out[name] = data
	}
	return out, nil
}

// readFile returns the content of a file: never nil, and at most fileLimit bytes.
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
		return nil, ErrTooLarge
	}
	return data, nil
}

// withoutPath removes the path from err; the caller adds it.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
