//go:build e2e

package kinds

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// soon waits until a condition is met.
func soon(t *testing.T, msg string, condition func() bool) {
	t.Helper()
	env.Soon(t, condition, msg)
}

func succeed(t *testing.T, got env.Result) env.Result {
	t.Helper()
	require.Zero(t, got.Code, got.Stdout+got.Stderr)
	return got
}

// ownProfile reads ObservabilityPolicies as a kind whose policies of one target
// are merged; the built-in profile rejects the second one.
const ownProfile = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: ours}
spec:
  group: gateway.nginx.org
  kind: ObservabilityPolicy
  class: inherited
  levels: [Route]
  targets: {fields: [targetRefs]}
  strategy: {allowed: [merge]}
  sameTarget: oldestWins
`

// observing returns an ObservabilityPolicy on the route.
func observing(w namespaces, name, spec string) string {
	return w.named(`
apiVersion: gateway.nginx.org/v1alpha2
kind: ObservabilityPolicy
metadata: {namespace: APP, name: ` + name + `}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}], tracing: ` + spec + `}
`)
}

// A cluster's own profile replaces a built-in one while the server runs, and the
// built-in one is used again when it is deleted.
func TestAClustersOwnProfile(t *testing.T) {
	w := namespacesOf("own-profile")
	w.create(t)
	succeed(t, plane.Apply(observing(w, "a-first", "{strategy: parent}")))
	second := observing(w, "b-second", "{strategy: ratio, ratio: 2}")
	isDenied := func() bool {
		return strings.Contains(plane.Apply(second, "--dry-run=server").Stderr, "Conflicted: ")
	}
	require.True(t, isDenied(), "as the built-in profile has it")

	succeed(t, plane.Apply(ownProfile))
	succeed(t, plane.Kubectl("wait", "--for=condition=Accepted", "--timeout=1m", "policyprofile/ours"))
	soon(t, "the cluster's profile is not in force", func() bool { return !isDenied() })
	got := succeed(t, plane.Apply(second))
	assert.NotContains(t, got.Stderr, "Conflicted")

	succeed(t, plane.Kubectl("delete", "policyprofile/ours"))
	third := observing(w, "c-third", "{strategy: ratio, ratio: 3}")
	soon(t, "the built-in profile is not back", func() bool {
		return strings.Contains(plane.Apply(third, "--dry-run=server").Stderr, "Conflicted: ")
	})
}

// An invalid profile is rejected, with an error that says what to fix.
func TestBadProfiles(t *testing.T) {
	for name, tt := range map[string]struct {
		group, kind string // default: those of a kind of its own
		spec        string
		says        string
	}{
		"of pods":              {group: "", kind: "Pod", spec: `{"class":"direct"}`, says: "group must be that of a CustomResourceDefinition, not one of Kubernetes' own"},
		"of deployments":       {group: "apps", kind: "Deployment", spec: `{"class":"direct"}`, says: "group must be that of a CustomResourceDefinition, not one of Kubernetes' own"},
		"of roles":             {group: "rbac.authorization.k8s.io", kind: "Role", spec: `{"class":"direct"}`, says: "group must be that of a CustomResourceDefinition, not one of Kubernetes' own"},
		"of routes":            {group: "gateway.networking.k8s.io", kind: "HTTPRoute", spec: `{"class":"direct"}`, says: "kind is one that policies are attached to, not a policy kind"},
		"without a class":      {spec: `{}`, says: "spec.class: Required value"},
		"of an unknown class":  {spec: `{"class":"indirect"}`, says: `spec.class: Unsupported value: "indirect": supported values: "inherited", "direct"`},
		"with a level twice":   {spec: `{"class":"inherited","levels":["Gateway","Route","Gateway"]}`, says: "levels must be unique"},
		"with unknown levels":  {spec: `{"class":"inherited","levels":["Pod"]}`, says: `spec.levels[0]: Unsupported value: "Pod"`},
		"direct, with blocks":  {spec: `{"class":"direct","blocks":{"overrides":["override"]}}`, says: "a direct kind has no defaults and overrides: set class to inherited or leave out blocks"},
		"with two orders":      {spec: `{"class":"direct","order":{"field":"priority","annotation":"weight"}}`, says: "set one of field and annotation"},
		"with a field unknown": {spec: `{"class":"direct","colour":"red"}`, says: `unknown field "spec.colour"`},
		"meeting unheard of":   {spec: `{"class":"direct","sameTarget":"newest"}`, says: `spec.sameTarget: Unsupported value: "newest"`},
		"with a bad address":   {spec: `{"class":"inherited","rules":["limits..a"]}`, says: "limits..a"},
		"without targets":      {spec: `{"class":"direct","targets":{}}`, says: "targets"},
		"levels out of order":  {spec: `{"class":"inherited","levels":["Route","Gateway"]}`, says: "levels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := map[string]any{"group": "toys.example.com", "kind": "ToyPolicy", "targets": map[string]any{"fields": []string{"targetRef"}}}
			if tt.kind != "" {
				spec["group"], spec["kind"] = tt.group, tt.kind
			}
			require.NoError(t, json.Unmarshal([]byte(tt.spec), &spec))
			data, err := json.Marshal(map[string]any{
				"apiVersion": "overrule.dev/v1alpha1", "kind": "PolicyProfile", "metadata": map[string]any{"name": "bad"}, "spec": spec,
			})
			require.NoError(t, err)
			got := plane.Apply(string(data), "--dry-run=server")
			assert.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
			assert.Contains(t, got.Stderr, tt.says)
		})
	}
}
