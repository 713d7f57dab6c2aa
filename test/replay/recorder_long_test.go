//go:build long

package replay

import (
	"iter"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/env"
)

// The recording has what the API server stored, across a restart of it, and its state
// after all writes is the snapshot that a server reads from the cluster.
func TestRecording(t *testing.T) {
	e := env.Start(t)
	apply := func(manifest string) {
		t.Helper()
		got := e.Apply(manifest)
		require.Zero(t, got.Code, got.Stderr)
	}
	kubectl := func(args ...string) {
		t.Helper()
		got := e.Kubectl(args...)
		require.Zero(t, got.Code, got.Stderr)
	}
	of := manifests(t)
	apply(of["base"])
	first, second := Record(t, e), Record(t, e)
	apply(of["above"])
	apply(service)
	require.NoError(t, e.RestartAPIServer(t.Context()))
	apply(of["below"])
	kubectl("label", "namespace", "infra", "team=other", "--overwrite")
	kubectl("delete", "-n", "infra", "ratelimitpolicy/gate")
	apply(of["color profile without overrides"])
	apply(of["color"])
	apply(of["glaze definition"])
	kubectl("wait", "--for=condition=Established", "crd/glazes.policies.example.com")
	apply(of["glaze"])
	apply(of["glaze profile"])
	kubectl("delete", "crd/timeoutpolicies.policies.example.com")

	h, err := first.History(t.Context())
	require.NoError(t, err)
	again, err := second.History(t.Context())
	require.NoError(t, err)
	writes := decodeAll(t, h)
	assert.Equal(t, writes, decodeAll(t, again))
	assert.Equal(t, []string{
		"RateLimitPolicy infra/gate", "Service app/toys", "RateLimitPolicy app/toys", "Namespace infra",
		"RateLimitPolicy infra/gate deleted", "PolicyProfile colors", "ColorPolicy infra/colors",
		"Glaze app/glaze", "PolicyProfile glaze",
	}, summary(writes))
	assert.True(t, slices.IsSortedFunc(writes, func(a, b Write) int { return int(a.Version - b.Version) }))

	s, err := newState(h.Objects)
	require.NoError(t, err)
	for _, w := range writes {
		require.NoError(t, s.apply(w))
	}
	got, _ := s.store.View()
	want, problems, err := cache.List(t.Context(), e.Config)
	require.NoError(t, err)
	require.Empty(t, problems)
	assertSameView(t, want, got)
}

const service = `
apiVersion: v1
kind: Service
metadata: {namespace: app, name: toys}
spec: {ports: [{name: http, port: 80}]}
`

func decodeAll(t *testing.T, h *History) []Write {
	t.Helper()
	var out []Write
	for w, err := range h.Writes {
		require.NoError(t, err)
		out = append(out, w)
	}
	return out
}

// summary returns the writes of the test. The API server writes some objects itself.
func summary(writes []Write) []string {
	var out []string
	for _, w := range writes {
		name := w.Ref.String()
		switch {
		case !slices.Contains([]string{"infra", "app", ""}, w.Ref.Namespace) || slices.Contains([]string{"CustomResourceDefinition", "APIService", "IPAddress"}, w.Ref.Kind):
			continue
		case w.Object == nil:
			name += " deleted"
		case w.Object.GetResourceVersion() != strconv.FormatInt(w.Version, 10):
			name += " has another resource version"
		}
		if len(out) == 0 || out[len(out)-1] != name {
			out = append(out, name)
		}
	}
	return out
}

func assertSameView(t *testing.T, want, got *snapshot.View) {
	t.Helper()
	var kinds []api.PolicyKind
	for _, k := range want.Kinds() {
		kinds = append(kinds, k.Ref())
		o := got.Kind(k.Ref())
		if assert.NotNil(t, o, k.Ref()) {
			assert.Equal(t, k.PolicyProfileSpec, o.PolicyProfileSpec)
			assert.Equal(t, [2]any{k.Source, k.Name}, [2]any{o.Source, o.Name})
			assert.True(t, k.Schema().Same(o.Schema()), "schema of %s", k.Ref())
		}
	}
	assert.Len(t, got.Kinds(), len(kinds))
	for _, k := range gateway.GatewayKinds {
		kinds = append(kinds, gateway.KindOf(k))
	}
	kinds = append(kinds, api.PolicyKind{Kind: gateway.KindNamespace}, api.PolicyKind{Kind: gateway.KindService})
	for _, k := range []api.PolicyKind{constraint.Kind, constraint.ClusterKind} {
		assert.Equal(t, slices.Collect(refs(want, k)), slices.Collect(refs(got, k)))
	}
	for _, k := range kinds {
		assert.Equal(t, slices.Collect(refs(want, k)), slices.Collect(refs(got, k)))
		for o := range want.Objects(k) {
			switch o := o.(type) {
			case *policykind.Policy:
				other := *got.Get(o.Ref()).(*policykind.Policy)
				other.Kind = o.Kind // compared above
				assert.True(t, o.Same(&other), o.Ref())
			case *gateway.Route: // it keeps what it has computed
				other := got.Get(o.Ref()).(*gateway.Route)
				assert.EqualExportedValues(t, o, other)
				assert.Equal(t, o.Spec(), other.Spec())
			default:
				assert.Equal(t, o, got.Get(o.Ref()))
			}
		}
	}
}

func refs(v *snapshot.View, k api.PolicyKind) iter.Seq[api.Ref] {
	return func(yield func(api.Ref) bool) {
		for o := range v.Objects(k) {
			if !yield(o.Ref()) {
				return
			}
		}
	}
}
