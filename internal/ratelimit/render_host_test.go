package ratelimit

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

const onlyFiveASecond = "rates: [{limit: 5, unit: second}]\n"

// Hostnames of triggers are rendered as hosts of the action, by rule, or as a condition.
func TestRenderHostnames(t *testing.T) {
	const rules = "[{matches: [{path: {value: /a}}]}, {matches: [{path: {value: /b}}]}]"
	for name, c := range tables.Read[map[string]struct {
		Triggers  string
		Hosts     []string // of the path
		A, B      []string // of the rules' items
		Condition string
	}](t, "testdata/tables/render-hostnames.yaml") {
		t.Run(name, func(t *testing.T) {
			r := NewRendering(edge)
			addAll(r, fromRoute, []*Limit{readLimit(t, "l", onlyFiveASecond+"triggers: "+c.Triggers)}, newGatewayRoute(t, gateway.KindHTTPRoute, rules), c.Hosts...)
			actions, limits := r.Documents()
			require.Len(t, actions, 1)
			assert.Equal(t, []api.GatewayRule{{Paths: []string{"/a*"}, Hosts: c.A}, {Paths: []string{"/b*"}, Hosts: c.B}}, actions[0].Rules)
			conditions, configurations := []string{`ratelimit.binding == "app/limits/l"`}, 1
			if c.Condition != "" {
				conditions, configurations = append(conditions, c.Condition), 2
			}
			assert.Equal(t, conditions, limits[0].Conditions)
			assert.Len(t, actions[0].Configurations, configurations)
		})
	}
}

// The expression for hostnames matches the hostnames that Gateway API matches.
func TestHostnameExpression(t *testing.T) {
	c := hostCondition([]string{"*.acme.com", "dolls.org"})
	re := regexp.MustCompile(*c.Value)
	for host, want := range map[string]bool{
		"a.acme.com": true, "a.b.acme.com": true, "dolls.org": true,
		"acme.com": false, ".acme.com": false, "aacme.com": false, "a.acme.com.evil": false, "dollsxorg": false, "x.dolls.org": false, "": false,
	} {
		assert.Equal(t, want, re.MatchString(host), host)
	}
	value, err := strconv.Unquote(strings.TrimPrefix(c.String(), "context.request.http.host matches "))
	require.NoError(t, err)
	assert.Equal(t, *c.Value, value)
}

// A rule of several listeners is rendered once, with the hosts of all.
func TestRenderMergesListenerHosts(t *testing.T) {
	for name, c := range map[string]struct {
		listeners [][]string
		want      []string
	}{
		"the same":                       {[][]string{{"*.acme.com"}, {"*.acme.com"}}, []string{"*.acme.com"}},
		"different ones":                 {[][]string{{"b.acme.com"}, {"a.acme.com"}}, []string{"a.acme.com", "b.acme.com"}},
		"one within another":             {[][]string{{"a.acme.com", "*.eu.acme.com"}, {"*.acme.com"}}, []string{"*.acme.com"}},
		"one of them for any":            {[][]string{{"a.acme.com"}, {""}}, nil},
		"wildcards beside one another":   {[][]string{{"*.acme.com"}, {"*.acme.org", "acme.com"}}, []string{"*.acme.com", "*.acme.org", "acme.com"}},
		"none, by which no request come": {[][]string{{"a.acme.com"}, {}}, []string{"a.acme.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, limit, route := NewRendering(edge), readLimit(t, "l", onlyFiveASecond), newGatewayRoute(t, gateway.KindHTTPRoute, "[{}]")
			for _, hosts := range c.listeners {
				addAll(r, fromRoute, []*Limit{limit}, route, hosts...)
			}
			actions, limits := r.Documents()
			require.Len(t, actions, 1)
			assert.Equal(t, []api.GatewayRule{{Paths: []string{"/*"}, Hosts: c.want}}, actions[0].Rules)
			assert.Len(t, limits, 1)
		})
	}
}

// A rule without hosts would apply to any host, so an unreachable rule is omitted.
func TestRenderOmitsUnreachableRules(t *testing.T) {
	r := NewRendering(edge)
	addAll(r, fromRoute, []*Limit{readLimit(t, "l", onlyFiveASecond)}, newGatewayRoute(t, gateway.KindHTTPRoute, "[{}]"))
	actions, limits := r.Documents()
	assert.Empty(t, actions)
	assert.Empty(t, limits)
}
