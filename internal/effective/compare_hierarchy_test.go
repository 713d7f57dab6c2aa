package effective_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// changedChains applies a change and returns what Compare visits in its scope: "+"
// is a new path, "-" a removed one, "~" one whose policies differ.
func changedChains(t testing.TB, before *snapshot.View, c snapshot.Change) []string {
	t.Helper()
	var out []string
	after := before.With(c)
	scope := effective.ScopeOf(before.Get(c.Ref), c.Object)
	require.NoError(t, effective.NewEngine().Compare(before, after, scope, unlimited(), func(p effective.Pair) error {
		p = policiesAlone(p)
		switch {
		case p.Before == nil:
			out = append(out, "+ "+chainOf(p.After))
		case p.After == nil:
			out = append(out, "- "+chainOf(p.Before))
		case p.Changed():
			was := chainOf(p.Before)
			out = append(out, "~ "+was+" -> "+chainOf(p.After)[strings.Index(chainOf(p.After), "|"):])
		}
		return nil
	}))
	return out
}

// policiesAlone drops the side of a pair without a policy.
func policiesAlone(p effective.Pair) effective.Pair {
	if p.After != nil && len(p.After.Outcomes) == 0 {
		p.After = nil
	}
	return p
}

// The paths that change with a change of each kind of object, no more and no
// less.
func TestCompareGatewayAPIObjects(t *testing.T) {
	const (
		c      = "GatewayClass c > Gateway infra/"
		g      = c + "g > Listener infra/g#http"
		h      = c + "h > Listener infra/h#http"
		bySet  = c + "g > ListenerSet sets/s > Listener sets/s#http"
		bySetH = c + "h > ListenerSet sets/s > Listener sets/s#http"
		r      = " > HTTPRoute app/r > HTTPRouteRule app/r#rule-1 > Service zoo/b#80 | "
		q      = " > HTTPRoute app/q > HTTPRouteRule app/q#rule-1 > Service zoo/b#80 | "
	)
	rules := "[{backendRefs: [{name: b, namespace: zoo, port: 80}]}]"
	route := func(parents ...string) string { return worlds.RouteTo("HTTPRoute", "app", "r", rules, parents...) }
	grant := worlds.GrantDoc("zoo", "routes", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", `{group: "", kind: Service}`)
	base := docs(
		worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: referenceGrant, classFrom: ['*']}\n"+
			"strategy: {allowed: [merge]}\nlevels: [GatewayClass, Gateway, ListenerSet, Listener, RouteNamespace, Route, Rule, Backend]"),
		"kind: GatewayClass\nmetadata: {name: c}", gatewayDoc("g", "c", "http"), gatewayDoc("h", "c", "http"), worlds.SetDoc("sets", "s", "g", "http"),
		route(worlds.ToGateway("g"), worlds.ToSet("sets", "s")), worlds.RouteTo("HTTPRoute", "app", "q", rules, worlds.ToGateway("h")),
		worlds.ServiceDoc("zoo", "b", 80), grant,
		policyDoc("Probe", "infra", "g", "targetRefs: [{kind: Gateway, name: g}]\ng: 1"),
		policyDoc("Probe", "sets", "s", "targetRefs: [{kind: ListenerSet, name: s}]\ns: 1"),
		policyDoc("Probe", "app", "reds", "targetRefs: [{kind: HTTPRoute, selector: {matchLabels: {team: red}}}]\nred: 1"),
		policyDoc("Probe", "app", "b", "targetRefs: [{kind: Service, name: b, namespace: zoo}]\nb: 1"),
		worlds.GrantDoc("zoo", "policies", "{group: example.com, kind: Probe, namespace: app}", `{group: "", kind: Service, name: b}`),
	)
	tests := map[string]struct {
		put, remove string // a document
		want        []string
	}{
		"a route moves from the gateway to the set": {
			put: route(worlds.ToSet("sets", "s")), want: []string{"- " + g + r + "g b"},
		},
		"a route moves to another gateway": {
			put:  route(worlds.ToGateway("h")),
			want: []string{"+ " + h + r + "b", "- " + g + r + "g b", "- " + bySet + r + "g s b"},
		},
		"a route is labelled": {
			put:  strings.Replace(route(worlds.ToGateway("g"), worlds.ToSet("sets", "s")), "name: r}", "name: r, labels: {team: red}}", 1),
			want: []string{"~ " + g + r + "g b -> | g reds b", "~ " + bySet + r + "g s b -> | g s reds b"},
		},
		"a route is renamed: another one": {
			put:  worlds.RouteTo("HTTPRoute", "app", "q2", rules, worlds.ToGateway("g")),
			want: []string{"+ " + strings.ReplaceAll(g+r, "app/r", "app/q2") + "g b"},
		},
		"a set is deleted": {
			remove: worlds.SetDoc("sets", "s", "g", "http"), want: []string{"- " + bySet + r + "g s b"},
		},
		"a set moves to another gateway": {
			put:  worlds.SetDoc("sets", "s", "h", "http"),
			want: []string{"+ " + bySetH + r + "s b", "- " + bySet + r + "g s b"},
		},
		"a set's listener is renamed: the same requests": {
			put: worlds.SetDoc("sets", "s", "g", "web"),
		},
		"a gateway closes itself to sets": {
			put:  strings.Replace(gatewayDoc("g", "c", "http"), "from: All", "from: None", 1),
			want: []string{"- " + bySet + r + "g s b"},
		},
		"a gateway is deleted": {
			remove: gatewayDoc("g", "c", "http"), want: []string{"- " + g + r + "g b", "- " + bySet + r + "g s b"},
		},
		"a class is deleted: its paths stay": {remove: "kind: GatewayClass\nmetadata: {name: c}"},
		"a grant of the routes is deleted: no path reaches the backend": {
			remove: grant, want: []string{"- " + g + r + "g b", "- " + bySet + r + "g s b", "- " + h + q + "b"},
		},
		"a grant of the policies is deleted: the paths stay": {
			remove: worlds.GrantDoc("zoo", "policies", "", ""),
			want:   []string{"~ " + g + r + "g b -> | g", "~ " + bySet + r + "g s b -> | g s", "- " + h + q + "b"},
		},
		"a grant no longer means the backend": {
			put:  worlds.GrantDoc("zoo", "policies", "{group: example.com, kind: Probe, namespace: app}", `{group: "", kind: Service, name: other}`),
			want: []string{"~ " + g + r + "g b -> | g", "~ " + bySet + r + "g s b -> | g s", "- " + h + q + "b"},
		},
		"a Service is deleted: its policy has no target": {
			remove: worlds.ServiceDoc("zoo", "b", 80),
			want:   []string{"~ " + g + r + "g b -> | g", "~ " + bySet + r + "g s b -> | g s", "- " + h + q + "b"},
		},
		"a policy on a namespace": {
			put:  policyDoc("Probe", "app", "ns", "targetRefs: [{kind: Namespace, name: app}]\nns: 1"),
			want: []string{"~ " + g + r + "g b -> | g ns b", "~ " + bySet + r + "g s b -> | g s ns b", "~ " + h + q + "b -> | ns b"},
		},
		"a policy moves to another target": {
			put:  policyDoc("Probe", "infra", "g", "targetRefs: [{kind: Gateway, name: h}]\ng: 1"),
			want: []string{"~ " + h + q + "b -> | g b", "~ " + g + r + "g b -> | b", "~ " + bySet + r + "g s b -> | s b"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := world(t, base)
			var change snapshot.Change
			if test.put != "" {
				change = putChange(t, before, test.put)
			} else {
				change = snapshot.Delete(read(t, before, test.remove).Ref())
			}
			got := changedChains(t, before, change)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], " > Namespace app", "")
			}
			assert.ElementsMatch(t, test.want, got)
		})
	}
}
