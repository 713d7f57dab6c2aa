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

// The own authority and the certificates of two replicas live for seconds, and are replaced
// while writes arrive.
func TestOwnAuthorityRotationLosesNoWrite(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "rotation")
	deleteAuthority := func() {
		succeed(t, c.Kubectl("-n", server.Namespace, "delete", "--ignore-not-found", "secret/overrule-ca"))
	}
	deleteAuthority()
	t.Cleanup(deleteAuthority) // after the replicas have ended
	r := newServiceProxy(t)
	first := c.boot(t, r, "--ca-validity=45s", "--cert-validity=15s")
	second := c.boot(t, r, "--ca-validity=45s", "--cert-validity=15s")
	r.setBackends(first.Webhook, second.Webhook)
	c.awaitCalled(t)
	w := startWriters(t, g, 2)
	old, both := c.bundle(t), false
	soon(t, func() bool {
		require.NoError(t, c.dialVerified(t, first))
		require.NoError(t, c.dialVerified(t, second))
		now := c.bundle(t)
		both = both || strings.Contains(now, old) && now != old
		return !strings.Contains(now, old)
	}, "the old authority is still trusted")
	w.awaitMore(t, 12)
	w.end()
	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
	assert.True(t, both, "the authorities overlap")
}
