package ratelimit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/gateway"
)

// valuedField is a field with a type and a value. With a name it is a header or a query
// parameter.
type valuedField struct {
	Type  string `json:"type,omitempty"`
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// plainMatch is a match as it is written, of a route or of a trigger.
type plainMatch struct {
	Path        *valuedField  `json:"path,omitempty"`
	Method      string        `json:"method,omitempty"`
	Headers     []valuedField `json:"headers,omitempty"`
	QueryParams []valuedField `json:"queryParams,omitempty"`
}

type plainTrigger struct {
	Matches   []plainMatch `json:"matches,omitempty"`
	Hostnames []string     `json:"hostnames,omitempty"`
}

func pick(random *rand.Rand, all ...string) string { return all[random.IntN(len(all))] }

// aMatch returns a random match of few values, so that matches are often equal.
func aMatch(random *rand.Rand) plainMatch {
	var m plainMatch
	if random.IntN(3) > 0 {
		m.Path = &valuedField{Type: pick(random, "", "PathPrefix", "Exact"), Value: pick(random, "", "/", "/a", "/b")}
	}
	m.Method = pick(random, "", "GET", "PUT")
	for range random.IntN(3) - 1 + random.IntN(2) {
		m.Headers = append(m.Headers, valuedField{pick(random, "", "Exact", "RegularExpression"), pick(random, "x", "X", "y"), pick(random, "1", "2")})
	}
	for range random.IntN(2) {
		m.QueryParams = append(m.QueryParams, valuedField{pick(random, "", "Exact", "RegularExpression"), pick(random, "q", "Q"), pick(random, "1", "2")})
	}
	return m
}

var someHosts = []string{"a.x.test", "b.x.test", "*.x.test", "*.a.x.test", "x.test", "a.y.test", "*.test"}

func aTrigger(random *rand.Rand) plainTrigger {
	var t plainTrigger
	for range random.IntN(4) {
		t.Matches = append(t.Matches, aMatch(random))
	}
	if random.IntN(3) == 0 || len(t.Matches) == 0 {
		for _, i := range random.Perm(len(someHosts))[:1+random.IntN(2)] {
			t.Hostnames = append(t.Hostnames, someHosts[i])
		}
	}
	return t
}

func list[T any](n int, item func() T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = item()
	}
	return out
}

// equalIn compares a field of a trigger's match with that of a route's match, with Gateway
// API's defaults on both sides.
func equalIn(stated, has valuedField, byDefault, value string) bool {
	fill := func(f valuedField) (string, string) {
		if f.Type == "" {
			f.Type = byDefault
		}
		if f.Value == "" {
			f.Value = value
		}
		return f.Type, f.Value
	}
	aType, aValue := fill(stated)
	bType, bValue := fill(has)
	return aType == bType && aValue == bValue
}

// allStated reports whether a match of a route has each of the fields of a trigger's
// match. Of two with the same name the first counts.
func allStated(stated, has []valuedField, same func(a, b string) bool) bool {
	for i, s := range stated {
		if slices.ContainsFunc(stated[:i], func(o valuedField) bool { return same(o.Name, s.Name) }) {
			continue
		}
		first := slices.IndexFunc(has, func(o valuedField) bool { return same(o.Name, s.Name) })
		if first < 0 || !equalIn(s, has[first], "Exact", "") {
			return false
		}
	}
	return true
}

// chosenBy reports whether every field of the trigger's match equals that of the rule's
// match.
func chosenBy(stated, has plainMatch) bool {
	if stated.Path != nil {
		path := valuedField{}
		if has.Path != nil {
			path = *has.Path
		}
		if !equalIn(*stated.Path, path, "PathPrefix", "/") {
			return false
		}
	}
	return (stated.Method == "" || stated.Method == has.Method) &&
		allStated(stated.Headers, has.Headers, strings.EqualFold) &&
		allStated(stated.QueryParams, has.QueryParams, func(a, b string) bool { return a == b })
}

// meansOneOf returns the hostnames of a small set that match a hostname.
func meansOneOf(host string) []string {
	world := []string{"a.x.test", "b.x.test", "c.x.test", "d.a.x.test", "e.d.a.x.test", "x.test", "a.y.test", "y.test", "z.test"}
	return slices.DeleteFunc(world, func(name string) bool {
		suffix, wild := strings.CutPrefix(host, "*")
		return host != "" && name != host && (!wild || !strings.HasSuffix(name, suffix))
	})
}

func meet(host string, hosts []string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool {
		return slices.ContainsFunc(meansOneOf(h), func(name string) bool { return slices.Contains(meansOneOf(host), name) })
	})
}

// expected is a limit on a rule, worked out match by match.
type expected struct {
	matches                    bool
	by, alsoMatches, reachable []string
	found                      [][]bool
	hostnames                  []string // of the triggers; without which it would match, if it does not
}

