package guard_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

func randomRateWorld(random *rand.Rand) rateWorld {
	w := rateWorld{listeners: [2]string{"", anyOf(random, "", "*.a.test", "x.a.test", "*.b.test")}}
	w.routes = [2]rateRoute{randomRateRoute(random), randomRateRoute(random)}
	if random.IntN(5) > 0 {
		w.top = randomRatePolicy(random, random.IntN(4) > 0)
	}
	if random.IntN(3) > 0 {
		w.own = randomRatePolicy(random, random.IntN(4) == 0)
	}
	return w
}

// edited is the world after one write, and the object that is written.
func (w rateWorld) edited(random *rand.Rand) (after rateWorld, name string) {
	switch random.IntN(5) {
	case 0:
		w.listeners[1] = anyOf(random, "", "*.a.test", "x.a.test", "*.b.test", "y.b.test")
		return w, "g"
	case 1, 2:
		i := random.IntN(2)
		w.routes[i] = w.routes[i].edited(random)
		return w, rateRoutes[i]
	case 3:
		w.top = w.top.edited(random, random.IntN(4) > 0)
		return w, "top"
	default:
		w.own = w.own.edited(random, random.IntN(4) == 0)
		return w, "own"
	}
}

func (r rateRoute) edited(random *rand.Rand) rateRoute {
	r.rules = slices.Clone(r.rules)
	i := random.IntN(len(r.rules))
	switch random.IntN(6) {
	case 0:
		return randomRateRoute(random)
	case 1:
		r.hosts = randomRateRoute(random).hosts
	case 2:
		r.rules = slices.Insert(r.rules, i, rateRule{matches: []rateMatch{randomRateMatch(random)}})
	case 3:
		r.rules[i].matches = append(slices.Clone(r.rules[i].matches), randomRateMatch(random))
	case 4:
		r.rules[i].matches = []rateMatch{randomRateMatch(random)}
	default:
		slices.Reverse(r.rules)
	}
	return r
}

func (p *ratePolicy) edited(random *rand.Rand, overrides bool) *ratePolicy {
	if p == nil || random.IntN(6) == 0 {
		return randomRatePolicy(random, overrides)
	}
	if random.IntN(6) == 0 {
		return nil
	}
	out := randomRatePolicy(random, p.overrides)
	for name, l := range p.limits {
		if random.IntN(4) > 0 {
			out.limits[name] = l
		}
	}
	return out
}

// randomWrite is a write and what the guard says of it.
type randomWrite struct {
	was, is  rateWorld
	before   *snapshot.View
	name     string
	decision *guard.Decision
}

func (x *randomWrite) has(list []guard.Finding, codes ...api.ReasonCode) bool {
	return slices.ContainsFunc(list, func(f guard.Finding) bool { return slices.Contains(codes, f.Code) })
}

func randomRateWrite(t *testing.T, seed uint64) (*randomWrite, bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 3))
	x := &randomWrite{was: randomRateWorld(random)}
	x.is, x.name = x.was.edited(random)
	was, is := x.was.docs(t), x.is.docs(t)
	if was[x.name] == is[x.name] {
		return nil, false
	}
	x.before = x.was.view(t)
	var c guard.Change
	if doc, there := is[x.name]; there {
		c = change(x.before, read(t, x.before, doc))
	} else {
		c = guard.Change{Operation: guard.Delete, Before: x.before.Get(read(t, x.before, was[x.name]).Ref())}
	}
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), x.before, c, nil)
	require.NoError(t, err)
	x.decision = ev
	return x, true
}

// paired calls visit with each path before and the one that it is after, if it still
// is there.
func (x *randomWrite) paired(t *testing.T, visit func(was, is ratePath, there bool)) {
	t.Helper()
	now := x.is.paths()
	for _, p := range x.was.paths() {
		after := p
		if rateRoutes[p.route] == x.name {
			after.rule = slices.Index(positions(t, x.before, x.decision.After, x.name), p.rule)
		}
		visit(p, after, slices.Contains(now, after))
	}
}

// gives reports whether a policy has the same override.
func (p *ratePolicy) gives(l rateInForce) bool {
	if p == nil || !p.overrides {
		return false
	}
	has, ok := p.limits[l.name]
	return ok && reflect.DeepEqual(has, l.rateLimit)
}

// lost reports whether an override that was bound to the rule of a path is not any
// more: it is gone, does not match, or a limit that is no override as high comes
// before it.
func (x *randomWrite) lost(l rateInForce, at ratePath) bool {
	policy := x.is.own
	if l.top {
		policy = x.is.top
	}
	if !policy.gives(l) {
		return true
	}
	for _, now := range x.is.inForce(at) {
		if now.name == l.name && now.top != l.top {
			return false // a higher override has its name
		}
	}
	if !x.is.matches(l.rateLimit, at) {
		return true
	}
	holder, _ := x.is.bound(at)
	return holder.name != l.name && (!holder.overrides || l.top && !holder.top)
}

const randomWrites = 1000

