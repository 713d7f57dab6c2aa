package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// The CDN caching example of both older texts, "Hierarchy".
func TestCachingPolicies(t *testing.T) {
	for name, folder := range map[string]string{
		"CDNCachingPolicy of 2023":            "caching-2023",
		"AcmeServicePolicy of the later text": "caching-later",
	} {
		t.Run(name, func(t *testing.T) {
			w := read(t, "", folder)
			item := w.at(t, "example > example")
			origins := make(map[string]string)
			for _, r := range item.Rules {
				origins[r.Rule] = r.From.Name + "/" + r.Block
			}
			w.check(t, []expected{
				{"the policy attached to the Gateway requires cdn to be enabled", func(t *testing.T, _ *world) {
					assert.Equal(t, "gateway/overrides", origins["cdn.enabled"])
				}},
				{"and provides some default configuration for that", func(t *testing.T, _ *world) {
					assert.Equal(t, "gateway/defaults", origins["cdn.cachePolicy.includeHost"])
					assert.Equal(t, "gateway/defaults", origins["cdn.cachePolicy.includeProtocol"])
				}},
				{"the policy attached to the Route changes the value for one of those fields (includeQueryString)", func(t *testing.T, _ *world) {
					assert.Equal(t, "route/defaults", origins["cdn.cachePolicy.includeQueryString"])
				}},
				{"the effective policy", hasSpec("example > example", obj{"cdn": obj{
					"enabled":     true,
					"cachePolicy": obj{"includeHost": true, "includeProtocol": true, "includeQueryString": false},
				}})},
				{"what became of the Gateway's", hasState("gateway", api.PartiallyEnforced, "route")},
				{"what became of the Route's", hasState("route", api.Enforced)},
			})
			assert.Len(t, origins, 4)
		})
	}
}

// "In this final example": the diagram of both older texts.
func TestTimeoutsOfThePicture(t *testing.T) {
	w := read(t, "", "timeouts", "caching-2023/profile.yaml", "caching-2023/objects.yaml")
	spec, _ := w.at(t, "example > example").Spec.(obj)
	w.check(t, []expected{
		{"the override attached to the Gateway has precedence over the default drainTimeout value attached to the Route", func(t *testing.T, _ *world) {
			assert.Equal(t, "10s", spec["drainTimeout"])
		}},
		{"the default connectionTimeout attached to the Route has precedence over the default attached to the Gateway", func(t *testing.T, _ *world) {
			assert.Equal(t, "15s", spec["connectionTimeout"])
		}},
		{"fields that are not common across objects may both end up affecting the final object", func(t *testing.T, _ *world) {
			assert.Equal(t, "g", spec["onlyHere"])
			assert.Equal(t, "r", spec["onlyThere"])
		}},
	})
}

// TLSMinimumVersionPolicy of both older texts, "Examples".
func TestTLSMinimumVersionPolicy(t *testing.T) {
	t.Run("the policy sets the minimum TLS version required on a Gateway", func(t *testing.T) {
		w := read(t, "", "tls-direct")
		assert.Equal(t, obj{"minimumTLSVersion": 1.2}, w.at(t, "internet").Spec)
		assert.Equal(t, obj{}, w.at(t, "other").Spec, "direct policies affect their target alone")
		assert.Len(t, w.at(t, "internet").Path, 2, "it ends at the gateway, which is below its class")
		hasState("minimum12", api.Enforced)(t, w)
	})
	minimum := func(v float64) obj { return obj{"minimumTLSVersion": v} }
	t.Run("default the minimumTLSVersion setting across multiple Gateways", func(t *testing.T) {
		w := read(t, "", "tls-inherited/profile.yaml", "tls-inherited/objects.yaml", "tls-inherited/defaults.yaml")
		assert.Equal(t, minimum(1.2), w.at(t, "plain").Spec)
		assert.Equal(t, minimum(1.1), w.at(t, "owned").Spec)
		assert.Equal(t, obj{}, w.at(t, "elsewhere").Spec)
		hasState("minimum12", api.PartiallyEnforced, "owner")(t, w)
		hasState("owner", api.Enforced)(t, w)
	})
	t.Run("all Gateways must use a minimum TLS version of 1.2, and this cannot be changed by Gateway owners", func(t *testing.T) {
		w := read(t, "", "tls-inherited/profile.yaml", "tls-inherited/objects.yaml", "tls-inherited/overrides.yaml")
		assert.Equal(t, minimum(1.2), w.at(t, "plain").Spec)
		assert.Equal(t, minimum(1.2), w.at(t, "owned").Spec)
		assert.Equal(t, obj{}, w.at(t, "elsewhere").Spec)
		hasState("minimum12", api.Enforced)(t, w)
		hasState("owner", api.Overridden, "minimum12")(t, w)
	})
	t.Run("only its own namespace: attached to another one the policy has no target", func(t *testing.T) {
		w := read(t, `
apiVersion: networking.example.io/v1alpha1
kind: TLSMinimumVersionPolicy
metadata: {name: intruder, namespace: default}
spec:
  overrides: {minimumTLSVersion: 1.3}
  targetRef: {name: appns, group: "", kind: namespace}
`, "tls-inherited/profile.yaml", "tls-inherited/objects.yaml")
		assert.Equal(t, obj{}, w.at(t, "plain").Spec)
		assert.Equal(t, api.TargetNotFound, w.outcomes["intruder"].State)
	})
}

