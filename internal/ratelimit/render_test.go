package ratelimit

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

const edge = "infra/edge"

// readLimit reads a limit in YAML.
func readLimit(t *testing.T, name, text string) *Limit {
	t.Helper()
	l, errs := read(at, name, decoded(t, text))
	require.Empty(t, errs, text)
	return l
}

// addAll adds the limits that are bound to rules of a route, for hosts.
func addAll(r *Rendering, from Source, limits []*Limit, route *gateway.Route, hosts ...string) {
	b := Bind(limits, NewRoute(route), hosts)
	for rule := range route.Rules {
		if i := b.First(rule); i >= 0 {
			r.Add(from, &b[i], route, rule, hosts)
		}
	}
}

var fromRoute = Source{Policy: "app/limits", Block: "bare"}

// renderedOf renders one limit on an HTTPRoute of rules, both in YAML.
func renderedOf(t *testing.T, limit, rules string, hosts ...string) (actions, limits any) {
	t.Helper()
	r := NewRendering(edge)
	addAll(r, fromRoute, []*Limit{readLimit(t, "l", limit)}, newGatewayRoute(t, gateway.KindHTTPRoute, rules), hosts...)
	return r.Documents()
}

// assertYAML compares plain data with YAML, field by field.
func assertYAML(t *testing.T, want string, got any) {
	t.Helper()
	wanted, err := yaml.YAMLToJSONStrict([]byte(want))
	require.NoError(t, err, want)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(wanted), string(text))
}

const tied = `
  configurations:
  - generic_key: {descriptor_key: ratelimit.binding, descriptor_value: app/limits/l}
`

func TestRenderMatches(t *testing.T) {
	for name, c := range tables.Read[map[string]struct{ Rules, Want string }](t, "testdata/tables/render-matches.yaml") {
		t.Run(name, func(t *testing.T) {
			actions, _ := renderedOf(t, "rates: [{limit: 5, unit: second}]", c.Rules, "")
			assertYAML(t, "- rules: "+c.Want+tied, actions)
		})
	}
}

