//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failurePolicies returns those of the mutating webhook and of the validating one.
func (c *cluster) failurePolicies(t *testing.T) string {
	t.Helper()
	var out []string
	for _, configuration := range []string{configurations[1], configurations[0]} {
		got := c.Kubectl("get", configuration, "-o", "jsonpath={.webhooks[0].failurePolicy}", "--ignore-not-found")
		succeed(t, got)
		out = append(out, got.Stdout)
	}
	return strings.Join(out, " ")
}

// A firewall between the API server and a new installation must not stop all writes.
// Once the API server was reached, neither an outage nor a new leader leaves a gap.
func TestFailIsRegisteredOnceReached(t *testing.T) {
	c := shared(t)
	c.removeWebhooks(t)
	r := newServiceProxy(t)
	s := c.boot(t, r)
	const says = "[!] calls: the API server does not reach the webhooks: "
	soon(t, func() bool { return strings.Contains(httpGet(t, s.Health+"/readyz"), says) }, "it is not reported")
	assert.Equal(t, "Ignore Ignore", c.failurePolicies(t))
	assert.Zero(t, metric(t, s, "overrule_last_review_timestamp_seconds"))

	r.setBackends(s.Webhook)
	soon(t, func() bool { return c.failurePolicies(t) == "Fail Fail" }, "Fail is not registered")
	soon(t, func() bool { return !strings.Contains(httpGet(t, s.Health+"/readyz"), says) }, "it is still reported")
	assert.NotZero(t, metric(t, s, "overrule_last_review_timestamp_seconds"))

	require.NoError(t, s.Stop())
	second := c.boot(t, newServiceProxy(t)) // which does not lead to it
	soon(t, func() bool { return strings.Contains(httpGet(t, second.Health+"/readyz"), says) }, "it is not reported")
	assert.Equal(t, "Fail Fail", c.failurePolicies(t))
}
