package guard_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// rateWorld is a gateway of two listeners, two routes, a policy on the gateway and
// one on the first route. It is worked out here in the plainest way: limit by limit,
// rule by rule, match by match.
type rateWorld struct {
	listeners [2]string // hostnames; the first takes every route
	routes    [2]rateRoute
	top, own  *ratePolicy // nil for none
}

type rateRoute struct {
	hosts []string
	rules []rateRule
}

type rateRule struct {
	name    string
	matches []rateMatch
}

// rateMatch is a path and a method, either "" where it is not stated.
type rateMatch struct{ path, method string }

type ratePolicy struct {
	overrides bool
	limits    map[string]rateLimit
}

type rateLimit struct {
	requests int
	triggers []rateTrigger
}

type rateTrigger struct {
	matches []rateMatch
	hosts   []string
}

func (m rateMatch) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	if m.path != "" {
		out["path"] = map[string]any{"value": m.path}
	}
	if m.method != "" {
		out["method"] = m.method
	}
	return json.Marshal(out)
}

func flow(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

var rateRoutes = [2]string{"r", "s"}

// docs are the objects of the world by name; of a policy that is not there none.
func (w rateWorld) docs(t *testing.T) map[string]string {
	t.Helper()
	gw := gatewayDoc("g", "istio", "l0", "l1")
	for i, h := range w.listeners {
		if h != "" {
			gw = strings.Replace(gw, fmt.Sprintf("{name: l%d,", i), fmt.Sprintf("{name: l%d, hostname: %q,", i, h), 1)
		}
	}
	out := map[string]string{"g": gw}
	for i, name := range rateRoutes {
		var rules []any
		for _, r := range w.routes[i].rules {
			rule := map[string]any{"matches": r.matches}
			if r.name != "" {
				rule["name"] = r.name
			}
			rules = append(rules, rule)
		}
		out[name] = strings.Replace(routeDoc(name, flow(t, rules), "g"), "spec:\n", "spec:\n  hostnames: "+flow(t, w.routes[i].hosts)+"\n", 1)
	}
	if w.top != nil {
		out["top"] = rateTop(w.top.spec(t))
	}
	if w.own != nil {
		out["own"] = rateOwn(w.own.spec(t))
	}
	return out
}

func (p *ratePolicy) spec(t *testing.T) string {
	t.Helper()
	all := map[string]any{}
	for name, l := range p.limits {
		var triggers []any
		for _, trigger := range l.triggers {
			stated := map[string]any{}
			if len(trigger.matches) > 0 {
				stated["matches"] = trigger.matches
			}
			if len(trigger.hosts) > 0 {
				stated["hostnames"] = trigger.hosts
			}
			triggers = append(triggers, stated)
		}
		limit := map[string]any{"rates": []any{map[string]any{"limit": l.requests, "unit": "second"}}}
		if len(triggers) > 0 {
			limit["triggers"] = triggers
		}
		all[name] = limit
	}
	block := "defaults"
	if p.overrides {
		block = "overrides"
	}
	return block + ": {strategy: merge, limits: " + flow(t, all) + "}"
}

func (w rateWorld) view(t *testing.T) *snapshot.View {
	t.Helper()
	all := w.docs(t)
	text := []string{rate}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text = append(text, all[name])
	}
	return world(t, docs(text...))
}

// rateNames are all names that requests are for.
var rateNames = []string{"x.a.test", "z.a.test", "y.b.test", "w.b.test", "other.test"}

func namesOf(hosts ...string) map[string]bool {
	out := make(map[string]bool)
	for _, name := range rateNames {
		for _, h := range hosts {
			suffix, wild := strings.CutPrefix(h, "*")
			if h == "" || h == name || wild && strings.HasSuffix(name, suffix) {
				out[name] = true
			}
		}
	}
	return out
}

// ratePath is a rule of a route at a listener.
type ratePath struct{ listener, route, rule int }

// names are those by which requests reach a path; none where it is not there.
func (w rateWorld) names(p ratePath) map[string]bool {
	out := namesOf(w.listeners[p.listener])
	if hosts := w.routes[p.route].hosts; len(hosts) > 0 {
		own := namesOf(hosts...)
		maps.DeleteFunc(out, func(name string, _ bool) bool { return !own[name] })
	}
	return out
}

