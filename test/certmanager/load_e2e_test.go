//go:build e2e

package certmanager

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/test/shop"
)

const (
	writeInterval  = 50 * time.Millisecond // between two writes, whatever the duration of each
	inFlight       = 16                    // concurrent writes: a slow machine gets fewer, so that they do not pile up
	handshakeEvery = 3                     // every how many writes there is a handshake
	writers        = 7                     // policies that are written in turn; not a multiple of tooMuch, so that each gets both kinds of writes
	tooMuch        = 4                     // every how many-th write must be denied
)

// routeAndPolicy are a route, and its policy that the load writes.
const routeAndPolicy = `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: load, name: route-%[1]d}
spec: {parentRefs: [{name: edge}], rules: [{matches: [{path: {value: /%[1]d}}]}]}
---
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: load, name: route-%[1]d}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-%[1]d}
  limits: {login: {rates: [{limit: 20, window: 10s}]}}
`

// prepare creates the objects of the load, while the server evaluates them.
func prepare(t *testing.T) {
	t.Helper()
	manifest := strings.Builder{}
	manifest.WriteString(shop.In("load", "load", shop.Namespaces+"---"+shop.Gateway+"---"+shop.GatewayLimits))
	for i := range writers {
		fmt.Fprintf(&manifest, routeAndPolicy, i)
	}
	got := plane.Apply(manifest.String())
	require.Zero(t, got.Code, got.Stderr)
}

// load is a steady stream of writes through the API server and of handshakes as
// for its new connections, and their failures.
type load struct {
	writes, denials, handshakes atomic.Int64

	mu                   sync.Mutex
	lost, wrong, refused []string
}

// start starts the load. The returned function ends it, once all writes in flight
// are done.
func (l *load) start(t *testing.T, s *served) (end func()) {
	t.Helper()
	config := rest.CopyConfig(plane.Config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	policies := client.Resource(schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "ratelimitpolicies"}).Namespace("load")
	ctx, cancel := context.WithCancel(t.Context())
	var pacer sync.WaitGroup
	var group errgroup.Group
	group.SetLimit(inFlight)
	pacer.Go(func() {
		tick := time.NewTicker(writeInterval)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				group.TryGo(func() error {
					l.write(policies, n)
					if n%handshakeEvery == 0 {
						l.handshake(s)
					}
					return nil
				})
			}
		}
	})
	var once sync.Once
	end = func() { once.Do(func() { cancel(); pacer.Wait(); _ = group.Wait() }) }
	t.Cleanup(end)
	return end
}

// write changes a policy. It is not canceled when the load ends.
func (l *load) write(policies dynamic.ResourceInterface, n int) {
	limit, bad := 1+n%40, n%tooMuch == 0
	if bad {
		limit = 100 + n%40
	}
	patch := fmt.Appendf(nil, `{"spec":{"limits":{"login":{"rates":[{"limit":%d,"window":"10s"}]}}}}`, limit)
	_, err := policies.Patch(context.Background(), fmt.Sprintf("route-%d", n%writers), types.MergePatchType, patch, metav1.PatchOptions{})
	denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied the request")
	l.writes.Add(1)
	switch {
	case bad && denied:
		l.denials.Add(1)
	case bad && err == nil:
		l.note(&l.wrong, fmt.Errorf("a limit of %d was allowed", limit))
	case denied:
		l.note(&l.wrong, err)
	case err != nil:
		l.note(&l.lost, err)
	}
}

func (l *load) handshake(s *served) {
	l.handshakes.Add(1)
	if _, err := s.handshake(context.Background()); err != nil {
		l.note(&l.refused, err)
	}
}

func (l *load) note(list *[]string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*list = append(*list, err.Error())
}

// awaitWrites waits until there were n more writes.
func (l *load) awaitWrites(t *testing.T, n int64) {
	t.Helper()
	want := l.writes.Load() + n
	soon(t, func() bool { return l.writes.Load() >= want }, func() string { return "the writes stand still" })
}

// requireNoFailures requires that no write was lost or had a wrong verdict so
// far.
func (l *load) requireNoFailures(t *testing.T, when string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%s: %d writes (%d of them correctly denied), %d lost, %d with a wrong verdict; %d handshakes, %d failed",
		when, l.writes.Load(), l.denials.Load(), len(l.lost), len(l.wrong), l.handshakes.Load(), len(l.refused))
	assert.Empty(t, l.lost, "writes lost")
	assert.Empty(t, l.wrong, "writes with a wrong verdict")
	assert.Empty(t, l.refused, "failed handshakes")
	assert.Positive(t, l.denials.Load())
}
