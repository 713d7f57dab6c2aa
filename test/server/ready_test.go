package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/process"
)

// running returns a server whose process is a shell script.
func running(t *testing.T, script string) *Server {
	t.Helper()
	p, err := process.Start(process.Spec{Path: "/bin/sh", Args: []string{"-c", script}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Signal(os.Kill) })
	return &Server{Process: p}
}

func TestWaitUntilReady(t *testing.T) {
	var asked atomic.Int32
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(health.Close)
	s := running(t, "exec sleep 600")
	s.Health = strings.TrimPrefix(health.URL, "http://")

	require.NoError(t, s.waitUntilReady(t.Context(), time.Millisecond))
	assert.EqualValues(t, 3, asked.Load())
	assert.Positive(t, s.ReadyAfter)
	assert.LessOrEqual(t, s.ReadyAfter, s.Age())
}

func TestAServerThatEndsIsNotReady(t *testing.T) {
	s := running(t, "echo unknown flag; exit 2")
	s.Health = "127.0.0.1:1"
	<-s.Done()

	err := s.waitUntilReady(t.Context(), 0)

	require.ErrorIs(t, err, ErrNotReady)
	assert.EqualError(t, err, "the server is not ready: condition not met: exited with code 2; log:\nunknown flag\n")
}

func TestWaitEndsWithContext(t *testing.T) {
	s := running(t, "exec sleep 600")
	s.Health = "127.0.0.1:1"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, s.waitUntilReady(ctx, 0), context.Canceled)
}

func TestMissingBinary(t *testing.T) {
	root := t.TempDir()
	_, err := built(root)
	require.ErrorIs(t, err, ErrNoBinary)
	assert.ErrorContains(t, err, filepath.Join(root, "bin", "overrule")+` is not there: run "make build"`)
}
