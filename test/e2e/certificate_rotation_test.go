//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// fileReplica is a replica with its own certificate files, behind a proxy.
type fileReplica struct {
	*server.Server
	dir string
}

// bootFileReplica calls started, if it is set, as soon as the process runs.
func (c *cluster) bootFileReplica(t *testing.T, r *serviceProxy, dir string, started func(*server.Server)) *fileReplica {
	t.Helper()
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Started: started, Args: []string{
		"--log-level=debug", "--drain-period=2s", r.flag(), "--certificates=files", "--cert-dir=" + dir,
	}})
	t.Cleanup(func() { requireNoPanic(t, s) })
	return &fileReplica{s, dir}
}

const pendingMessage = `"msg":"new certificate is pending"`

// holds reports whether a replica keeps a certificate back until it is trusted.
func holds(s *server.Server) bool { return strings.Contains(s.Log(), pendingMessage) }

// A new authority arrives at the leader first, at the follower first, and at a
// replica that starts: no replica serves a certificate that is not trusted yet,
// and each serves its own in the end. The certs package has all orders.
func TestNewFileAuthorityLosesNoWrite(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "wholly-new")
	r, dirs := newServiceProxy(t), [2]string{t.TempDir(), t.TempDir()}
	var bundles []string
	var served int64
	authority := func() map[string]string {
		by := newIssuer(t)
		by.issued = 100 * int64(len(bundles)+1)
		files := by.serving(t)
		bundles, served = append(bundles, files["ca.crt"]), by.issued
		return files
	}
	files := authority()
	mount(t, dirs[0], files)
	mount(t, dirs[1], files)
	leads := c.bootFileReplica(t, r, dirs[0], nil)
	soon(t, func() bool { return strings.Contains(leads.Log(), "webhook configurations written") }, "no replica leads")
	follows := c.bootFileReplica(t, r, dirs[1], nil)
	r.setBackends(leads.Webhook, follows.Webhook)
	c.awaitCalled(t)
	w := startWriters(t, g, 2)
	// awaitServed waits until replicas serve the new certificate. All that they
	// serve until then is trusted.
	awaitServed := func(replicas ...*fileReplica) {
		t.Helper()
		soon(t, func() bool {
			done := true
			for _, m := range replicas {
				require.NoError(t, c.dialVerified(t, m.Server))
				done = done && serial(t, m.Webhook) == served
			}
			return done
		}, "the new certificate is not served")
		w.awaitMore(t, 12)
	}

	files = authority()
	mount(t, follows.dir, files)
	soon(t, func() bool { return holds(follows.Server) }, "it does not keep a certificate back that is not trusted")
	assert.NotEqual(t, served, serial(t, follows.Webhook))
	w.awaitMore(t, 12)
	mount(t, leads.dir, files)
	awaitServed(leads, follows)

	files = authority()
	mount(t, leads.dir, files)
	awaitServed(leads)
	mount(t, follows.dir, files)
	awaitServed(leads, follows)

	r.setBackends(leads.Webhook)
	require.NoError(t, follows.Stop())
	files = authority()
	mount(t, follows.dir, files)
	// It is ready once the leader has the files, too.
	starts := c.bootFileReplica(t, r, follows.dir, func(s *server.Server) {
		soon(t, func() bool { return holds(s) }, "it does not keep a certificate back that is not trusted")
		mount(t, leads.dir, files)
	})
	r.setBackends(leads.Webhook, starts.Webhook)
	awaitServed(leads, starts)

	w.end()
	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
	for i, ca := range bundles {
		assert.Contains(t, c.bundle(t), ca, "authority %d is trusted for another hour", i+1)
	}
	for _, m := range []*fileReplica{leads, follows, starts} {
		assert.NotContains(t, m.Log(), "webhook calls may fail")
	}
}
