package ui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quiet is how long files must not change before they are read: editors write in steps.
const quiet = 150 * time.Millisecond

// Files follows files and directories as they are saved.
type Files struct {
	paths   []string
	watcher *fsnotify.Watcher
}

// NewFiles watches paths until Close. They must exist.
func NewFiles(paths []string) (*Files, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	f := &Files{paths: paths, watcher: watcher}
	if err := f.Refresh(); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return f, nil
}

// Close ends the watch.
func (f *Files) Close() error { return f.watcher.Close() }

// Refresh watches directories that are new. A file is watched by its directory, since
// editors replace files.
func (f *Files) Refresh() error {
	for _, path := range f.paths {
		if err := f.add(path); err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
	}
	return nil
}

func (f *Files) add(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f.watcher.Add(filepath.Dir(path)) // it may come back
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if err := f.watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	if !info.IsDir() {
		return f.watcher.Add(filepath.Dir(real))
	}
	return filepath.WalkDir(real, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // deleted in the meantime
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case file != real && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		}
		return f.watcher.Add(file)
	})
}

// Wait returns when something has changed, and nothing has for a moment.
func (f *Files) Wait(ctx context.Context) error {
	var settled <-chan time.Time
	for {
		select {
		case _, ok := <-f.watcher.Events:
			if !ok {
				return fsnotify.ErrClosed
			}
			settled = time.After(quiet)
		case _, ok := <-f.watcher.Errors: // events were lost: read all
			if !ok {
				return fsnotify.ErrClosed
			}
			settled = time.After(quiet)
		case <-settled:
			return f.Refresh()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
