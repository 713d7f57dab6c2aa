package guard_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// The levels of a path in a mesh.
const (
	meshServiceNamespace = iota
	meshService
	meshPort
	meshRouteNamespace
	meshRouteLevel
	meshRule
)

var meshKind = worlds.ClassProfileDoc("inherited", "AtMesh", `
targets: {fields: [targetRefs], namespaces: consumer}
levels: [ServiceNamespace, Service, RouteNamespace, Route, Rule]
strategy: {allowed: [merge]}
blocks: {overrides: [overrides]}`)

// meshClients are the namespaces of clients; there are no objects in the last one.
var meshClients = []string{"app", "shop", "web", "else"}

// meshRouteAny returns a route to the Service app/s or a port of it.
func (d generator) meshRoute() plainRoute {
	r := d.route()
	r.Namespace, r.Name = d.of("app", "app", "shop", "web"), d.of("q", "r", "t")
	r.Parents = []plainParent{d.meshParent()}
	return r
}

func (d generator) meshParent() plainParent {
	return plainParent{Kind: "Service", Namespace: "app", Name: "s", Section: d.of("", "", "p80", "p81")}
}

func (d generator) meshService() plainService {
	return plainService{plainName{"Service", "app", "s"}, [][]int{{80}, {81}, {80, 81}, {80, 81}}[d.IntN(4)]}
}

// meshPolicy returns a policy whose override has a name of its own.
func (d generator) meshPolicy() plainPolicy {
	p := plainPolicy{plainName: plainName{"AtMesh", d.of("app", "app", "shop", "web"), d.of("p1", "p2", "p3")}, Created: 1 + d.IntN(3)}
	p.Overrides.Rules = map[string]int{p.Namespace + p.Name: 1}
	for range 1 + d.IntN(2) {
		t := plainTarget{Kind: "HTTPRoute", Name: d.of("q", "r", "t"), Section: d.of("", "", "x", "z", "rule-1")}
		switch d.IntN(5) {
		case 0:
			t = plainTarget{Kind: "Service", Namespace: "app", Name: "s", Section: d.of("", "", "p80", "p81")}
		case 1:
			t = plainTarget{Kind: "Namespace", Name: p.Namespace}
		}
		p.Targets = append(p.Targets, t)
	}
	return p
}

func (d generator) meshWorld() plainWorld {
	w := plainWorld{}
	put := func(o plainObject) { w = w.with(o.key(), o) }
	put(d.meshService())
	for _, name := range meshClients[:3] {
		put(plainNamespace{plainName: plainName{Kind: "Namespace", Name: name}})
	}
	for range 4 {
		put(d.meshRoute())
	}
	for range 5 {
		put(d.meshPolicy())
	}
	return w
}

// meshChange returns a write to a world, mostly of a route.
func (d generator) meshChange(w plainWorld) plainChange {
	for {
		var c plainChange
		switch d.IntN(8) {
		case 0:
			c.after = d.meshService()
		case 1:
			c.after = d.meshPolicy()
		default:
			c.after = d.meshRoute()
		}
		if i, ok := w.find(c.after.key()); ok {
			c.before = w[i]
		}
		r, isRoute := c.before.(plainRoute)
		switch {
		case c.before == nil:
		case isRoute && !d.in(4):
			edited := d.editedRoute(copied(r))
			edited.Parents = r.Parents
			if d.in(5) {
				edited.Parents = []plainParent{d.meshParent()}
			}
			c.after = edited
		case d.in(4) && c.before.key().Kind != "Service":
			c.after = nil
		}
		if !reflect.DeepEqual(c.before, c.after) {
			return c
		}
	}
}

