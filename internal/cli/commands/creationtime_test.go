package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const undatedBase = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: app, name: g}
spec: {gatewayClassName: c, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: r}
spec: {parentRefs: [{name: g}]}
`

// securityPolicy returns a policy of a kind that does not merge on one target.
func securityPolicy(name, metadata string) string {
	return "---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {namespace: app, name: " + name + metadata + "}\n" +
		"spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}], cors: {allowOrigins: ['https://" + name + ".com']}}\n"
}

// What exists is older than what a write creates, with and without a creation time.
func TestWhatExistsIsOlder(t *testing.T) {
	for name, created := range map[string]string{
		"without a time":            "",
		"created before":            ", creationTimestamp: '2020-01-01T00:00:00Z'",
		"with a time that is ahead": ", creationTimestamp: '2090-01-01T00:00:00Z'",
	} {
		t.Run(name, func(t *testing.T) {
			base := write(t, "base.yaml", undatedBase+securityPolicy("old", created))
			got := run(t, securityPolicy("added", ""), "check", "-f", "-", "--against", base)
			assert.Equal(t, exitNegative, got.code)
			assert.Contains(t, got.stdout, "denied Conflicted: HTTPRoute app/r already has SecurityPolicy app/old, which is older")
			assert.Empty(t, got.stderr)
			got = run(t, "", "check", "--from", base, "--to", base, "--to", write(t, "added.yaml", securityPolicy("added", "")))
			assert.Equal(t, exitNegative, got.code, got.stdout)
			assert.Contains(t, got.stdout, "already has SecurityPolicy app/old, which is older")
		})
	}
}

// Two objects without a time are ordered by name, which is said where it decides.
func TestOrderByNameIsSaid(t *testing.T) {
	const said = "warning: SecurityPolicy app/a comes before SecurityPolicy app/b on HTTPRoute app/r by name: neither has a creationTimestamp"
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"neither has a time": {"", "", true},
		"one has a time":     {", creationTimestamp: '2020-01-01T00:00:00Z'", "", false},
		"both have one":      {", creationTimestamp: '2020-01-01T00:00:00Z'", ", creationTimestamp: '2020-01-01T00:00:00Z'", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, undatedBase+securityPolicy("b", c.b)+securityPolicy("a", c.a), "effective", "-f", "-", "-A")
			assert.Equal(t, c.want, assert.ObjectsAreEqual(said, got.stderr[:min(len(got.stderr), len(said))]), got.stderr)
		})
	}
}

// However many policies go by name, one warning says so.
func TestOrderByNameIsSaidOnce(t *testing.T) {
	got := run(t, undatedBase+securityPolicy("b", "")+securityPolicy("a", "")+securityPolicy("c", ""), "effective", "-f", "-", "-A")
	assert.Equal(t, 1, strings.Count(got.stderr, "by name"), got.stderr)
	assert.Contains(t, got.stderr, "on HTTPRoute app/r by name, as in 2 more pairs of policies: they have no creationTimestamp")
}
