//go:build integration

package cache

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// TestEtcdIsRestored restores etcd to an earlier state while the cache has open watches.
// Their connections stay open until the API server is back, as with a load balancer that
// switches to another control plane. So the watches continue where they were.
func TestEtcdIsRestored(t *testing.T) {
	env.Long(t)
	e := env.Start(t)
	must(t, e.Apply(things, "--server-side"))
	proxy, cfg := newFaultyProxy(t, e.Config)
	w := startWatcher(t, cfg)
	w.ready(t)
	soon(t, func() bool { return w.has(authRef) }, "it does not have the policy")

	require.NoError(t, e.SaveEtcd(t.Context()))
	pad(t, e.Etcd(), 2000)
	soon(t, func() bool { return e.Kubectl("delete", "authpolicy", "-n", "app", "auth").Code == 0 }, "the policy cannot be deleted")
	must(t, e.Kubectl("create", "namespace", "later"))
	later := appRef
	later.Name = "later"
	soon(t, func() bool { return !w.has(authRef) && w.has(later) }, "it does not follow")
	before, _ := w.store.View()

	reset := proxy.hold()
	require.NoError(t, e.RestoreEtcd(t.Context()))
	require.Zero(t, w.Restores())
	reset()
	soon(t, func() bool { return w.Restores() > 0 && w.StaleError() == nil }, "it does not notice")
	assert.True(t, w.has(authRef), "the policy is stored")
	assert.False(t, w.has(later), "the namespace is not stored")
	must(t, e.Kubectl("create", "namespace", "after"))
	after := appRef
	after.Name = "after"
	soon(t, func() bool { return w.has(after) }, "its watches do not deliver")
	now, _ := w.store.View()
	assert.Less(t, now.Version(), before.Version())
	assert.Equal(t, uint64(1), w.Restores())
}

// pad has etcd store so many revisions: more than an API server writes when it starts.
func pad(t *testing.T, etcd string, revisions int) {
	t.Helper()
	for i := range revisions {
		body := fmt.Appendf(nil, `{"key": "cGFk", "value": "%04d"}`, i)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, etcd+"/v3/kv/put", bytes.NewReader(body))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
}