// meshServed returns the route and the rule that serve a request of a client.
func (w plainWorld) meshServed(q plainRequest, client string) (*plainRoute, int) {
	s, _ := get[plainService](w, plainName{"Service", "app", "s"})
	if !slices.Contains(s.Ports, q.port) {
		return nil, 0
	}
	var own, producers []plainRoute
	for _, r := range all[plainRoute](w) {
		if !slices.ContainsFunc(r.Parents, func(p plainParent) bool { return p.Section == "" || p.Section == fmt.Sprint("p", q.port) }) {
			continue
		}
		switch r.Namespace {
		case "app":
			producers = append(producers, r)
		case client:
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		own = producers
	}
	type candidate struct {
		plainMatch
		route *plainRoute
		rule  int
	}
	var met []candidate
	for i := range own {
		for rule := range own[i].Rules {
			for _, text := range own[i].Rules[rule].Matches {
				if m := readMatch(text); m.takes(q) {
					met = append(met, candidate{m, &own[i], rule})
				}
			}
		}
	}
	if len(met) == 0 {
		return nil, 0
	}
	best := slices.MinFunc(met, func(a, b candidate) int {
		return cmp.Or(
			slices.Compare(b.rank("last"), a.rank("last")),
			a.route.Created-b.route.Created, strings.Compare(a.route.Name, b.route.Name), a.rule-b.rule,
		)
	})
	return best.route, best.rule
}

// meshLevel returns the highest level at which a policy is on the path of a request, -1
// for none.
func (p plainPolicy) meshLevel(q plainRequest, client string, r *plainRoute, rule int) int {
	level := -1
	add := func(at int) {
		if level < 0 || at < level {
			level = at
		}
	}
	for _, t := range p.Targets {
		switch {
		case t.Kind == "Namespace" && t.Name == "app":
			add(meshServiceNamespace)
		case t.Kind == "Namespace" && t.Name == r.Namespace:
			add(meshRouteNamespace)
		case t.Kind == "Service" && (p.Namespace == "app" || p.Namespace == client) && t.Section == "":
			add(meshService)
		case t.Kind == "Service" && (p.Namespace == "app" || p.Namespace == client) && t.Section == fmt.Sprint("p", q.port):
			add(meshPort)
		case t.Kind == "HTTPRoute" && p.Namespace == r.Namespace && t.Name == r.Name && t.Section == "":
			add(meshRouteLevel)
		case t.Kind == "HTTPRoute" && p.Namespace == r.Namespace && t.Name == r.Name && t.Section == r.Rules[rule].Name:
			add(meshRule)
		}
	}
	return level
}

// meshLosses returns the overrides that requests lose by a change. ends is set if some
// request with an override is served by nothing after it: its route may be followed to
// another port.
func (c plainChange) meshLosses(w plainWorld) (lost []string, ends bool) {
	after := c.in(w)
	if c.before != nil {
		for _, l := range ownLosses(w, after, c.at()) {
			lost = append(lost, "Deny "+l.policy.Namespace+"/"+l.policy.Name)
		}
	}
	for _, client := range meshClients {
		for _, q := range plainRequests {
			if q.host != "x.example" {
				continue
			}
			from, fromRule := w.meshServed(q, client)
			if from == nil {
				continue
			}
			to, toRule := after.meshServed(q, client)
			for _, p := range all[plainPolicy](w) {
				level := p.meshLevel(q, client, from, fromRule)
				if level < 0 {
					continue
				}
				if to == nil {
					ends = true
					continue
				}
				now, _ := get[plainPolicy](after, p.key())
				if is := now.meshLevel(q, client, to, toRule); is >= 0 && is <= level {
					continue
				}
				action := "Deny "
				if c.at().Kind == "HTTPRoute" && level >= meshRouteNamespace && c.at().Namespace != from.Namespace {
					action = "Warn "
				}
				lost = append(lost, action+p.Namespace+"/"+p.Name)
			}
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost), ends
}

// No request to a Service loses an override by an allowed change, and what is denied is a
// loss.
func TestAllowedMeshChangesLoseNoOverrideInRandomWorlds(t *testing.T) {
	var changes, denied, warned int
	base := world(t, meshKind)
	for seed := range rounds(t, 150) {
		d := newGenerator(seed)
		w := d.meshWorld()
		v := base
		for _, o := range w {
			v = v.With(snapshot.Put(decoded(t, base, o)))
		}
		for range 10 {
			c := d.meshChange(w)
			want, ends := c.meshLosses(w)
			ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v, c.change(t, v), nil)
			require.NoError(t, err)
			var got []string
			for _, f := range slices.Concat(ev.Denials, ev.Warnings) {
				if strings.HasPrefix(string(f.Code), "Override") && f.Policy.Name != "" && f.Code != "Overridden" {
					got = append(got, fmt.Sprintf("%s %s", f.Action, f.Policy.Key()))
				}
			}
			slices.Sort(got)
			got = slices.Compact(got)
			if more := lacking(got, want); len(lacking(want, got)) > 0 || len(more) > 0 && !ends {
				require.Fail(t, "the guard and the second implementation differ", "seed %d: %s\nit was %s\nlost, but not found:\n%s\nfound, but not lost:\n%s\nworld:\n%s",
					seed, c, objectsBefore(c), strings.Join(lacking(want, got), "\n"), strings.Join(more, "\n"), w)
			}
			changes++
			denied += btoi(ev.Denied())
			warned += btoi(slices.ContainsFunc(want, func(s string) bool { return strings.HasPrefix(s, "Warn ") }))
			if !ev.Denied() || d.in(3) {
				w, v = c.in(w), ev.After
			}
		}
	}
	t.Logf("%d of %d changes are denied, %d warned about", denied, changes, warned)
	assert.Greater(t, denied, changes/16, "the worlds are too dull to show anything")
	assert.Greater(t, warned, changes/50, "too few overrides of neighbors")
}