func (w rateWorld) paths() []ratePath {
	var out []ratePath
	for l := range w.listeners {
		for r := range w.routes {
			for rule := range w.routes[r].rules {
				if p := (ratePath{l, r, rule}); len(w.names(p)) > 0 {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// rateInForce is a limit in force on a path, and whose it is.
type rateInForce struct {
	rateLimit
	name      string
	top       bool
	overrides bool
}

// inForce are the limits in force on a path, by name.
func (w rateWorld) inForce(p ratePath) []rateInForce {
	out := make(map[string]rateInForce)
	if w.own != nil && p.route == 0 {
		for name, l := range w.own.limits {
			out[name] = rateInForce{l, name, false, w.own.overrides}
		}
	}
	if w.top != nil {
		for name, l := range w.top.limits {
			if _, there := out[name]; !there || w.top.overrides {
				out[name] = rateInForce{l, name, true, w.top.overrides}
			}
		}
	}
	return slices.SortedFunc(maps.Values(out), func(a, b rateInForce) int { return strings.Compare(a.name, b.name) })
}

// matches reports whether a limit matches the rule of a path.
func (w rateWorld) matches(l rateLimit, p ratePath) bool {
	return len(l.triggers) == 0 || slices.ContainsFunc(l.triggers, func(t rateTrigger) bool {
		inside := len(t.hosts) == 0 || slices.ContainsFunc(t.hosts, func(h string) bool { return w.reaches(h, p) })
		return inside && slices.ContainsFunc(w.routes[p.route].rules[p.rule].matches, func(has rateMatch) bool {
			return len(t.matches) == 0 || slices.ContainsFunc(t.matches, func(stated rateMatch) bool {
				return (stated.path == "" || stated.path == has.path || stated.path == "/" && has.path == "") &&
					(stated.method == "" || stated.method == has.method)
			})
		})
	})
}

// reaches reports whether some request for a hostname reaches a path.
func (w rateWorld) reaches(host string, p ratePath) bool {
	names := w.names(p)
	for name := range namesOf(host) {
		if names[name] {
			return true
		}
	}
	return false
}

// bound is the first limit by name that matches the rule of a path.
func (w rateWorld) bound(p ratePath) (rateInForce, bool) {
	for _, l := range w.inForce(p) {
		if w.matches(l.rateLimit, p) {
			return l, true
		}
	}
	return rateInForce{}, false
}

// positions are those of a route's rules before, by those after, as the guard pairs
// them.
func positions(t *testing.T, before, after *snapshot.View, name string) []int {
	t.Helper()
	was, ok := before.Get(routeRef(name)).(*gateway.Route)
	require.True(t, ok)
	is, ok := after.Get(routeRef(name)).(*gateway.Route)
	require.True(t, ok)
	return gateway.MatchRules(was, is)
}

func some[T any](random *rand.Rand, most int, item func() T) []T {
	out := make([]T, 1+random.IntN(most))
	for i := range out {
		out[i] = item()
	}
	return out
}

func anyOf[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }

func randomRateMatch(random *rand.Rand) rateMatch {
	return rateMatch{anyOf(random, "/a", "/b", "/c", "/"), anyOf(random, "", "", "GET")}
}

func randomRateRoute(random *rand.Rand) rateRoute {
	r := rateRoute{hosts: anyOf(random, nil, []string{"x.a.test"}, []string{"*.a.test"}, []string{"y.b.test", "x.a.test"})}
	names := []string{"one", "two", "three"}
	for i := range 1 + random.IntN(3) {
		rule := rateRule{matches: some(random, 2, func() rateMatch { return randomRateMatch(random) })}
		if random.IntN(4) == 0 {
			rule.name = names[i]
		}
		r.rules = append(r.rules, rule)
	}
	return r
}

func randomRatePolicy(random *rand.Rand, overrides bool) *ratePolicy {
	p := &ratePolicy{overrides: overrides, limits: make(map[string]rateLimit)}
	for range 1 + random.IntN(2) {
		l := rateLimit{requests: 1 + random.IntN(2)}
		for range random.IntN(3) {
			t := rateTrigger{hosts: anyOf(random, nil, nil, []string{"x.a.test"}, []string{"y.b.test"}, []string{"*.b.test", "z.a.test"})}
			if random.IntN(4) > 0 || len(t.hosts) == 0 {
				t.matches = some(random, 2, func() rateMatch {
					return rateMatch{anyOf(random, "/a", "/b", "/c", "/", ""), anyOf(random, "", "GET")}
				})
			}
			l.triggers = append(l.triggers, t)
		}
		p.limits[anyOf(random, "a", "b", "c")] = l
	}
	return p
}
