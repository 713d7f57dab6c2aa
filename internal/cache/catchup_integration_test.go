//go:build integration

package cache

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/env"
)

// heldWatches holds back what watches receive.
type heldWatches struct {
	next http.RoundTripper
	// lists receives the resource of each list of metadata, once it has arrived.
	lists chan string

	mu   sync.Mutex
	open chan struct{} // closed while nothing is held back
}

// holdWatches returns a configuration whose watches can be held back.
func holdWatches(cfg *rest.Config) (*heldWatches, *rest.Config) {
	h := &heldWatches{lists: make(chan string, 1000), open: make(chan struct{})}
	close(h.open)
	out := rest.CopyConfig(cfg)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		h.next = next
		return h
	})
	return h, out
}

func (h *heldWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := h.next.RoundTrip(r)
	switch {
	case err != nil:
	case r.URL.Query().Get("watch") != "":
		response.Body = &heldBody{ReadCloser: response.Body, held: h, closed: make(chan struct{})}
	case strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList"):
		h.lists <- r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	}
	return response, err
}

func (h *heldWatches) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = make(chan struct{})
}

func (h *heldWatches) release() { close(h.gate()) }

func (h *heldWatches) gate() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

type heldBody struct {
	io.ReadCloser
	held   *heldWatches
	close  sync.Once
	closed chan struct{}
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.held.gate():
	case <-b.closed:
	}
	return n, err
}

func (b *heldBody) Close() error {
	b.close.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// goCatchUp calls CatchUp in the background.
func (r *running) goCatchUp(t *testing.T, pending ...api.Ref) (end chan []snapshot.Observation) {
	end = make(chan []snapshot.Observation, 1)
	go func() {
		got, err := r.CatchUp(t.Context(), pending)
		assert.NoError(t, err)
		end <- got
	}()
	return end
}

// assertBlocked asserts that CatchUp does not return within a time that it does not need.
func assertBlocked(t *testing.T, end <-chan []snapshot.Observation, msg string) {
	t.Helper()
	select {
	case <-end:
		t.Fatal(msg)
	case <-time.After(time.Second / 4):
	}
}

func catchesUp(t *testing.T, e *env.Env) {
	held, cfg := holdWatches(e.Config)
	r := startWatcher(t, cfg)
	r.ready(t)
	got, err := r.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, got)
	for len(held.lists) > 0 {
		<-held.lists
	}

	held.hold()
	must(t, e.Kubectl("patch", "httproute", "web", "-n", "app", "--type=merge", "-p", `{"spec":{"hostnames":["late.example.com"]}}`))
	must(t, e.Kubectl("delete", "authpolicy", "auth", "-n", "app"))
	must(t, e.Kubectl("create", "namespace", "late"))
	must(t, e.Kubectl("delete", "grpcroute", "rpc", "-n", "app"))
	absent := webRef
	absent.Name = "absent"
	end := r.goCatchUp(t, webRef, authRef, absent, api.Ref{Group: "example.com", Kind: "Unknown", Name: "x"})
	for resource := range held.lists {
		if resource == "httproutes" {
			break
		}
	}
	assertBlocked(t, end, "the cache is behind the list")
	v, _ := r.store.View()
	require.NotNil(t, v.Get(authRef), "watches are held back")

	held.release()
	got = <-end
	v, _ = r.store.View()
	assert.Equal(t, "late.example.com", v.Get(webRef).(*gateway.Route).Hostnames[0])
	assert.Nil(t, v.Get(authRef))
	assert.Nil(t, v.Get(rpcRef))
	assert.NotNil(t, v.Get(api.Ref{Kind: "Namespace", Name: "late"}))
	require.Len(t, got, 3)
	assert.Equal(t, webRef, got[0].Ref)
	assert.NotEmpty(t, got[0].UID)
	assert.NotEmpty(t, got[0].Version)
	assert.Equal(t, []snapshot.Observation{{Ref: authRef, Deleted: true}, {Ref: absent, Deleted: true}}, got[1:])
	must(t, e.Apply(things, "--server-side", "--force-conflicts"))
}
