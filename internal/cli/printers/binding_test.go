package printers

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func TestBindingLine(t *testing.T) {
	from := api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "toystore", Name: "limits"}
	for name, c := range tables.Read[map[string]struct {
		Binding api.Binding
		Several bool
		Want    string
	}](t, "testdata/tables/binding-line.yaml") {
		t.Run(name, func(t *testing.T) {
			c.Binding.Rule, c.Binding.From = "limits.toys", from
			if c.Binding.Block == "" {
				c.Binding.Block = "bare"
			}
			got := strip(bindingLine(c.Binding, "rule-1", c.Several))
			messages.Golden(t, got)
			for part := range strings.SplitSeq(c.Want, " … ") {
				assert.Contains(t, got, part)
			}
		})
	}
}

func TestRouteRule(t *testing.T) {
	on := func(listener, route, rule string) []api.PathElement {
		return []api.PathElement{
			{Kind: "Gateway", Namespace: "infra", Name: "edge"},
			{Kind: "Listener", Namespace: "infra", Name: "edge", Section: listener},
			{Kind: "HTTPRoute", Namespace: "app", Name: route},
			{Kind: "HTTPRouteRule", Namespace: "app", Name: route, Section: rule},
		}
	}
	for name, c := range map[string]struct {
		paths   [][]api.PathElement
		want    string
		several bool
	}{
		"one rule":                             {[][]api.PathElement{on("http", "a", "toys")}, "toys", false},
		"one rule on two listeners":            {[][]api.PathElement{on("http", "a", "toys"), on("https", "a", "toys")}, "toys", false},
		"two rules of a route":                 {[][]api.PathElement{on("http", "a", "toys"), on("http", "a", "admin")}, "toys", true},
		"rules of one name, of two routes":     {[][]api.PathElement{on("http", "a", "toys"), on("http", "b", "toys")}, "toys", true},
		"a path that ends above rules, or not": {[][]api.PathElement{{{Kind: "Gateway", Namespace: "infra", Name: "edge"}}}, "the path", false},
	} {
		t.Run(name, func(t *testing.T) {
			rule, several := routeRule(c.paths)
			assert.Equal(t, c.want, rule)
			assert.Equal(t, c.several, several)
		})
	}
}

func TestBindingsControlCharacters(t *testing.T) {
	bad := "a\x1b[2Jb\r\nc"
	for _, state := range []api.BindingState{api.BindingBound, api.BindingShadowed, api.BindingUnmatched} {
		b := api.Binding{Rule: bad, From: api.Ref{Name: bad}, State: state, By: []string{bad}, AlsoMatches: []string{bad}, Hostnames: []string{bad}, ShadowedBy: bad}
		path := []api.PathElement{{Kind: "HTTPRouteRule", Section: bad}}
		var out bytes.Buffer
		require.NoError(t, Printer{Out: &out, Format: Table}.Explanations(api.ExplanationList{Items: []api.Explanation{{Path: path, Bindings: []api.Binding{b}}}}))
		require.NoError(t, Printer{Out: &out, Format: Tree}.Explanations(api.ExplanationList{Items: []api.Explanation{{Path: path, Bindings: []api.Binding{b}}}}))
		assert.NotContains(t, out.String(), "\x1b")
		assert.NotContains(t, out.String(), "\r")
		assert.Contains(t, out.String(), "a [2Jb c")
	}
}
