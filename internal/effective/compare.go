package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Compare walks the paths of a scope before and after a change, side by side, and
// calls visit with each pair: root by root, and under it route by route, first the
// paths after in the order of their walk, then those that are gone. The rules of
// the route that changed, if one did, are paired by name, then by their matches
// (hierarchy.MatchRules). A path of a mesh that a policy tells apart, by port or
// clients, is paired with the one that it is part of. A kind may be read in
// another way after.
//
// A path that no policy is on any more is shown as it is then. One that no
// policy is on before and after is shown only of the kinds of Scope.Empty.
//
// What is held at a time are the paths through one route at one root. What the
// conditions before the change cost is limited by time alone: it is not for the
// writer to pay.
func (e *Engine) Compare(before, after *snapshot.View, s Scope, b *Budget, visit func(Pair) error) error {
	c := &comparison{empty: s.Empty, visit: visit}
	c.was = newWalk(e, before, s.kinds(before, false), b.timed(), c.keep)
	for i := range c.was.by {
		c.was.by[i].empty = slices.Contains(s.Empty, c.was.by[i].kind.Ref())
	}
	s.Empty = slices.Concat(s.Empty, refsOf(c.was.by))
	c.is = newWalk(e, after, s.kinds(after, false), b, c.meet)
	c.is.whatIf = true
	return c.run(s.plan(before), s.plan(after))
}

func refsOf(kinds []kindWalk) []api.PolicyKind {
	out := make([]api.PolicyKind, len(kinds))
	for i := range kinds {
		out[i] = kinds[i].kind.Ref()
	}
	return out
}

type pathKind struct {
	id   gateway.ID
	kind api.PolicyKind
}

// comparison is a walk before and one after. It goes by units: a root itself, or
// one route at one root. Paths of different units are never the same.
type comparison struct {
	was, is *walk
	empty   []api.PolicyKind // kinds of which paths without a policy are shown
	visit   func(Pair) error
	number  int // of the unit

	// before are the paths of the unit before; met, likewise, whether one is in a
	// pair; next is where the next pair is looked for.
	before []*Effective
	met    []bool
	next   int
	// positions of the rules of the unit's route before, by those after; nil if
	// they are the same.
	positions []int
	// places in before by identity, made when it is needed.
	places map[pathKind]int
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

// unit compares what two walks visit; either may be nil.
func (c *comparison) unit(was, is func() error) error {
	c.number++
	clear(c.before)
	c.before, c.met, c.next, c.places, c.after, c.fresh = c.before[:0], c.met[:0], 0, nil, nil, nil
	if was != nil {
		if err := was(); err != nil {
			return err
		}
	}
	for i := range c.is.by {
		k := &c.is.by[i]
		ref := k.kind.Ref()
		k.empty = slices.Contains(c.empty, ref) || slices.ContainsFunc(c.before, func(x *Effective) bool { return x.Kind.Ref() == ref })
	}
	if is != nil {
		if err := is(); err != nil {
			return err
		}
	}
	return c.rest()
}

// keep takes a path before.
func (c *comparison) keep(x *Effective) error {
	c.before, c.met = append(c.before, x), append(c.met, false)
	return nil
}

// meet pairs a path after, unless it is one of a mesh that may be made of several
// before.
func (c *comparison) meet(x *Effective) error {
	p := Pair{After: x}
	if x.Path.Service != nil {
		i, ok := c.inMesh(x)
		if !ok {
			return nil
		}
		p.Before, c.met[i] = c.before[i], true
	} else if i, ok := c.place(x); ok {
		p.Before, c.met[i] = c.before[i], true
	}
	if !c.shows(p) {
		return nil
	}
	return c.show(p)
}

func (c *comparison) show(p Pair) error {
	p.Unit = c.number
	return c.visit(p)
}

// few is how many paths of a unit are looked through one by one.
const few = 16

// place finds a path before. Most come in the same order before and after.
func (c *comparison) place(x *Effective) (place int, ok bool) {
	rule := c.earlier(x.Path.Rule)
	for i := c.next; i < min(c.next+few, len(c.before)); i++ {
		if was := c.before[i]; was.Path.Rule == rule && was.Path.SameButRule(&x.Path) && was.Kind.Ref() == x.Kind.Ref() {
			c.next = i + 1
			return i, true
		}
	}
	place, ok = c.find(c.pathKind(x))
	if ok {
		c.next = place + 1
	}
	return place, ok
}

func (c *comparison) find(at pathKind) (place int, ok bool) {
	if len(c.before) == 0 {
		return 0, false
	}
	if c.places == nil {
		c.places = make(map[pathKind]int, len(c.before))
		for i, x := range c.before {
			c.places[pathKind{x.Path.ID(), x.Kind.Ref()}] = i
		}
	}
	place, ok = c.places[at]
	return place, ok
}

// pathKind identifies a path after as it was before.
func (c *comparison) pathKind(x *Effective) pathKind {
	id := x.Path.ID()
	id.Rule = c.earlier(id.Rule)
	return pathKind{id, x.Kind.Ref()}
}

// earlier returns the position before of a rule after, -1 for none.
func (c *comparison) earlier(rule int) int {
	if c.positions == nil || rule < 0 {
		return rule
	}
	return c.positions[rule]
}

// inMesh finds the place before of a path of a mesh, or of one that it was part
// of.
func (c *comparison) inMesh(x *Effective) (place int, ok bool) {
	if c.after == nil {
		c.after = make(map[pathKind]*later)
	}
	at := c.pathKind(x)
	l := &later{Effective: x}
	c.after[at] = l
	for _, id := range wider(at.id) {
		if place, l.shown = c.find(pathKind{id, at.kind}); l.shown {
			return place, true
		}
	}
	c.fresh = append(c.fresh, l)
	return 0, false
}

// rest visits the pairs of the unit's paths that are no more, and of those that
// are new in a mesh.
func (c *comparison) rest() error {
	for i, was := range c.before {
		if c.met[i] {
			continue
		}
		if err := c.is.budget.Alive(); err != nil {
			return err
		}
		if err := c.show(c.gone(was)); err != nil {
			return err
		}
	}
	for _, l := range c.fresh {
		if p := (Pair{After: l.Effective}); !l.shown && c.shows(p) {
			if err := c.show(p); err != nil {
				return err
			}
		}
	}
	return nil
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
func wider(id gateway.ID) []gateway.ID {
	ports, clients, both := id, id, id
	ports.Port, clients.Client = 0, ""
	both.Port, both.Client = 0, ""
	return []gateway.ID{id, ports, clients, both}
}