// onRule binds a limit to the matches of a rule; all are those of the route.
func onRule(triggers []plainTrigger, rule []plainMatch, texts []string, all []plainMatch, hosts []string) expected {
	if len(triggers) == 0 {
		return expected{matches: true}
	}
	var out expected
	chosen, forAll, without := make([]bool, len(rule)), false, []string(nil)
	for _, t := range triggers {
		inside := len(t.Hostnames) == 0
		for _, h := range t.Hostnames {
			if meet(h, hosts) {
				inside, out.reachable = true, append(out.reachable, h)
			}
		}
		found := make([]bool, len(t.Matches))
		for m, stated := range t.Matches {
			found[m] = slices.ContainsFunc(all, func(has plainMatch) bool { return chosenBy(stated, has) })
		}
		out.found = append(out.found, found)
		some := false
		for i, has := range rule {
			if len(t.Matches) == 0 || slices.ContainsFunc(t.Matches, func(stated plainMatch) bool { return chosenBy(stated, has) }) {
				some, chosen[i] = true, chosen[i] || inside
			}
		}
		switch {
		case some && inside:
			forAll, out.hostnames = forAll || len(t.Hostnames) == 0, append(out.hostnames, t.Hostnames...)
		case some:
			without = append(without, t.Hostnames...)
		}
	}
	out.matches = slices.Contains(chosen, true)
	switch {
	case !out.matches:
		out.hostnames = without
	case forAll:
		out.hostnames = nil
	}
	slices.Sort(out.hostnames)
	out.hostnames = slices.Compact(out.hostnames)
	for i := range rule {
		switch {
		case chosen[i]:
			out.by = append(out.by, texts[i])
		case out.matches:
			out.alsoMatches = append(out.alsoMatches, texts[i])
		}
	}
	return out
}

// Binding by criteria gives the same result as comparing the fields of each match.
func TestBindAgreesWithReference(t *testing.T) {
	var bound, shadowed, apart int
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 6))
		rules := list(1+random.IntN(4), func() []plainMatch { return list(1+random.IntN(3), func() plainMatch { return aMatch(random) }) })
		limits := list(1+random.IntN(4), func() []plainTrigger { return list(random.IntN(3), func() plainTrigger { return aTrigger(random) }) })
		hosts := list(1+random.IntN(2), func() string { return pick(random, append([]string{""}, someHosts...)...) })
		b := boundAtRandom(t, rules, limits, hosts)
		somewhere, excluded := make([]bool, len(b)), make([]bool, len(b))
		for rule := range rules {
			var at []int
			for i, triggers := range limits {
				want := onRule(triggers, rules[rule], b[i].Route.Texts(rule), slices.Concat(rules...), hosts)
				l := &b[i]
				got := expected{matches: l.Matches(rule), by: l.By(rule), alsoMatches: l.AlsoMatches(rule), hostnames: l.Hostnames(rule)}
				for _, c := range l.Triggers {
					got.reachable, got.found = append(got.reachable, c.Reachable...), append(got.found, c.Found)
				}
				require.Equal(t, want, got, "seed %d, rule %d, limit %d: %s on %s for %v", seed, rule, i, asJSON(t, triggers), asJSON(t, rules), hosts)
				if want.matches {
					at = append(at, i)
				}
				somewhere[i], excluded[i] = somewhere[i] || want.matches, excluded[i] || !want.matches && len(want.hostnames) > 0
			}
			first := -1
			if len(at) > 0 {
				first = at[0]
			}
			require.Equal(t, at, b.At(rule), "seed %d", seed)
			require.Equal(t, first, b.First(rule), "seed %d", seed)
			bound, shadowed, apart = bound+min(len(at), 1), shadowed+max(len(at)-1, 0), apart+len(limits)-len(at)
		}
		for i := range b {
			require.Equal(t, somewhere[i], b[i].MatchesAny(), "seed %d, limit %d", seed, i)
			require.Equal(t, excluded[i] && !somewhere[i], b[i].ExcludedByHostnames(), "seed %d, limit %d", seed, i)
		}
	}
	for what, n := range map[string]int{"bound": bound, "shadowed": shadowed, "unmatched": apart} {
		require.Greater(t, n, 1000, "too few limits are %s to test anything", what)
	}
}

// boundAtRandom binds limits that are read from their JSON.
func boundAtRandom(t *testing.T, rules [][]plainMatch, limits [][]plainTrigger, hosts []string) Binding {
	t.Helper()
	type rule struct {
		Matches []plainMatch `json:"matches"`
	}
	var all []rule
	for _, matches := range rules {
		all = append(all, rule{matches})
	}
	var written []string
	for i, triggers := range limits {
		written = append(written, fmt.Sprintf("l%d", i), asJSON(t, triggers))
	}
	route := NewRoute(newGatewayRoute(t, gateway.KindHTTPRoute, asJSON(t, all)))
	return Bind(limitsOf(t, written...), route, hosts)
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}
