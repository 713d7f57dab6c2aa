package ui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

func object(kind, namespace, name string, rules ...string) Object {
	return Object{Ref: api.Ref{Kind: kind, Namespace: namespace, Name: name}, Rules: rules}
}

func TestSearch(t *testing.T) {
	s := newIndexed(fakeState{objects: []Object{
		{Ref: api.Ref{Kind: "AuthPolicy", Namespace: "app", Name: "toystore-auth"}, Policy: true, Rules: []string{"rules.authentication.sso"}},
		object("AuthPolicy", "infra", "gw-auth", "rules.authentication.sso"),
		object("Gateway", "infra", "edge"),
		{Ref: api.Ref{Kind: "HTTPRoute", Namespace: "app", Name: "toystore"}, Hostnames: []string{"toys.Example.com"}},
		object("Namespace", "", "app"),
	}})
	for query, want := range map[string][]string{
		"toystore":      {"HTTPRoute app/toystore", "AuthPolicy app/toystore-auth"},
		"APP/toystore":  {"HTTPRoute app/toystore", "AuthPolicy app/toystore-auth"},
		"app":           {"Namespace app", "HTTPRoute app/toystore", "AuthPolicy app/toystore-auth"},
		"sso gw":        {"AuthPolicy infra/gw-auth"},
		"gateway":       {"Gateway infra/edge"},
		"toys.example.": {"HTTPRoute app/toystore"},
		"none":          nil,
	} {
		t.Run(query, func(t *testing.T) {
			found := s.search(query, "", 10)
			var got []string
			for _, r := range found.Items {
				got = append(got, r.Ref.String())
			}
			assert.Equal(t, want, got)
			assert.Equal(t, len(want), found.Total)
		})
	}
	assert.Equal(t, "rules.authentication.sso", s.search("sso gw", "", 1).Items[0].Match)
	limited := s.search("", "", 2)
	assert.Len(t, limited.Items, 2)
	assert.Equal(t, 5, limited.Total)
	assert.Equal(t, 1, s.search("app", "Route", 10).Total)
}

func TestCountsHavePoliciesFirst(t *testing.T) {
	s := newIndexed(newFakeState())
	assert.Equal(t, []KindCount{
		{Kind: api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}, Policy: true, Objects: 1},
		{Kind: toystore.PolicyKind(), Objects: 1},
	}, s.counts())
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		var objects []Object
		for i := range n {
			objects = append(objects,
				Object{Ref: api.Ref{Kind: "HTTPRoute", Namespace: "app", Name: fmt.Sprintf("route-%d", i)}, Hostnames: []string{fmt.Sprintf("r%d.example.com", i)}},
				object("AuthPolicy", "app", fmt.Sprintf("policy-%d", i), "rules.authentication.sso", "rules.authorization.customers"))
		}
		s := newIndexed(fakeState{objects: objects})
		s.search("", "", 1)
		b.Run(fmt.Sprintf("%d routes", n), func(b *testing.B) {
			for b.Loop() {
				s.search("example 77", "", 12)
			}
		})
	}
}