func TestUnboundOverridesAreLostInRandomWorlds(t *testing.T) {
	var denied, kept int
	for seed := range uint64(randomWrites) {
		x, ok := randomRateWrite(t, seed)
		if !ok {
			continue
		}
		lost, sure := false, true
		x.paired(t, func(was, is ratePath, there bool) {
			l, some := x.was.bound(was)
			if !some || !l.overrides {
				return
			}
			lost = lost || there && x.lost(l, is) && x.stays(was, is)
			// Where traffic that it held goes otherwise is not worked out here.
			sure = sure && there && x.was.listeners == x.is.listeners && reflect.DeepEqual(x.was.routes, x.is.routes)
		})
		reported := x.has(x.decision.Denials, api.ReasonOverrideEvaded, api.ReasonOverrideRemoved)
		switch {
		case lost:
			denied++
			require.True(t, reported, "seed %d, %s: nothing said of an override that is lost\n%s", seed, x.name, x.show(t))
		case sure && !x.silentlyLost():
			kept++
			require.False(t, reported, "seed %d, %s: %v\n%s", seed, x.name, codes(t, x.decision), x.show(t))
		}
	}
	require.Greater(t, denied, 50)
	require.Greater(t, kept, 100)
}

// stays reports whether some request is served by the rule of a path before and after the
// write.
func (x *randomWrite) stays(was, is ratePath) bool {
	r, _ := x.before.Get(routeRef(rateRoutes[was.route])).(*gateway.Route)
	after, _ := x.decision.After.Get(routeRef(rateRoutes[is.route])).(*gateway.Route)
	g := x.before.Gateway("infra", "g")
	at := gateway.OwnListeners(g)[was.listener]
	before := x.before.Router(g, gateway.Reading{})
	now := x.decision.After.Router(x.decision.After.Gateway("infra", "g"), gateway.Reading{})
	stays := func(m gateway.Move) bool {
		from, to := gateway.Served{Listener: &at, Route: r, Rule: was.rule}, gateway.Served{Listener: &at, Route: after, Rule: is.rule}
		return m.Request != nil && m.From.Same(from) && m.To.Same(to)
	}
	for m := range before.Witnesses(&gateway.Path{Gateway: g, Listener: at.Listener, Route: r, Rule: was.rule}, now) {
		if stays(m) {
			return true
		}
	}
	for m := range gateway.Moves(before, now, []*gateway.Route{r}, []*gateway.Route{after}, gateway.MoveLimits{}) {
		if stays(m) {
			return true
		}
	}
	return false
}

// silentlyLost reports whether an override that was bound to nothing is taken from a
// path: it was given there, and is a loss all the same.
func (x *randomWrite) silentlyLost() bool {
	for _, p := range []struct{ was, is *ratePolicy }{{x.was.top, x.is.top}, {x.was.own, x.is.own}} {
		if p.was == nil || !p.was.overrides {
			continue
		}
		for name, l := range p.was.limits {
			if !p.is.gives(rateInForce{rateLimit: l, name: name}) {
				return true
			}
		}
	}
	return false
}

func (x *randomWrite) show(t *testing.T) string {
	t.Helper()
	var out []string
	for name, doc := range x.was.docs(t) {
		out = append(out, "before "+name+":\n"+doc)
	}
	return strings.Join(append(out, "after "+x.name+":\n"+x.is.docs(t)[x.name], strings.Join(messages(x.decision), "\n")), "\n")
}

// ratesOf is a limit of a policy over all paths that it is in force on.
type ratesOf struct {
	paths   int
	matched bool
	outside map[string]bool // hostnames of its triggers that reach none of them
}

func (w rateWorld) over(name string, top bool) ratesOf {
	out := ratesOf{outside: make(map[string]bool)}
	reached := make(map[string]bool)
	for _, p := range w.paths() {
		for _, l := range w.inForce(p) {
			if l.name != name || l.top != top {
				continue
			}
			out.paths++
			out.matched = out.matched || w.matches(l.rateLimit, p)
			for _, trigger := range l.triggers {
				for _, h := range trigger.hosts {
					reached[h] = reached[h] || w.reaches(h, p)
					out.outside[h] = !reached[h]
				}
			}
		}
	}
	return out
}

// A policy is denied for triggers that match nothing if they did not so before.
func TestUnmatchedTriggersAreDeniedInRandomWorlds(t *testing.T) {
	var denied, allowed int
	for seed := range uint64(randomWrites) {
		x, ok := randomRateWrite(t, seed)
		if !ok || x.name != "top" && x.name != "own" {
			continue
		}
		policy := x.is.own
		if x.name == "top" {
			policy = x.is.top
		}
		want := false
		if policy != nil {
			for name := range policy.limits {
				want = want || x.introduces(name, x.name == "top")
			}
		}
		got := x.has(x.decision.Denials, api.ReasonTriggerUnmatched)
		require.Equal(t, want, got, "seed %d\n%s", seed, x.show(t))
		denied, allowed = denied+btoi(want), allowed+btoi(!want)
	}
	require.Greater(t, denied, 30)
	require.Greater(t, allowed, 100)
}

// introduces reports whether the write makes a limit one that matches nothing, or one
// for a hostname that reaches nothing.
func (x *randomWrite) introduces(name string, top bool) bool {
	was, is := x.was.over(name, top), x.is.over(name, top)
	if is.paths == 0 {
		return false
	}
	if !is.matched && (was.paths == 0 || was.matched) {
		return true
	}
	for h, outside := range is.outside {
		if outside && !was.outside[h] {
			return true
		}
	}
	return false
}
