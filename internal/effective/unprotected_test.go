package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/test/worlds"
)

// A path is marked if a group of rules that protect is lost to another policy and no rule
// of it is in force.
func TestUnprotected(t *testing.T) {
	const profile = "protection: [{name: authentication, rules: [jwt, oidc]}, {name: authorization, rules: [allow]}]"
	ref := func(namespace, name string) api.Ref {
		return api.Ref{Group: "example.com", Kind: "Guarded", Namespace: namespace, Name: name}
	}
	lost := func(group string, rules ...string) api.LostProtection {
		return api.LostProtection{Group: group, Rules: rules, Policy: ref("infra", "top"), To: ref("app", "own")}
	}
	for name, test := range map[string]struct {
		top, own string
		want     []api.LostProtection
	}{
		"replaced by other rules":          {"jwt: 1", "cors: 1", []api.LostProtection{lost("authentication", "jwt")}},
		"two groups":                       {"allow: 1\noidc: 1\njwt: 1", "cors: 1", []api.LostProtection{lost("authentication", "jwt", "oidc"), lost("authorization", "allow")}},
		"replaced by a rule of its group":  {"jwt: 1", "oidc: 1", nil},
		"only the other group is replaced": {"jwt: 1\nallow: 1", "oidc: 1", []api.LostProtection{lost("authorization", "allow")}},
		"rules that do not protect":        {"cors: 1", "retry: 1", nil},
		"replaced by an empty policy":      {"jwt: 1", "", []api.LostProtection{lost("authentication", "jwt")}},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(worlds.ProfileDoc("Guarded", profile), gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
				policyDoc("Guarded", "infra", "top", "targetRefs: [{kind: Gateway, name: g}]\n"+test.top),
				policyDoc("Guarded", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r}]\n"+test.own)))
			var got []api.LostProtection
			for _, e := range walked(t, v, effective.Scope{All: true}) {
				got = append(got, explain.Item(e).Unprotected...)
			}
			assert.Equal(t, test.want, got)
		})
	}
}
