package main

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

func TestProfilesAreForThisMachineAlone(t *testing.T) {
	const refused = ` is not on loopback, and profiles tell what is in memory: give 127.0.0.1:6060, and reach it by kubectl port-forward`
	for address, want := range map[string]string{
		"": "", "0": "", "127.0.0.1:6060": "", "127.8.8.8:6060": "", "[::1]:6060": "", "localhost:6060": "",
		":6060":             `--pprof-bind-address=":6060"` + refused,
		"0.0.0.0:6060":      `--pprof-bind-address="0.0.0.0:6060"` + refused,
		"[::]:6060":         `--pprof-bind-address="[::]:6060"` + refused,
		"10.0.0.1:6060":     `--pprof-bind-address="10.0.0.1:6060"` + refused,
		"example.com:6060":  `--pprof-bind-address="example.com:6060"` + refused,
		"localhost.x.y:606": `--pprof-bind-address="localhost.x.y:606"` + refused,
		"6060":              `--pprof-bind-address="6060": address 6060: missing port in address`,
	} {
		o := parsed(t, "--pprof-bind-address="+address)
		if want == "" {
			assert.NoError(t, o.check(), address)
			continue
		}
		assert.EqualError(t, o.check(), want)
	}
}

func TestProfilesAreServedUntilTheServerEnds(t *testing.T) {
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&profiling{address: address, log: logr.Discard()}).Start(ctx) }()
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
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
	assert.Equal(t, http.StatusNotFound, code, "nothing else is there")

	taken := (&profiling{address: address, log: logr.Discard()}).Start(t.Context())
	assert.ErrorContains(t, taken, "listen for whoever asks for profiles: listen tcp "+address)
	stop()
	assert.NoError(t, <-ended)
}
