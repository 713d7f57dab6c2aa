package inflight

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// dice throw small objects of a world in which much is connected.
type dice struct{ *rand.Rand }

func (d dice) pick(from ...string) string { return from[d.IntN(len(from))] }

func (d dice) object() string {
	ns := d.pick("app", "shop")
	switch d.IntN(9) {
	case 0:
		return worlds.GatewayDoc(d.pick("g1", "g2"), d.pick("c1", "c2"), d.pick("http", "web"))
	case 1, 2, 3:
		rules := d.pick("[{}]", "[{name: x}]", "[{backendRefs: [{name: s1, port: 80}]}]", "[{backendRefs: [{name: s2, namespace: shop, port: 80}]}]")
		name := d.pick("r1", "r2", "r3")
		doc := worlds.RouteTo("HTTPRoute", ns, name, rules, d.pick(worlds.ToGateway("g1"), worlds.ToGateway("g2"), worlds.ToSet("app", "l1")))
		return strings.Replace(doc, "name: "+name+"}", "name: "+name+", labels: {team: "+d.pick("a", "b")+"}}", 1)
	case 4:
		return worlds.SetDoc("app", "l1", d.pick("g1", "g2"), "more")
	case 5:
		return worlds.ServiceDoc(ns, d.pick("s1", "s2"), 80+d.IntN(2))
	case 6:
		return worlds.GrantDoc(ns, "grant", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", "{group: '', kind: Service}")
	case 7:
		return fmt.Sprintf("kind: Namespace\nmetadata: {name: %s, labels: {team: %s}}", ns, d.pick("a", "b"))
	default:
		target := d.pick(
			"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r1}", "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r2}",
			"{group: '', kind: Service, name: s1}", "{group: '', kind: Service, name: s2}",
			"{group: gateway.networking.k8s.io, kind: HTTPRoute, selector: {matchLabels: {team: a}}}",
		)
		if d.IntN(3) == 0 {
			ns, target = "infra", "{group: gateway.networking.k8s.io, kind: Gateway, name: "+d.pick("g1", "g2")+"}"
		}
		return worlds.PolicyDoc("Paint", ns, d.pick("p1", "p2", "p3"), "targetRefs: ["+target+"]\na: "+fmt.Sprint(d.IntN(3)))
	}
}

// write is one of an object: created, updated or deleted.
func (d dice) write(s *harness) Write {
	doc := d.object()
	o := s.read(doc)
	was := s.view().Get(o.Ref())
	switch {
	case was == nil:
		return s.create(doc)
	case d.IntN(4) == 0:
		w := s.create(doc)
		w.Change.Operation, w.Change.Before, w.Change.After = "DELETE", was, nil
		w.Precondition = func() Precondition { return Precondition{uid(was), "10"} }
		return w
	default:
		w := s.create(doc)
		w.Change.Operation, w.Change.Before = "UPDATE", was
		w.Precondition = func() Precondition { return Precondition{uid(was), "10"} }
		return w
	}
}

// must returns what a write has to meet: whatever shares a path with it when some
// of the others are stored, too.
func must(v *snapshot.View, w Write, entries []*entry) map[*entry]bool {
	out := make(map[*entry]bool)
	for some := range 1 << len(entries) {
		with := v
		for i, e := range entries {
			if some&(1<<i) != 0 {
				with = with.With(e.write.changes()...)
			}
		}
		own := w.footprint(with, with.With(w.changes()...))
		for _, e := range entries {
			if e.ref != w.Change.Object().Ref() && worlds.Overlap(own, e.write.footprint(with, with.With(e.write.changes()...))) {
				out[e] = true
			}
		}
	}
	return out
}

// What a write meets is found, whatever happened before: writes of the same
// objects, dry runs, events of what is in flight and of what is not.
func TestRelatedIsComplete(t *testing.T) {
	had := 0
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 16))}
		s := newHarness(t, Options{}, gatewayGroup)
		var story strings.Builder
		for range 4 + d.IntN(8) {
			s.put(d.object())
		}
		for range 14 {
			switch d.IntN(4) {
			case 0: // someone else's, or what is in flight
				doc := d.object()
				fmt.Fprintf(&story, "--- seen\n%s\n", doc)
				s.observe(doc, "11")
			default:
				w := d.write(s)
				w.DryRun = d.IntN(3) == 0
				fmt.Fprintf(&story, "--- %s %s, dry run %t\n", w.Change.Operation, w.Change.Object().Ref(), w.DryRun)
				s.evaluate(w)
			}
			var flying []*entry
			for _, e := range s.log.entries {
				if e.endedAt == 0 && len(flying) < 5 {
					flying = append(flying, e)
				}
			}
			w := d.write(s)
			met := make(map[string]bool)
			for _, name := range s.met(w) {
				met[name] = true
			}
			for e := range must(s.view(), w, flying) {
				had++
				require.True(t, met[e.ref.String()], "seed %d: %s of %s does not meet %s of %s\n%s",
					seed, w.Change.Operation, w.Change.Object().Ref(), e.write.Change.Operation, e.ref, story.String())
			}
		}
	}
	assert.Greater(t, had, 300, "the worlds are too dull to show anything")
}
