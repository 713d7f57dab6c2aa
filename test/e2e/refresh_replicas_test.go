//go:build e2e

package e2e

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// TestRefreshContinuesAfterLeaderChange has two replicas with --refresh, and kills the
// leader during a refresh. The other replica completes it: every route is correct in the
// end, and was written once, or twice if its first write was not observed.
func TestRefreshContinuesAfterLeaderChange(t *testing.T) {
	env.Long(t)
	const routes, middle = 300, 100
	c := shared(t)
	c.grantRefresh(t, true)
	g := c.prepare(t, "refreshed")
	// Waits until idle: the writes of a policy count as refresh writes, too.
	t.Cleanup(func() { c.Kubectl("delete", "namespace", g.app, g.infra, "--timeout=2m") })
	succeed(t, g.apply(manyRoutes(routes), "--server-side"))
	service := newServiceProxy(t)
	first := c.bootRefreshing(t, service)
	service.setBackends(first.Webhook)
	c.awaitCalled(t)
	second := c.bootRefreshing(t, service)
	service.setBackends(first.Webhook, second.Webhook)

	seen := g.watchRoutes(t)
	succeed(t, g.apply(gatewayAuth))
	env.Soon(t, func() bool { return seen.count() >= middle }, "the leader does not refresh")
	assert.Zero(t, gauge(t, second, refreshWrites), "the other one writes, too")
	service.setBackends(second.Webhook) // as a Service does
	require.NoError(t, first.Signal(syscall.SIGKILL))

	env.Soon(t, func() bool {
		correct := 0
		for _, has := range g.annotations(t, "httproutes") {
			if strings.Contains(has[effectivePolicy], g.infra+"/gw-auth") && has[affected] == "true" {
				correct++
			}
		}
		return correct == routes+1 // toystore is a route, too
	}, "the other one does not continue")
	assert.LessOrEqual(t, seen.most(), 2, "a route was written repeatedly")
	assert.Positive(t, gauge(t, second, refreshWrites))
	assert.LessOrEqual(t, gauge(t, second, refreshWrites), float64(routes-middle+20), "completed writes were repeated")
	assert.Zero(t, gauge(t, second, refreshFailures))
}

// bootRefreshing runs a replica with --refresh behind a Service.
func (c *cluster) bootRefreshing(t *testing.T, service *serviceProxy) *server.Server {
	t.Helper()
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: []string{
		"--log-level=debug", "--drain-period=1s", "--webhook-timeout=5s", "--lease-duration=15s", "--refresh", "--refresh-qps=50", service.flag(),
	}})
	t.Cleanup(func() { requireNoPanic(t, s) })
	return s
}

// writeLog counts the writes of objects that a watch observes, by name.
type writeLog struct {
	mu     sync.Mutex
	stored map[string][]string
}

// watchRoutes counts each stored write of a route of the application until the
// test ends.
func (g testNamespaces) watchRoutes(t *testing.T) *writeLog {
	t.Helper()
	client, err := dynamic.NewForConfig(g.c.Config)
	require.NoError(t, err)
	routes := client.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}).Namespace(g.app)
	list, err := routes.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	w, err := routes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	v := &writeLog{stored: make(map[string][]string)}
	go func() {
		for event := range w.ResultChan() {
			if o, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == apiwatch.Modified {
				v.mu.Lock()
				v.stored[o.GetName()] = append(v.stored[o.GetName()], o.GetResourceVersion())
				v.mu.Unlock()
			}
		}
	}()
	return v
}

// count returns how many objects were written.
func (v *writeLog) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.stored)
}

// most returns the number of writes of the object with the most.
func (v *writeLog) most() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := 0
	for _, all := range v.stored {
		out = max(out, len(all))
	}
	return out
}
