package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/store"
)

// Compare walks the paths of a scope before and after a change and calls visit
// with each pair, in the order of the walk after; then with those of paths that
// are gone. The rules of the route that changed, if one did, are paired by name,
// then by their matches (hierarchy.MatchRules). A path of a mesh that a policy
// tells apart, by port or clients, is paired with the one that it is part of.
// A kind may be read in another way after.
//
// A path that no policy is on any more is shown as it is then. One that no
// policy is on before and after is shown only of the kinds of Scope.Empty.
func (e *Engine) Compare(before, after *store.View, s Scope, b *Budget, visit func(Pair) error) error {
	c := comparison{pairing: rulePairing{before: before}, places: make(map[pathKind]int), empty: s.Empty}
	if err := e.Walk(before, s, false, b, c.was); err != nil {
		return err
	}
	s.Empty = append(slices.Clip(s.Empty), c.kinds...)
	err := e.Walk(after, s, false, b, func(x *Effective) error {
		if p, ok := c.is(x); ok && c.shows(p) {
			return visit(p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range c.rest() {
		if err := visit(p); err != nil {
			return err
		}
	}
	return nil
}

type pathKind struct {
	id   hierarchy.ID
	kind api.PolicyKind
}

type comparison struct {
	pairing rulePairing
	before  []*Effective
	met     []bool // likewise: whether it is in a pair
	places  map[pathKind]int
	// empty are the kinds of which paths without a policy are shown; kinds are
	// those with a policy before.
	empty []api.PolicyKind
	kinds []api.PolicyKind
	// after are the paths of meshes after the change; fresh those of them that
	// had no part in any before.
	after map[pathKind]*later
	fresh []*later
}

// later is a path after the change.
type later struct {
	*Effective
	shown bool // in a pair
}

func (c *comparison) was(x *Effective) error {
	c.places[pathKind{x.Path.ID(), x.Kind.Ref()}] = len(c.before)
	if k := x.Kind.Ref(); !slices.Contains(c.kinds, k) {
		c.kinds = append(c.kinds, k)
	}
	c.before, c.met = append(c.before, x), append(c.met, false)
	return nil
}

// is pairs a path after the change; ok is false for one that may be made of
// several before.
func (c *comparison) is(x *Effective) (p Pair, ok bool) {
	at := pathKind{c.pairing.earlier(x.Path), x.Kind.Ref()}
	i, ok := c.places[at]
	if x.Path.Service != nil {
		i, ok = c.inMesh(at, x)
		if !ok {
			return Pair{}, false
		}
	}
	if !ok {
		return Pair{After: x}, true
	}
	c.met[i] = true
	return Pair{Before: c.before[i], After: x}, true
}

// inMesh finds the place before of a path of a mesh, or of one that it was part
// of.
func (c *comparison) inMesh(at pathKind, x *Effective) (place int, ok bool) {
	if c.after == nil {
		c.after = make(map[pathKind]*later)
	}
	l := &later{Effective: x}
	c.after[at] = l
	for _, id := range wider(at.id) {
		if place, l.shown = c.places[pathKind{id, x.Kind.Ref()}]; l.shown {
			return place, true
		}
	}
	c.fresh = append(c.fresh, l)
	return 0, false
}

// rest returns the pairs of the paths that are no more, and of those that are
// new in a mesh.
func (c *comparison) rest() []Pair {
	var out []Pair
	for i, was := range c.before {
		if !c.met[i] {
			out = append(out, c.gone(was))
		}
	}
	for _, l := range c.fresh {
		if p := (Pair{After: l.Effective}); !l.shown && c.shows(p) {
			out = append(out, p)
		}
	}
	return out
}

// shows reports whether there is anything to a pair.
func (c *comparison) shows(p Pair) bool {
	return p.Before != nil || len(p.After.Outcomes) > 0 || slices.Contains(c.empty, p.After.Kind.Ref())
}

// gone pairs a path that is no more, with what it is part of now if there is
// something.
func (c *comparison) gone(was *Effective) Pair {
	if was.Path.Service == nil {
		return Pair{Before: was}
	}
	for _, id := range wider(was.Path.ID()) {
		if l := c.after[pathKind{id, was.Kind.Ref()}]; l != nil {
			p := Pair{Before: was, After: l.Effective, Again: l.shown}
			l.shown = true
			return p
		}
	}
	return Pair{Before: was}
}

// wider returns a path of a mesh and those that it is part of, the closest
// first: those of all ports, of all clients, of both.
func wider(id hierarchy.ID) []hierarchy.ID {
	ports, clients, both := id, id, id
	ports.Port, clients.Client = 0, ""
	both.Port, both.Client = 0, ""
	return []hierarchy.ID{id, ports, clients, both}
}

// rulePairing finds the path before a change of a path after it.
type rulePairing struct {
	before    *store.View
	route     *hierarchy.Route // the last one looked at, after
	positions []int
}

func (r *rulePairing) earlier(p hierarchy.Path) hierarchy.ID {
	id := p.ID()
	if p.Route == nil {
		return id
	}
	if r.route != p.Route {
		r.route, r.positions = p.Route, nil
		was, ok := r.before.Get(p.Route.Ref()).(*hierarchy.Route)
		if ok && was != p.Route {
			r.positions = hierarchy.MatchRules(was, p.Route)
		}
	}
	if r.positions != nil && p.Rule >= 0 {
		id.Rule = r.positions[p.Rule]
	}
	return id
}