func TestRenderGRPCMatches(t *testing.T) {
	for name, c := range map[string]struct{ rules, want string }{
		"a service and a method":       {"[{matches: [{method: {service: toys.v1.Store, method: Get}}]}]", `[{paths: [/toys.v1.Store/Get]}]`},
		"a service":                    {"[{matches: [{method: {service: toys.v1.Store}}]}]", `[{paths: ["/toys.v1.Store/*"]}]`},
		"a method of any service":      {"[{matches: [{method: {method: Get}}]}]", `[{paths: ["~/[^/]+/Get"]}]`},
		"expressions":                  {"[{matches: [{method: {type: RegularExpression, service: 'a|b', method: 'Get.*'}}]}]", `[{paths: ["~/(?:a|b)/(?:Get.*)"]}]`},
		"an expression for the method": {"[{matches: [{method: {type: RegularExpression, method: 'Get.*'}}]}]", `[{paths: ["~/[^/]+/(?:Get.*)"]}]`},
		"headers":                      {"[{matches: [{headers: [{name: x-a, value: '1'}, {name: X-A, value: '2'}]}]}]", `[{paths: ["/*"], headers: [{name: x-a, value: "1"}]}]`},
		"a method that states nothing": {"[{matches: [{method: {}}]}]", `[{paths: ["/*"]}]`},
		"no matches":                   {"[{}]", `[{paths: ["/*"]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRendering(edge)
			addAll(r, fromRoute, []*Limit{readLimit(t, "l", "rates: [{limit: 5, unit: second}]")}, newGatewayRoute(t, gateway.KindGRPCRoute, c.rules), "")
			actions, _ := r.Documents()
			assertYAML(t, "- rules: "+c.want+tied, actions)
		})
	}
}

func TestRenderDescriptorActions(t *testing.T) {
	for selector, want := range tables.Read[map[string]string](t, "testdata/tables/render-descriptor-actions.yaml") {
		t.Run(selector, func(t *testing.T) {
			actions, limits := renderedOf(t, "{rates: [{limit: 5, unit: second}], counters: ["+selector+"]}", "[{}]", "")
			assertYAML(t, "- rules: [{paths: [\"/*\"]}]"+tied+"  "+want, actions)
			assertYAML(t, "[{conditions: ['ratelimit.binding == \"app/limits/l\"'], variables: ["+selector+"], max_value: 5, seconds: 1, namespace: infra/edge}]", limits)
		})
	}
}

// The selectors of conditions come before those of counters, each once.
func TestRenderEachSelectorOnce(t *testing.T) {
	actions, _ := renderedOf(t, `
rates: [{limit: 5, unit: second}]
counters: [context.request.http.host, ratelimit.domain, context.source.address, context.destination.address]
when:
- {selector: context.destination.address, operator: exists}
- {selector: context.destination.address, operator: neq, value: a}
triggers: [{hostnames: [a.example.com]}]
`, "[{}]", "")
	assertYAML(t, `
- rules: [{paths: ["/*"]}]
  configurations:
  - generic_key: {descriptor_key: ratelimit.binding, descriptor_value: app/limits/l}
  - request_headers: {descriptor_key: context.request.http.host, header_name: ":authority"}
  - destination_cluster: {descriptor_key: context.destination.address}
  - generic_key: {descriptor_key: ratelimit.domain, descriptor_value: infra/edge}
  - source_cluster: {descriptor_key: context.source.address}
`, actions)
}

func TestRenderConditions(t *testing.T) {
	for condition, want := range map[string]string{
		"{operator: eq, value: admin}":         `auth.identity.group == "admin"`,
		"{operator: neq, value: admin}":        `auth.identity.group != "admin"`,
		"{operator: exists}":                   `auth.identity.group exists`,
		"{operator: nexists}":                  `auth.identity.group nexists`,
		"{operator: matches, value: '^a\\.b'}": `auth.identity.group matches "^a\\.b"`,
		"{operator: incl, value: admins}":      `auth.identity.group incl "admins"`,
		"{operator: excl, value: admins}":      `auth.identity.group excl "admins"`,
		"{operator: eq, value: ''}":            `auth.identity.group == ""`,
		`{operator: eq, value: 'say "<hi>"'}`:  `auth.identity.group == "say \"<hi>\""`,
	} {
		t.Run(condition, func(t *testing.T) {
			_, limits := renderedOf(t, "{rates: [{limit: 5, unit: second}], when: [{selector: auth.identity.group, "+condition[1:]+"]}", "[{}]", "")
			text, err := json.Marshal(want)
			require.NoError(t, err)
			assertYAML(t, `[{conditions: ['ratelimit.binding == "app/limits/l"', `+string(text)+`], max_value: 5, seconds: 1, namespace: infra/edge}]`, limits)
		})
	}
}

func TestRenderRates(t *testing.T) {
	_, limits := renderedOf(t, `
rates:
- {limit: 1, unit: second}
- {limit: 2, duration: 10, unit: minute}
- {limit: 3, duration: 12, unit: hour}
- {limit: 9223372036854775807, duration: 7, unit: day}
counters: [auth.identity.username]
`, "[{}]", "")
	assertYAML(t, `
- {conditions: ['ratelimit.binding == "app/limits/l"'], variables: [auth.identity.username], max_value: 1, seconds: 1, namespace: infra/edge}
- {conditions: ['ratelimit.binding == "app/limits/l"'], variables: [auth.identity.username], max_value: 2, seconds: 600, namespace: infra/edge}
- {conditions: ['ratelimit.binding == "app/limits/l"'], variables: [auth.identity.username], max_value: 3, seconds: 43200, namespace: infra/edge}
- {conditions: ['ratelimit.binding == "app/limits/l"'], variables: [auth.identity.username], max_value: 9223372036854775807, seconds: 604800, namespace: infra/edge}
`, limits)
}

func TestUnsetSelectors(t *testing.T) {
	l := readLimit(t, "l", `
rates: [{limit: 5, unit: second}]
counters: [context.request.time, auth.identity.username, context.request.http.body, context.request.http.path, context.request.http.headers.x, ratelimit.hitsAddend, context.source.address]
when: [{selector: context.request.http.protocol, operator: exists}]
`)
	assert.Equal(t, []string{"context.request.http.protocol", "context.request.time", "context.request.http.body"}, l.UnsetSelectors())
	assert.Empty(t, readLimit(t, "l", "{rates: [{limit: 5, unit: second}], triggers: [{hostnames: [a.b]}]}").UnsetSelectors())
}
