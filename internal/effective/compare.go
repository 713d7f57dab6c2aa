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
	c.walkBefore = newWalk(e, before, s.kinds(before, false), b.timeOnly(), c.addBefore)
	for i := range c.walkBefore.kinds {
		c.walkBefore.kinds[i].empty = slices.Contains(s.Empty, c.walkBefore.kinds[i].kind.Ref())
	}
	s.Empty = slices.Concat(s.Empty, refsOf(c.walkBefore.kinds))
	c.walkAfter = newWalk(e, after, s.kinds(after, false), b, c.pairAfter)
	c.walkAfter.whatIf = true
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
	walkBefore, walkAfter *walk
	empty                 []api.PolicyKind // kinds of which paths without a policy are shown
	visit                 func(Pair) error
	unitNumber            int // of the unit

	// before are the paths of the unit before; met, likewise, whether one is in a
	// pair; next is where the next pair is looked for.
	pathsBefore []*Effective
	paired      []bool
	next        int
	// positions of the rules of the unit's route before, by those after; nil if
	// they are the same.
	rulesBefore []int
	// places in before by identity, made when it is needed.
	placesBefore map[pathKind]int
	// after are the paths of meshes after the change; fresh those of them that
	// had no part in any before.
	meshAfter    map[pathKind]*pathAfter
	meshUnpaired []*pathAfter
}

// later is a path after the change.
type pathAfter struct {
	*Effective
	visited bool // in a pair
}

// unit compares what two walks visit; either may be nil.
func (c *comparison) unit(was, is func() error) error {
	c.unitNumber++
	clear(c.pathsBefore)
	c.pathsBefore, c.paired, c.next, c.placesBefore, c.meshAfter, c.meshUnpaired = c.pathsBefore[:0], c.paired[:0], 0, nil, nil, nil
	if was != nil {
		if err := was(); err != nil {
			return err
		}
	}
	for i := range c.walkAfter.kinds {
		k := &c.walkAfter.kinds[i]
		ref := k.kind.Ref()
		k.empty = slices.Contains(c.empty, ref) || slices.ContainsFunc(c.pathsBefore, func(x *Effective) bool { return x.Kind.Ref() == ref })
	}
	if is != nil {
		if err := is(); err != nil {
			return err
		}
	}
	return c.visitRemaining()
}

// keep takes a path before.
func (c *comparison) addBefore(x *Effective) error {
	c.pathsBefore, c.paired = append(c.pathsBefore, x), append(c.paired, false)
	return nil
}

// meet pairs a path after, unless it is one of a mesh that may be made of several
// before.
func (c *comparison) pairAfter(x *Effective) error {
	p := Pair{After: x}
	if x.Path.Service != nil {
		i, ok := c.findInMesh(x)
		if !ok {
			return nil
		}
		p.Before, c.paired[i] = c.pathsBefore[i], true
	} else if i, ok := c.findBefore(x); ok {
		p.Before, c.paired[i] = c.pathsBefore[i], true
	}
	if !c.isRelevant(p) {
		return nil
	}
	return c.visitPair(p)
}

func (c *comparison) visitPair(p Pair) error {
	p.Unit = c.unitNumber
	return c.visit(p)
}

// few is how many paths of a unit are looked through one by one.
const maxLinear = 16

// place finds a path before. Most come in the same order before and after.
func (c *comparison) findBefore(x *Effective) (place int, ok bool) {
	rule := c.ruleBefore(x.Path.Rule)
	for i := c.next; i < min(c.next+maxLinear, len(c.pathsBefore)); i++ {
		if was := c.pathsBefore[i]; was.Path.Rule == rule && was.Path.SameButRule(&x.Path) && was.Kind.Ref() == x.Kind.Ref() {
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
	if len(c.pathsBefore) == 0 {
		return 0, false
	}
	if c.placesBefore == nil {
		c.placesBefore = make(map[pathKind]int, len(c.pathsBefore))
		for i, x := range c.pathsBefore {
			c.placesBefore[pathKind{x.Path.ID(), x.Kind.Ref()}] = i
		}
	}
	place, ok = c.placesBefore[at]
	return place, ok
}

// pathKind identifies a path after as it was before.
func (c *comparison) pathKind(x *Effective) pathKind {
	id := x.Path.ID()
	id.Rule = c.ruleBefore(id.Rule)
	return pathKind{id, x.Kind.Ref()}
}

// earlier returns the position before of a rule after, -1 for none.
func (c *comparison) ruleBefore(rule int) int {
	if c.rulesBefore == nil || rule < 0 {
		return rule
	}
	return c.rulesBefore[rule]
}

// inMesh finds the place before of a path of a mesh, or of one that it was part
// of.
func (c *comparison) findInMesh(x *Effective) (place int, ok bool) {
	if c.meshAfter == nil {
		c.meshAfter = make(map[pathKind]*pathAfter)
	}
	at := c.pathKind(x)
	l := &pathAfter{Effective: x}
	c.meshAfter[at] = l
	for _, id := range containingPaths(at.id) {
		if place, l.visited = c.find(pathKind{id, at.kind}); l.visited {
			return place, true
		}
	}
	c.meshUnpaired = append(c.meshUnpaired, l)
	return 0, false
}

// rest visits the pairs of the unit's paths that are no more, and of those that
// are new in a mesh.
func (c *comparison) visitRemaining() error {
	for i, was := range c.pathsBefore {
		if c.paired[i] {
			continue
		}
		if err := c.walkAfter.budget.Alive(); err != nil {
			return err
		}
		if err := c.visitPair(c.pairOfRemoved(was)); err != nil {
			return err
		}
	}
	for _, l := range c.meshUnpaired {
		if p := (Pair{After: l.Effective}); !l.visited && c.isRelevant(p) {
			if err := c.visitPair(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// shows reports whether there is anything to a pair.
func (c *comparison) isRelevant(p Pair) bool {
	return p.Before != nil || len(p.After.Outcomes) > 0 || slices.Contains(c.empty, p.After.Kind.Ref())
}

// gone pairs a path that is no more, with what it is part of now if there is
// something.
func (c *comparison) pairOfRemoved(was *Effective) Pair {
	if was.Path.Service == nil {
		return Pair{Before: was}
	}
	for _, id := range containingPaths(was.Path.ID()) {
		if l := c.meshAfter[pathKind{id, was.Kind.Ref()}]; l != nil {
			p := Pair{Before: was, After: l.Effective, Again: l.visited}
			l.visited = true
			return p
		}
	}
	return Pair{Before: was}
}

// wider returns a path of a mesh and those that it is part of, the closest
// first: those of all ports, of all clients, of both.
func containingPaths(id gateway.ID) []gateway.ID {
	ports, clients, both := id, id, id
	ports.Port, clients.Client = 0, ""
	both.Port, both.Client = 0, ""
	return []gateway.ID{id, ports, clients, both}
}
