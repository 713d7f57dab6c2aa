package effective_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// pathID identifies a path of a kind.
type pathID struct {
	kind string
	gateway.ID
}

func (id pathID) String() string { return fmt.Sprintf("%s %+v", id.kind, id.ID) }

// dump formats an effective policy: each rule with its origin, and the outcome of each
// policy.
func dump(e *effective.Effective) string {
	if e == nil || len(e.Outcomes) == 0 {
		return ""
	}
	var b strings.Builder
	for _, r := range e.Rules {
		fmt.Fprintf(&b, "%s=%v of %s/%s; ", r.Key, r.Value, e.Ref(r.From.Policy), r.From.Block)
	}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		fmt.Fprintf(&b, "%s at %d %s %v; ", e.Ref(o.Policy), e.Level(o.Policy), effective.RulesState(o), explain.Item(e).Policies[i].Lost)
	}
	return b.String()
}

// fullWalk formats every path of a view. It fails if one is visited twice.
func fullWalk(t testing.TB, engine *effective.Engine, v *snapshot.View) map[pathID]string {
	t.Helper()
	return walkOnce(t, engine, v, effective.Scope{All: true}, false)
}

// walkOnce formats the paths of a scope: "" for those without a policy in force, if they are
// included.
func walkOnce(t testing.TB, engine *effective.Engine, v *snapshot.View, s effective.Scope, empty bool) map[pathID]string {
	t.Helper()
	out := make(map[pathID]string)
	require.NoError(t, engine.Walk(v, s, empty, unlimited(), func(e *effective.Effective) error {
		if len(e.Outcomes) == 0 && !empty { // all policies on it are ignored
			return nil
		}
		at := pathID{e.Kind.Kind, e.Path.ID()}
		_, twice := out[at]
		require.False(t, twice, "%s is visited twice", at)
		out[at] = dump(e)
		return nil
	}))
	return out
}

// differences formats what differs between two full walks, the one after with empty paths,
// as in "path: before -> after". The rules of the route that changed, if one did, and
// listeners are paired; a path of a mesh that only one side has is part of a containing one
// on the other.
func differences(t testing.TB, before, after map[pathID]string, was, is snapshot.Object, listeners func(pathID) pathID) []string {
	t.Helper()
	var out []string
	differ := func(at pathID, old, now string) {
		if old != now {
			out = append(out, fmt.Sprintf("%s: %s -> %s", at, cmp.Or(old, "none"), cmp.Or(now, "gone")))
		}
	}
	seen, earlier := make(map[pathID]bool), make(map[pathID]string)
	fresh := make(map[pathID]pathID) // those after without one before, and what they would have been
	rules := pairingOf(was, is)
	for at, now := range after {
		then := listeners(rules(at))
		earlier[then] = now
		if place, ok := among(before, then); ok {
			seen[place] = true
			if now == "" && at.Listener != "" {
				at = place
			}
			differ(at, before[place], now)
		} else {
			fresh[at] = then
		}
	}
	for at, old := range before {
		if seen[at] {
			continue
		}
		if place, ok := among(earlier, at); ok {
			differ(at, old, earlier[place])
			maps.DeleteFunc(fresh, func(_, then pathID) bool { return then == place })
		} else {
			differ(at, old, "")
		}
	}
	for at := range fresh {
		differ(at, "", after[at])
	}
	slices.Sort(out)
	return out
}

// among finds a path, or else the closest one that contains it.
func among(all map[pathID]string, at pathID) (pathID, bool) {
	ports, clients, both := at, at, at
	ports.Port, clients.Client = 0, ""
	both.Port, both.Client = 0, ""
	for _, place := range []pathID{at, ports, clients, both} {
		if _, ok := all[place]; ok && (place == at || at.Service != "") {
			return place, true
		}
	}
	return at, false
}

// pairingOf returns a function that maps a path after a change to the one before.
func pairingOf(was, is snapshot.Object) func(pathID) pathID {
	old, _ := was.(*gateway.Route)
	route, _ := is.(*gateway.Route)
	if old == nil || route == nil {
		return func(at pathID) pathID { return at }
	}
	rules := gateway.MatchRules(old, route)
	return func(at pathID) pathID {
		if at.RouteKind == route.Kind && at.RouteNamespace == route.Namespace && at.Route == route.Name && at.Rule >= 0 {
			at.Rule = rules[at.Rule]
		}
		return at
	}
}

