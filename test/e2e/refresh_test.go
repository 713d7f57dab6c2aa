//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// grantRefresh grants the rights to refresh, with or without those for policy
// kinds.
func (c *cluster) grantRefresh(t *testing.T, kinds bool) {
	t.Helper()
	server.LetRefresh(t, c.Env, kinds)
}

// manyRoutes returns n numbered copies of toystore.
func manyRoutes(n int) string {
	var out strings.Builder
	for i := range n {
		out.WriteString("---" + strings.Replace(toystore, "name: toystore", fmt.Sprintf("name: r%04d", i), 1))
	}
	return out.String()
}

// refreshes returns the number of writes of the refresh that had a result.
func refreshes(t *testing.T, s *server.Server, result string) float64 {
	t.Helper()
	return metric(t, s, "controller_runtime_reconcile_total", `controller="overrule-annotations"`, `result="`+result+`"`)
}

// Results of the refresh.
const (
	refreshWritten = "requeue_after"
	refreshFailed  = "error"
)

// annotations returns Overrule's annotations on the routes of the application, by
// name.
func (g testNamespaces) annotations(t *testing.T, kind string) map[string]map[string]string {
	t.Helper()
	got := g.kubectl("get", kind, "-o", "json")
	succeed(t, got)
	var list struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list))
	out := make(map[string]map[string]string)
	for _, o := range list.Items {
		out[o.Metadata.Name] = map[string]string{}
		for name, text := range o.Metadata.Annotations {
			if strings.HasPrefix(name, "overrule.dev/") {
				out[o.Metadata.Name][name] = text
			}
		}
	}
	return out
}

const (
	effectivePolicy = "overrule.dev/effective-policy"
	affected        = "overrule.dev/AuthPolicyAffected"
	condition       = `.status.conditions[?(@.type=="overrule.dev/AuthPolicyAffected")]`
)

