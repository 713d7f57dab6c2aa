package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

func TestPprofIsServedUntilTheServerEnds(t *testing.T) {
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&pprofServer{address: address, log: logr.Discard()}).Start(ctx) }()
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		require.NoError(t, err)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return 0, ""
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	require.Eventually(t, func() bool { code, _ := get("/debug/pprof/"); return code == http.StatusOK }, time.Minute, 10*time.Millisecond)
	code, body := get("/debug/pprof/heap?debug=1")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "heap profile:")
	code, body = get("/debug/pprof/profile?seconds=1")
	assert.Equal(t, http.StatusOK, code)
	assert.NotEmpty(t, body)
	code, _ = get("/metrics")
	assert.Equal(t, http.StatusNotFound, code, "nothing else is served")

	listener := (&pprofServer{address: address, log: logr.Discard()}).Start(t.Context())
	assert.ErrorContains(t, listener, "listen for pprof: listen tcp "+address)
	stop()
	assert.NoError(t, <-ended)
}
