//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

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

func (c *cluster) bootFileReplica(t *testing.T, r *serviceProxy, dir string) *fileReplica {
	t.Helper()
	return c.bootFileReplicaWith(t, r, dir, nil)
}

// bootFileReplicaWith calls started as soon as the process runs.
func (c *cluster) bootFileReplicaWith(t *testing.T, r *serviceProxy, dir string, started func(*server.Server)) *fileReplica {
	t.Helper()
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Started: started, Args: []string{
		"--log-level=debug", "--drain-period=2s", r.flag(), "--certificates=files", "--cert-dir=" + dir,
	}})
	t.Cleanup(func() { requireNoPanic(t, s) })
	return &fileReplica{s, dir}
}

// logCount counts the lines of a replica's log that contain a text.
func (m *fileReplica) logCount(text string) int { return strings.Count(m.Log(), text) }

const holdsMessage = `"msg":"new certificate is pending"`

// awaitWithHandshakes waits for a condition and meanwhile completes TLS
// handshakes, with the CA bundle that the API server had just before.
func (c *cluster) awaitWithHandshakes(t *testing.T, until func() bool, replicas ...*fileReplica) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !until(); time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "the condition is not met")
		for _, m := range replicas {
			require.NoError(t, c.dialVerified(t, m.Server))
		}
	}
}

// newAuthorityFiles returns files of a new certificate authority, with a new
// serial.
func newAuthorityFiles(t *testing.T, round int64) (files map[string]string, served int64) {
	t.Helper()
	by := newIssuer(t)
	by.issued = 100 * round
	return by.serving(t), by.issued
}

// Replicas get new files at different times, and the leader may be new.
func TestNewFileAuthorityLosesNoWrite(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "wholly-new")
	r, dirs := newServiceProxy(t), [2]string{t.TempDir(), t.TempDir()}
	files, _ := newAuthorityFiles(t, 1)
	bundles := []string{files["ca.crt"]}
	for _, dir := range dirs {
		mount(t, dir, files)
	}
	leads := c.bootFileReplica(t, r, dirs[0])
	soon(t, func() bool { return c.leader(t) != "" && leads.logCount("webhook configurations written") > 0 }, "no replica leads")
	follows := c.bootFileReplica(t, r, dirs[1])
	r.setBackends(leads.Webhook, follows.Webhook)
	c.awaitCalled(t)
	w := startWriters(t, g, 4)

	for round, order := range [][2]*fileReplica{{leads, follows}, {follows, leads}} {
		files, served := newAuthorityFiles(t, int64(round)+2)
		bundles = append(bundles, files["ca.crt"])
		before := order[0].logCount(holdsMessage)
		mount(t, order[0].dir, files)
		c.awaitWithHandshakes(t, func() bool { return order[0].logCount(holdsMessage) > before }, leads, follows)
		at := time.Now()
		c.awaitWithHandshakes(t, func() bool { return time.Since(at) > 3*time.Second }, leads, follows)
		mount(t, order[1].dir, files)
		c.awaitWithHandshakes(t, func() bool {
			return serial(t, leads.Webhook) == served && serial(t, follows.Webhook) == served
		}, leads, follows)
	}

	files, served := newAuthorityFiles(t, 4)
	bundles = append(bundles, files["ca.crt"])
	mount(t, leads.dir, files)
	c.awaitWithHandshakes(t, func() bool { return serial(t, leads.Webhook) == served }, leads, follows)
	r.setBackends(follows.Webhook)
	led := c.leader(t)
	require.NoError(t, leads.Stop())
	c.awaitWithHandshakes(t, func() bool { return c.leader(t) != led && follows.logCount("webhook configurations written") > 0 }, follows)
	again := c.bootFileReplica(t, r, leads.dir)
	assert.Equal(t, served, serial(t, again.Webhook), "it has no other certificate")
	r.setBackends(again.Webhook, follows.Webhook)
	at := time.Now()
	c.awaitWithHandshakes(t, func() bool { return time.Since(at) > 3*time.Second }, again, follows)
	mount(t, follows.dir, files)
	c.awaitWithHandshakes(t, func() bool { return serial(t, follows.Webhook) == served }, again, follows)

	files, served = newAuthorityFiles(t, 5)
	bundles = append(bundles, files["ca.crt"])
	r.setBackends(follows.Webhook)
	require.NoError(t, again.Stop())
	mount(t, again.dir, files)
	// It is ready once the leader has the files, too.
	starts := c.bootFileReplicaWith(t, r, again.dir, func(s *server.Server) {
		soon(t, func() bool { return strings.Contains(s.Log(), holdsMessage) }, "it does not keep a certificate back that is not trusted")
		mount(t, follows.dir, files)
	})
	assert.Equal(t, served, serial(t, starts.Webhook))
	assert.Positive(t, starts.logCount(holdsMessage), starts.Log())
	r.setBackends(starts.Webhook, follows.Webhook)
	c.awaitWithHandshakes(t, func() bool { return serial(t, follows.Webhook) == served }, starts, follows)

	w.end()
	// A single replica has its authority trusted at once.
	require.NoError(t, follows.Stop())
	require.NoError(t, starts.Stop())
	files, served = newAuthorityFiles(t, 6)
	mount(t, starts.dir, files)
	alone := c.bootFileReplica(t, r, starts.dir)
	assert.Equal(t, served, serial(t, alone.Webhook))
	assert.Contains(t, c.bundle(t), files["ca.crt"])

	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
	assert.Greater(t, w.writes.Load(), int64(50))
	for i, ca := range bundles {
		assert.Contains(t, c.bundle(t), ca, "authority %d is trusted for another hour", i+1)
	}
	for _, m := range []*fileReplica{leads, follows, again, starts, alone} {
		assert.Zero(t, m.logCount("webhook calls may fail"), m.Log())
	}
	t.Logf("%d writes, %d lost", w.writes.Load(), len(w.failures()))
}