func TestAnnotationsAreRefreshed(t *testing.T) {
	c := shared(t)
	c.grantRefresh(t, true)
	g := c.prepare(t, "refresh")
	s := c.start(t, "--refresh", "--refresh-qps=100")
	succeed(t, g.apply(manyRoutes(20)))
	succeed(t, g.apply(routeAuth))
	gw := func(field string) string {
		got := c.Kubectl("-n", g.infra, "get", "gateway/edge", "-o", "jsonpath={"+field+"}")
		succeed(t, got)
		return got.Stdout
	}
	succeed(t, c.Kubectl("-n", g.infra, "patch", "gateway/edge", "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`))
	soon(t, func() bool { return g.annotations(t, "httproutes")["toystore"][affected] == "true" }, "the route with a policy is not annotated")
	before := g.annotations(t, "httproutes")
	require.Len(t, before, 21)
	require.Empty(t, before["r0000"])

	writes := refreshes(t, s, refreshWritten)
	succeed(t, g.apply(gatewayAuth))
	var after map[string]map[string]string
	soon(t, func() bool {
		after = g.annotations(t, "httproutes")
		done := gw(condition+".status") == "True" && strings.Contains(g.annotations(t, "authpolicies")["toystore-auth"]["overrule.dev/outcome"], `"state":"PartiallyEnforced"`)
		for _, has := range after {
			done = done && strings.Contains(has[effectivePolicy], g.infra+"/gw-auth") && has[affected] == "true"
		}
		return done
	}, "annotations are not refreshed")
	assert.LessOrEqual(t, refreshes(t, s, refreshWritten)-writes, 24.0, "the routes, two policies and the gateway, each once")
	assert.Zero(t, refreshes(t, s, refreshFailed))

	assert.Equal(t, "True Affected", gw(condition+".status")+" "+gw(condition+".reason"))
	assert.Equal(t, "affected by AuthPolicy "+g.infra+"/gw-auth", gw(condition+".message"))
	assert.Equal(t, gw(".metadata.generation"), gw(condition+".observedGeneration"))
	assert.Equal(t, "True", gw(`.status.conditions[?(@.type=="Accepted")].status`), "others' conditions stay")

	t.Run("it is the same as after a write of the object", func(t *testing.T) {
		succeed(t, g.kubectl("label", "httproute/r0001", "by=hand"))
		assert.Equal(t, after["r0001"], g.annotations(t, "httproutes")["r0001"])
	})
	t.Run("an unchanged apply is a no-op", func(t *testing.T) {
		version := func() string { return g.get(t, "httproute/toystore", ".metadata.resourceVersion") }
		was := version()
		succeed(t, g.apply(toystore)) // kubectl sends a patch, since it does not know the defaults in lists
		assert.Zero(t, c.KubectlWith(g.expand(toystore), "diff", "-f", "-").Code)
		assert.Equal(t, was, version())
		succeed(t, g.apply(toystore, "--server-side", "--force-conflicts"))
		was = version()
		succeed(t, g.apply(toystore, "--server-side"))
		assert.Zero(t, c.KubectlWith(g.expand(toystore), "diff", "--server-side", "-f", "-").Code)
		assert.Equal(t, was, version())
		assert.Equal(t, after["toystore"], g.annotations(t, "httproutes")["toystore"])
	})
	t.Run("users cannot write it", func(t *testing.T) {
		succeed(t, g.kubectl("annotate", "--overwrite", "httproute/r0002", effectivePolicy+"=none", affected+"=no"))
		assert.Equal(t, after["r0002"][effectivePolicy], g.annotations(t, "httproutes")["r0002"][effectivePolicy])
		soon(t, func() bool { return g.annotations(t, "httproutes")["r0002"][affected] == "true" }, "the annotation is not restored")
	})
	t.Run("its field manager owns the annotations only", func(t *testing.T) {
		got := g.kubectl("get", "httproute/r0003", "--show-managed-fields", "-o", `jsonpath={.metadata.managedFields[?(@.manager=="overrule-refresh")]}`)
		succeed(t, got)
		var entry metav1.ManagedFieldsEntry
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &entry))
		assert.Equal(t, metav1.ManagedFieldsOperationUpdate, entry.Operation)
		assert.JSONEq(t, `{"f:metadata":{"f:annotations":{"f:`+affected+`":{},"f:`+effectivePolicy+`":{}}}}`, entry.FieldsV1.GetRawString())
	})
	t.Run("objects that opt out are not changed", func(t *testing.T) {
		succeed(t, g.kubectl("label", "httproute/r0004", "overrule.dev/refresh=false"))
	})

	succeed(t, c.Kubectl("-n", g.infra, "delete", "authpolicy/gw-auth"))
	soon(t, func() bool {
		now := g.annotations(t, "httproutes")
		done := gw(condition) == "" && !strings.Contains(now["toystore"][effectivePolicy], "gw-auth")
		for name, has := range now {
			done = done && (len(has) == 0 || name == "r0004" || name == "toystore")
		}
		return done
	}, "annotations are not removed")
	now := g.annotations(t, "httproutes")
	assert.Equal(t, map[string]string{affected: "true", effectivePolicy: `{"asOf":"last write",` + after["r0004"][effectivePolicy][1:]}, now["r0004"])
	assert.Equal(t, "true", now["toystore"][affected], "by its own policy")
	assert.Equal(t, "True", gw(`.status.conditions[?(@.type=="Accepted")].status`))
}

func TestAffectedByAnnotationsCanBeRemoved(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.grantRefresh(t, true)
	g := c.prepare(t, "unmarked")
	succeed(t, g.apply(gatewayAuth))
	has := func() string {
		return g.get(t, "httproute/toystore", ".metadata.annotations") + c.Kubectl("-n", g.infra, "get", "gateway/edge", "-o", "jsonpath={.status}").Stdout
	}
	s := c.start(t, "--refresh", "--refresh-qps=100")
	soon(t, func() bool { return strings.Count(has(), affected) == 2 }, "existing objects are not annotated")
	require.NoError(t, s.Stop())
	c.start(t, "--refresh", "--refresh-qps=100", "--refresh-affected=false")
	soon(t, func() bool { return !strings.Contains(has(), affected) }, "the annotations stay")
	assert.Contains(t, has(), effectivePolicy)
}