// listenerPairingOf returns a function that maps a path after a change to the one at the
// listener before.
func listenerPairingOf(before, after *snapshot.View) func(pathID) pathID {
	type entry struct{ gatewayNamespace, gateway, setKind, setNamespace, set, listener string }
	entryOf := func(l gateway.ListenerMatch) entry {
		id := gateway.Path{Gateway: l.Gateway, Set: l.Set, Listener: l.Listener}.ID()
		return entry{id.GatewayNamespace, id.Gateway, id.SetKind, id.SetNamespace, id.Set, id.Listener}
	}
	was := make(map[entry]entry)
	for o := range after.Objects(gateway.KindOf(gateway.KindGateway)) {
		old, _ := before.Get(o.Ref()).(*gateway.Gateway)
		is, ok := o.(*gateway.Gateway)
		if old == nil || !ok {
			continue
		}
		listenersBefore, listenersAfter := before.Listeners(old), after.Listeners(is)
		pairs := gateway.PairListeners(listenersBefore, listenersAfter)
		for i := range listenersAfter {
			l := &listenersAfter[i]
			if b := pairs[l.Listener]; b != nil {
				was[entryOf(*l)] = entryOf(*b)
			} else if pairs != nil {
				was[entryOf(*l)] = entry{listener: "none"}
			}
		}
	}
	return func(at pathID) pathID {
		if e, ok := was[entry{at.GatewayNamespace, at.Gateway, at.SetKind, at.SetNamespace, at.Set, at.Listener}]; ok && at.Listener != "" {
			at.SetKind, at.SetNamespace, at.Set, at.Listener = e.setKind, e.setNamespace, e.set, e.listener
		}
		return at
	}
}

// comparedIn formats the same by Compare over a scope.
func comparedIn(t testing.TB, engine *effective.Engine, before, after *snapshot.View, s effective.Scope) []string {
	t.Helper()
	var out []string
	require.NoError(t, engine.Compare(before, after, s, unlimited(), func(p effective.Pair) error {
		empty := p.After != nil && len(p.After.Outcomes) == 0
		at := pathID{p.Effective().Kind.Kind, p.Effective().Path.ID()}
		old, now := dump(p.Before), dump(p.After)
		if p.Before != nil && (empty && p.After.Path.Listener != nil || p.Effective().Path.Service != nil && narrower(p.Before.Path, p.After)) {
			at.ID = p.Before.Path.ID()
		}
		if old != now {
			out = append(out, fmt.Sprintf("%s: %s -> %s", at, cmp.Or(old, "none"), cmp.Or(now, "gone")))
		}
		return nil
	}))
	slices.Sort(out)
	return out
}

// narrower reports whether a path of a mesh was part of the one that it is paired with.
func narrower(was gateway.Path, is *effective.Effective) bool {
	return is != nil && (was.Port != 0 && is.Path.Port == 0 || was.Client != "" && is.Path.Client == "")
}

// randomChanges applies changes to random objects. After each, Compare over the scope
// of the change must return all differences between two full walks: ScopeOf misses no
// relation between objects. With empty paths, too, each path is visited once.
func randomChanges(t testing.TB, seed uint64, changes int) (differing int) {
	t.Helper()
	d := newDice(seed)
	w, engine := newRandomWorld(t, d), effective.NewEngine()
	full := walkOnce(t, engine, w.View, effective.Scope{All: true}, true)
	for range changes {
		before, fullBefore, shown := w.View, full, w.String()
		maps.DeleteFunc(fullBefore, func(_ pathID, picture string) bool { return picture == "" })
		now, text := decodeObject(t, before, d.throw())
		was, what := before.Get(now.Ref()), "put "+text
		if was != nil && d.in(3) {
			now, what = nil, "delete "+was.Ref().String()
			w.remove(was.Ref())
		} else {
			w.put(now, text)
		}
		full = walkOnce(t, engine, w.View, effective.Scope{All: true}, true)
		want := differences(t, fullBefore, full, was, now, listenerPairingOf(before, w.View))
		scope := effective.ScopeOf(was, now)
		got := comparedIn(t, engine, before, w.View, scope)
		if !slices.Equal(want, got) {
			require.Fail(t, "Compare over the scope of a change differs from full walks", "seed %d, %s\nmissing:\n%s\ntoo much:\n%s\nworld:\n%s",
				seed, what, lines(without(want, got)), lines(without(got, want)), shown)
		}
		require.Subset(t, slices.Collect(maps.Keys(full)), slices.Collect(maps.Keys(walkOnce(t, engine, w.View, scope, false))), "seed %d", seed)
		if len(want) > 0 {
			differing++
		}
	}
	return differing
}

func lines(list []string) string { return strings.Join(list, "\n") }

// without returns the items of a list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

func TestScopeIncludesAllDifferencesInRandomWorlds(t *testing.T) {
	const rounds, changes = 600, 8
	differing := 0
	for seed := range uint64(rounds) {
		differing += randomChanges(t, seed, changes)
	}
	assert.Greater(t, differing, rounds*changes/8, "the worlds are too dull to show anything")
}

func FuzzScopeIncludesAllDifferences(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(1_000_000 + seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { randomChanges(t, seed, 8) })
}

// A view and its effective policies depend on its objects alone, not on the order of
// changes. Each path is visited once.
func TestObjectOrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(100) {
		d := newDice(seed)
		w := newRandomWorld(t, d)
		want := fullWalk(t, effective.NewEngine(), w.View)
		var all []snapshot.Object
		for ref := range w.texts {
			all = append(all, w.Get(ref))
		}
		d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		v := compiledKinds(t)
		for _, o := range all {
			v = v.With(snapshot.Put(o))
		}
		require.Equal(t, want, fullWalk(t, effective.NewEngine(), v), "seed %d", seed)
	}
}
