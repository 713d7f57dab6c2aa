//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

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

// gauge returns the value of a metric of a server, with its labels; 0 if it has
// none.
func gauge(t *testing.T, s *server.Server, name string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Metrics+"/metrics", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err)
			return number
		}
	}
	return 0
}

const refreshWrites = `overrule_annotation_updates_total{result="written"}`

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

// awaitIdle waits until nothing is pending and nothing was written for a while.
func awaitIdle(t *testing.T, s *server.Server) {
	t.Helper()
	last, since := -1.0, time.Now()
	require.Eventually(t, func() bool {
		if now := gauge(t, s, refreshWrites); now != last || gauge(t, s, "overrule_annotation_updates_pending") > 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second
	}, 5*time.Minute, 100*time.Millisecond, "it goes on")
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
	awaitIdle(t, s)
	before := g.annotations(t, "httproutes")
	require.Len(t, before, 21)
	require.Empty(t, before["r0000"])

	writes := gauge(t, s, refreshWrites)
	succeed(t, g.apply(gatewayAuth))
	awaitIdle(t, s)
	after := g.annotations(t, "httproutes")
	for name, has := range after {
		assert.Contains(t, has[effectivePolicy], g.infra+"/gw-auth", name)
		assert.Equal(t, "true", has[affected], name)
	}
	assert.Contains(t, g.annotations(t, "authpolicies")["toystore-auth"]["overrule.dev/outcome"], `"state":"PartiallyEnforced"`)
	assert.LessOrEqual(t, gauge(t, s, refreshWrites)-writes, 24.0, "the routes, two policies and the gateway, each once")
	assert.Zero(t, gauge(t, s, `overrule_annotation_updates_total{result="failed"}`))

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
		assert.Equal(t, metav1.ManagedFieldsOperationApply, entry.Operation)
		assert.JSONEq(t, `{"f:metadata":{"f:annotations":{"f:`+affected+`":{},"f:`+effectivePolicy+`":{}}}}`, entry.FieldsV1.GetRawString())
	})
	t.Run("objects that opt out are not changed", func(t *testing.T) {
		succeed(t, g.kubectl("label", "httproute/r0004", "overrule.dev/refresh=false"))
	})

	succeed(t, c.Kubectl("-n", g.infra, "delete", "authpolicy/gw-auth"))
	awaitIdle(t, s)
	for name, has := range g.annotations(t, "httproutes") {
		switch name {
		case "r0004":
			assert.Equal(t, after[name], has)
		case "toystore":
			assert.NotContains(t, has[effectivePolicy], "gw-auth")
			assert.Equal(t, "true", has[affected], "by its own policy")
		default:
			assert.Empty(t, has, name)
		}
	}
	assert.Empty(t, gw(condition))
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

func TestMissingRefreshRightIsReported(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.grantRefresh(t, false)
	g := c.prepare(t, "righted")
	s := c.start(t, "--refresh", "--refresh-qps=100")
	succeed(t, g.apply(routeAuth))
	succeed(t, g.apply(gatewayAuth))
	soon(t, func() bool {
		return strings.Contains(g.annotations(t, "httproutes")["toystore"][effectivePolicy], "gw-auth")
	}, "routes are not refreshed")
	soon(t, func() bool { return gauge(t, s, `overrule_annotation_updates_total{result="forbidden"}`) > 0 }, "the missing right is not counted")
	const says = "system:serviceaccount:overrule-system:overrule-refresher is not allowed to patch authpolicies.kuadrant.io"
	assert.Equal(t, 1, strings.Count(s.Log(), says), s.Log())
	succeed(t, g.apply(strings.Replace(gatewayAuth, "ours", "others", 1)))
	soon(t, func() bool { return gauge(t, s, "overrule_annotation_updates_pending") > 0 }, "other kinds do not wait for the right")
	assert.Equal(t, 1, strings.Count(s.Log(), says))
}

func TestRefreshDisabledByDefault(t *testing.T) {
	c := shared(t)
	c.grantRefresh(t, true)
	g := c.prepare(t, "stale")
	s := c.start(t)
	succeed(t, g.apply(routeAuth))
	was := g.annotations(t, "httproutes")["toystore"]
	succeed(t, g.apply(gatewayAuth))
	soon(t, func() bool { return gauge(t, s, `overrule_audit_runs_total{result="done",scope="changed"}`) > 0 }, "the change is not observed")
	assert.Equal(t, was, g.annotations(t, "httproutes")["toystore"])
	assert.NotContains(t, c.Kubectl("-n", g.infra, "get", "gateway/edge", "-o", "yaml").Stdout, affected)
}

func TestRefreshRateLimit(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.grantRefresh(t, true)
	const routes, rate = 1000, 100
	g := c.prepare(t, "thousand")
	s := c.start(t, "--log-level=info", "--refresh", fmt.Sprintf("--refresh-qps=%d", rate))
	succeed(t, g.apply(manyRoutes(routes), "--server-side"))
	awaitIdle(t, s)
	before, begun := gauge(t, s, refreshWrites), time.Now()
	succeed(t, g.apply(gatewayAuth))
	lost, most := 0, 0.0
	for i := 0; ; i++ {
		if g.apply(limits(fmt.Sprintf("name: p%d", i%5), i+1), "--server-side", "--force-conflicts").Code != 0 {
			lost++
		}
		now := gauge(t, s, refreshWrites) - before
		most = max(most, now-rate*(time.Since(begun).Seconds()+1)) // a burst of one second
		if i > 20 && now >= routes && gauge(t, s, "overrule_annotation_updates_pending") < 10 || time.Since(begun) > 5*time.Minute {
			break
		}
	}
	assert.Zero(t, lost, "writes lost during the refresh")
	assert.LessOrEqual(t, most, 0.0, "writes beyond the rate")
	t.Logf("%v refresh writes in %s", gauge(t, s, refreshWrites)-before, time.Since(begun).Round(time.Second))
	awaitIdle(t, s)
	for name, has := range g.annotations(t, "httproutes") {
		require.Contains(t, has[effectivePolicy], g.infra+"/gw-auth", name)
	}
	assert.Zero(t, gauge(t, s, `overrule_annotation_updates_total{result="failed"}`))
}
