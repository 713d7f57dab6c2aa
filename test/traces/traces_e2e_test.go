//go:build e2e && long

package traces_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/traces"
)

// Overrule's spans of a write belong to the trace that the API server started.
func TestTraceSpansAPIServerAndOverrule(t *testing.T) {
	collector := traces.OverGRPC(t)
	config := filepath.Join(t.TempDir(), "tracing.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 1000000\n", collector.Address), 0o600))
	plane := env.Start(t, env.WithAPIServerFlag("tracing-config-file", config))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+collector.Address)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	server.Start(t, plane, server.Options{})

	got := plane.KubectlWith(policyWithoutTarget, "apply", "-f", "-")
	require.Zero(t, got.Code, got.Stderr)
	var trace map[string]traces.Span
	env.Soon(t, func() bool {
		trace = of(collector.Spans(), "astray")
		return len(ancestors(trace, "validate")) >= 2 && len(ancestors(trace, "live read")) >= 3 && len(ancestors(trace, "mutate")) >= 2
	}, "the spans of the API server and of Overrule come together")

	assert.Equal(t, []string{"overrule: live read", "overrule: evaluate", "overrule: validate"}, ancestors(trace, "live read")[:3])
	for _, hook := range []string{"validate", "mutate"} {
		chain := ancestors(trace, hook)
		assert.Contains(t, chain[1], "apiserver: ", "its parent is the API server's call of %s: %v", hook, chain)
	}
}

// policyWithoutTarget targets a Gateway that does not exist, which Overrule reads
// live.
const policyWithoutTarget = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: astray, namespace: default}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: nothing}
  rules: {authentication: {a: 1}}
`

// of returns the spans, by id, of the trace in which a policy was validated.
func of(spans []traces.Span, name string) map[string]traces.Span {
	id := ""
	for _, s := range spans {
		if s.GetName() == "validate" && s.Attributes()["overrule.name"] == name {
			id = s.Trace()
		}
	}
	out := map[string]traces.Span{}
	for _, s := range spans {
		if s.Trace() == id {
			out[s.ID()] = s
		}
	}
	return out
}

// ancestors returns the names of Overrule's span with that name and of its
// ancestors.
func ancestors(trace map[string]traces.Span, name string) []string {
	var out []string
	for _, s := range trace {
		if s.Resource["service.name"] != "overrule" || s.GetName() != name {
			continue
		}
		for ok := true; ok; s, ok = trace[s.ParentID()] {
			out = append(out, s.Resource["service.name"]+": "+s.GetName())
		}
		return out
	}
	return out
}