// Policies on requests to external services, in all three texts: a target that is
// not an object has a path of its own.
func TestVirtualTargets(t *testing.T) {
	tests := map[string]struct {
		folder, policy, block string
		spec                  obj
	}{
		"RetryPolicy of 2023, an inherited one":       {"external-2023", "foo", "defaults", obj{"maxRetries": int64(5)}},
		"RetryPolicy of the later text, a direct one": {"external-later", "foo", "bare", obj{"maxRetries": int64(5)}},
		"ColorPolicy of the current text, with rules": {"external-current", "my-color-policy", "bare", obj{"color": "blue"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := read(t, "", test.folder)
			item := w.at(t, "foo.com")
			assert.Equal(t, []api.PathElement{{Kind: "ExternalService", Namespace: "default", Name: "foo.com"}}, item.Path)
			assert.Equal(t, test.spec, item.Spec)
			assert.Len(t, item.Rules, 1)
			assert.Equal(t, test.block, item.Rules[0].Block)
			hasState(test.policy, api.Enforced)(t, w)
		})
	}
	t.Run("an override beats the default of the same external service", func(t *testing.T) {
		w := read(t, `
apiVersion: networking.acme.io/v1alpha1
kind: RetryPolicy
metadata: {name: bar}
spec:
  override: {maxRetries: 3}
  targetRef: {group: networking.acme.io, kind: ExternalService, name: foo.com}
`, "external-2023")
		assert.Equal(t, obj{"maxRetries": int64(3)}, w.at(t, "foo.com").Spec)
		hasState("foo", api.Overridden, "bar")(t, w)
	})
	t.Run("the older of two direct policies holds the external service", func(t *testing.T) {
		w := read(t, `
apiVersion: networking.example.net/v1alpha1
kind: RetryPolicy
metadata: {name: bar, creationTimestamp: "2021-07-15T01:02:03Z"}
spec:
  maxRetries: 3
  targetRef: {group: networking.example.net, kind: ExternalService, name: foo.com}
`, "external-later")
		assert.Equal(t, obj{"maxRetries": int64(3)}, w.at(t, "foo.com").Spec)
		hasState("foo", api.Conflicted, "bar")(t, w)
	})
}

// TLSConnectionPolicy of 2023, "Direct Policy Attachment".
func TestTLSConnectionPolicy(t *testing.T) {
	w := read(t, "", "tls-connection", "color-inherited/objects.yaml")
	w.check(t, []expected{{
		"this would apply to every usage of that Service across any HTTPRoutes in that namespace",
		func(t *testing.T, w *world) {
			for _, path := range colored {
				want := obj{}
				if strings.HasSuffix(path, "b1") {
					want = obj{"tls": obj{"certificateAuthorityRefs": []any{obj{"name": "CAcert"}}, "port": int64(8443)}}
				}
				assert.Equal(t, want, w.at(t, path).Spec, path)
			}
		},
	}})
}
