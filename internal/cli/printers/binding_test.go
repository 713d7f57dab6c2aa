package printers

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
)

func TestBindingLine(t *testing.T) {
	from := api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "toystore", Name: "limits"}
	get, post := "GET PathPrefix /toys", "POST PathPrefix /toys"
	for name, c := range map[string]struct {
		binding api.Binding
		several bool
		want    string
	}{
		"bound by its triggers": {
			binding: api.Binding{State: api.BindingBound, By: []string{get, post}},
			want:    "limits.toys of toystore/limits is bound to rule-1 by GET PathPrefix /toys, POST PathPrefix /toys",
		},
		"bound without triggers": {
			binding: api.Binding{State: api.BindingBound},
			want:    "limits.toys of toystore/limits is bound to rule-1",
		},
		"bound to several rules without triggers, by an override": {
			binding: api.Binding{State: api.BindingBound, Block: "overrides"}, several: true,
			want: "limits.toys of toystore/limits (overrides) is bound to … rules",
		},
		"bound for some hostnames": {
			binding: api.Binding{State: api.BindingBound, By: []string{get}, Hostnames: []string{"a.example.com", "*.b.example.com"}},
			want:    "limits.toys of toystore/limits is bound to rule-1 by GET PathPrefix /toys for requests to a.example.com, *.b.example.com",
		},
		"bound beyond what its triggers ask for": {
			binding: api.Binding{State: api.BindingBound, By: []string{get}, AlsoMatches: []string{post, "PathPrefix /dolls"}},
			want:    "limits.toys of toystore/limits is bound to rule-1 by GET PathPrefix /toys; also applies to POST PathPrefix /toys, PathPrefix /dolls",
		},
		"shadowed": {
			binding: api.Binding{State: api.BindingShadowed, By: []string{post}, AlsoMatches: []string{get}, ShadowedBy: "limits.readToys"},
			want:    "limits.toys of toystore/limits is shadowed on rule-1 by limits.readToys … POST PathPrefix /toys",
		},
		"shadowed without triggers": {
			binding: api.Binding{State: api.BindingShadowed, ShadowedBy: "limits.readToys"},
			want:    "limits.toys of toystore/limits is shadowed on rule-1 by limits.readToys",
		},
		"unmatched": {
			binding: api.Binding{State: api.BindingUnmatched},
			want:    "limits.toys of toystore/limits is not bound to rule-1: its triggers select none of its matches",
		},
		"unmatched on several rules": {
			binding: api.Binding{State: api.BindingUnmatched}, several: true,
			want: "limits.toys of toystore/limits is not bound to any of these rules: its triggers select none of their matches",
		},
		"kept from it by its hostnames": {
			binding: api.Binding{State: api.BindingUnmatched, Hostnames: []string{"a.example.com", "*.b.example.com"}},
			want:    "limits.toys of toystore/limits is not bound to rule-1: the route does not serve a.example.com, *.b.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.binding.Rule, c.binding.From = "limits.toys", from
			if c.binding.Block == "" {
				c.binding.Block = "bare"
			}
			got := (&textWriter{}).bindingLine(c.binding, "rule-1", c.several)
			messages.Golden(t, got)
			for part := range strings.SplitSeq(c.want, " … ") {
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
		require.NoError(t, Printer{Out: &out, Format: Table}.Explanations([]api.Explanation{{Path: path, Bindings: []api.Binding{b}}}))
		require.NoError(t, Printer{Out: &out, Format: Tree}.Explanations([]api.Explanation{{Path: path, Bindings: []api.Binding{b}}}))
		assert.NotContains(t, out.String(), "\x1b")
		assert.NotContains(t, out.String(), "\r")
		assert.Contains(t, out.String(), "a [2Jb  c")
	}
}
