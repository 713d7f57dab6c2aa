package certs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startFiles runs m until the test ends.
func startFiles(t *testing.T, m *testFiles) {
	t.Helper()
	m.opts.Log = logr.Discard()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
}

func (m *testFiles) eventuallyServes(files map[string][]byte) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		cert, err := m.GetCertificate(nil)
		return err == nil && string(encodeCertificates(cert.Leaf.Raw)) == string(files[CertFile])
	}, time.Minute, time.Millisecond)
}

func TestReplacedFilesAreReloadedAfterAnEvent(t *testing.T) {
	m, ca := newTestFiles(t, func(o *FilesOptions) { o.PollInterval = time.Hour }), newTestSigner(t, epoch)
	first, second := issueFiles(t, ca, 0), issueFiles(t, ca, 1)
	m.swap(first)
	startFiles(t, m)
	m.eventuallyServes(first)
	m.swap(second)
	m.eventuallyServes(second)
}

func TestMissingDirectoryIsPolled(t *testing.T) {
	m, ca := newTestFiles(t, func(o *FilesOptions) { o.PollInterval = 5 * time.Millisecond }), newTestSigner(t, epoch)
	startFiles(t, m)
	require.Eventually(t, func() bool { return m.Healthy(nil) != nil && m.lastErr.err.Load() != nil }, time.Minute, time.Millisecond)
	first := issueFiles(t, ca, 0)
	m.swap(first)
	m.eventuallyServes(first)
}

func TestDirectoryIsPolledWithoutEvents(t *testing.T) {
	m, ca := newTestFiles(t, nil), newTestSigner(t, epoch)
	first, second := issueFiles(t, ca, 0), issueFiles(t, ca, 1)
	m.swap(first)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		fileWatcher{path: m.dir, poll: time.Millisecond, log: logr.Discard()}.pollLoop(ctx, m.reloadNow)
	}()
	m.eventuallyServes(first)
	m.swap(second)
	m.eventuallyServes(second)
	cancel()
	<-done
}

// At any time, the key matches its certificate, and the bundle verifies it.
func TestFilesReplacedDuringAReadAreConsistent(t *testing.T) {
	m := newTestFiles(t, nil)
	pairs := []map[string][]byte{issueFiles(t, newTestSigner(t, epoch), 0), issueFiles(t, newTestSigner(t, epoch), 0)}
	m.swap(pairs[0])
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			m.swap(pairs[i%2])
			// Atomically, like a kubelet.
			_ = os.RemoveAll(filepath.Join(m.dir, "..data_"+strings.Repeat("i", m.swaps-1)))
		}
	}()
	for swapping := true; swapping; {
		select {
		case <-done:
			swapping = false
		default:
		}
		files, err := m.watcher.read(CertFile, KeyFile, CAFile)
		require.NoError(t, err)
		p, err := readCertPair(files)
		require.NoError(t, err)
		require.NoError(t, p.validate(servedName, epoch))
	}
}

func TestAbsoluteLinkIsFollowed(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(data, CAFile), []byte("x"), 0o600))
	require.NoError(t, os.Symlink(data, filepath.Join(dir, dataLink)))
	files, err := fileWatcher{path: dir}.read(CAFile, KeyFile)
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{CAFile: []byte("x")}, files)
}
