package server

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
)

func TestReadyzReportsFailingChecks(t *testing.T) {
	var caches, certificate error
	var lines []string
	h := &probeServer{last: "starting", log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
		checks: map[string]healthz.Checker{
			"caches":      func(*http.Request) error { return caches },
			"certificate": func(*http.Request) error { return certificate },
		}}
	get := func() (int, string) {
		w := httptest.NewRecorder()
		h.ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return w.Code, w.Body.String()
	}

	caches, certificate = errors.New("not listed yet: [gateways]"), certs.ErrNotReady
	code, text := get()
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "[-] caches: not listed yet: [gateways]\n[-] certificate: "+certs.ErrNotReady.Error()+"\n", text)
	get()
	require.Len(t, lines, 1, "only changes are logged")
	assert.Contains(t, lines[0], `"msg"="not ready" "checks"=["[-] caches: not listed yet: [gateways]"`)

	caches = nil
	code, text = get()
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "[+] caches\n[-] certificate: "+certs.ErrNotReady.Error()+"\n", text)

	certificate = nil
	code, text = get()
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+] caches\n[+] certificate\n", text)
	require.Len(t, lines, 3)
	assert.Contains(t, lines[2], `"msg"="ready"`)

	note := errors.New("tls.crt: expires soon")
	h.warnings = map[string]func() error{"certificate": func() error { return note }}
	code, text = get()
	assert.Equal(t, http.StatusOK, code, "warnings do not make it unready")
	assert.Equal(t, "[+] caches\n[+] certificate\n[!] certificate: tls.crt: expires soon\n", text)
	note = nil
	_, text = get()
	assert.Equal(t, "[+] caches\n[+] certificate\n", text)
}

// A server without one of the checks gets writes that it cannot evaluate.
func TestReadinessChecks(t *testing.T) {
	got := readinessChecks(snapshot.New(), certs.NewFiles(t.TempDir(), "", logr.Discard()), nil, nil)
	assert.ElementsMatch(t, []string{"caches", "certificate", "cache-staleness", "shutdown"}, slices.Collect(maps.Keys(got)))
}

func TestReadyMetricMatchesReadyz(t *testing.T) {
	var logged int
	var certificate, watches error
	h := &probeServer{last: "starting", log: funcr.New(func(string, string) { logged++ }, funcr.Options{}),
		checks: map[string]healthz.Checker{
			"caches":          func(*http.Request) error { return nil },
			"certificate":     func(*http.Request) error { return certificate },
			"cache-staleness": func(*http.Request) error { return watches },
		},
		warnings: map[string]func() error{"kinds": func() error { return errors.New("a kind is invalid") }}}
	gauge := h.gauge()
	h.checks["callers"] = func(r *http.Request) error { return r.Context().Err() } // checks may be added later, and may use their request

	assert.InDelta(t, 1, testutil.ToFloat64(gauge), 0, "warnings do not count")
	certificate = certs.ErrNotReady
	assert.InDelta(t, 0, testutil.ToFloat64(gauge), 0, "the cluster was read, and every call fails")
	certificate, watches = nil, errors.New("gateways: no watch for 11s")
	assert.InDelta(t, 0, testutil.ToFloat64(gauge), 0)
	watches = nil
	assert.InDelta(t, 1, testutil.ToFloat64(gauge), 0)
	assert.Zero(t, logged, "scrapes are not logged")

	problems, err := testutil.CollectAndLint(gauge)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestProbesAreServedUntilTheServerEnds(t *testing.T) {
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	h := &probeServer{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), log: funcr.New(func(string, string) {}, funcr.Options{})}
	process.Run(t, h.Start)
	get := func() (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.address+"/healthz", nil)
		require.NoError(t, err)
		response, err := (&http.Client{}).Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	require.Eventually(t, func() bool { got, err := get(); return err == nil && got == "ok\n" }, time.Minute, time.Millisecond)

	second := &probeServer{address: h.address, log: h.log}
	assert.ErrorContains(t, second.Start(t.Context()), "listen for probes: listen tcp "+h.address)

	assert.False(t, h.NeedLeaderElection())
}

func TestProbesAreServedUntilTheLastCallIsAnswered(t *testing.T) {
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Add(1)
	ctx, shutdown := context.WithCancel(t.Context())
	h := &probeServer{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), serving: &serving, checks: map[string]healthz.Checker{
		"shutdown": func(*http.Request) error { return ctx.Err() },
	}}
	ended := make(chan error, 1)
	go func() { ended <- h.Start(ctx) }()
	get := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.address+"/readyz", nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	require.Eventually(t, func() bool { return get() == http.StatusOK }, time.Minute, time.Millisecond)

	shutdown()
	for range 10 {
		require.Equal(t, http.StatusServiceUnavailable, get(), "it responds that it is not ready")
	}
	serving.Done()
	require.NoError(t, <-ended)
	assert.Zero(t, get())
}
