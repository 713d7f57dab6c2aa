package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// poolVariable names the folder of the pool: it has a folder for each control plane,
// which is locked while a test uses it, and empty until the first one needs it.
const poolVariable = "OVERRULE_PLANES"

// Main runs the tests of a package with a pool of its own, unless there is one, and
// exits. A package needs it if it starts several control planes.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main without the exit: it returns the exit code.
func Run(m *testing.M) int { return WithPool(runtime.NumCPU(), m.Run) }

// WithPool calls run while there is a pool of at most size control planes, and stops
// them. It returns the code that run returned, or 1 if there is a problem.
func WithPool(size int, run func() int) int {
	if os.Getenv(poolVariable) != "" {
		return run()
	}
	dir, err := os.MkdirTemp("", "overrule-planes-")
	for i := range size {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700))
	}
	if err := errors.Join(err, os.Setenv(poolVariable, dir)); err != nil {
		fmt.Fprintln(os.Stderr, "make a pool of control planes:", err)
		return 1
	}
	code := run()
	if err := errors.Join(stopPool(dir), os.Unsetenv(poolVariable), os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, "stop the control planes:", err)
		return 1
	}
	return code
}

func stopPool(dir string) error {
	if booted, err := filepath.Glob(filepath.Join(dir, "*", "*.arguments")); err != nil || len(booted) == 0 {
		return err // without the programs, perhaps
	}
	found, err := findAssets(context.Background())
	if err != nil {
		return err
	}
	folders, err := os.ReadDir(dir)
	errs := []error{err}
	for _, folder := range folders {
		errs = append(errs, plane{filepath.Join(dir, folder.Name()), found}.stop())
	}
	return errors.Join(errs...)
}

// poolable reports whether a control plane of the pool meets the options. A test that
// has one gets another one outside the pool: two such tests would wait for each other.
func (o options) poolable() bool {
	return os.Getenv(poolVariable) != "" && len(o.flags) == 0 && !holders.has(o.test)
}

// lease is the exclusive use of a control plane of the pool.
type lease struct {
	folder *os.File
	test   string
}

// takeLease waits for a control plane that is not used. Those that are booted come
// first.
func takeLease(ctx context.Context, o options) (*lease, error) {
	holders.add(o.test, 1)
	for {
		folders, err := filepath.Glob(filepath.Join(os.Getenv(poolVariable), "*"))
		if err == nil && len(folders) == 0 {
			err = fmt.Errorf("%w in %s, the folder of %s", ErrNoControlPlane, os.Getenv(poolVariable), poolVariable)
		}
		for _, booted := range []bool{true, false} {
			for _, folder := range folders {
				if _, missing := os.Stat(filepath.Join(folder, savedFile)); err != nil || booted != (missing == nil) {
					continue
				}
				var f *os.File
				if f, err = os.Open(folder); err != nil {
					break
				}
				if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
					return &lease{f, o.test}, nil
				}
				_ = f.Close()
			}
		}
		select {
		case <-ctx.Done():
			err = errors.Join(err, context.Cause(ctx))
		case <-time.After(Poll):
		}
		if err != nil {
			holders.add(o.test, -1)
			return nil, fmt.Errorf("wait for a control plane: %w", err)
		}
	}
}

// release ends the lease, as the end of this process would: the next test cleans up.
func (l *lease) release() error {
	holders.add(l.test, -1)
	return l.folder.Close()
}

// holders has the tests of this process that have a control plane of the pool; "" is
// the package.
var holders = holding{tests: make(map[string]int)}

type holding struct {
	mu    sync.Mutex
	tests map[string]int
}

func (h *holding) add(test string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tests[test] += n
}

// has reports whether a test or one that runs it holds a control plane.
func (h *holding) has(test string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for holder, n := range h.tests {
		if n > 0 && (holder == "" || strings.HasPrefix(test+"/", holder+"/")) {
			return true
		}
	}
	return false
}
