package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// pathKind identifies a path of a kind.
type pathKind struct {
	id   gateway.ID
	kind api.PolicyKind
}

// comparison is a walk before a change and one after it, in units: a root itself, or
// one route at one root. Paths of different units are never paired.
type comparison struct {
	walkBefore, walkAfter *walk
	empty                 []api.PolicyKind // kinds whose paths without a policy are visited
	visit                 func(Pair) error
	unitNumber            int

	// pathsBefore are the paths of the unit before the change, paired has for each of
	// them whether it is in a pair. next is the index where the search for the next
	// pair starts.
	pathsBefore []*Effective
	paired      []bool
	next        int
	rulesBefore []int
	// listenersBefore are the pairs of the listeners of the current root.
	listenersBefore gateway.ListenersBefore
	// placesBefore has the indexes of pathsBefore; nil until it is needed.
	placesBefore map[pathKind]int
	// meshAfter are the paths of meshes after the change, meshUnpaired those of them
	// without a counterpart before.
	meshAfter    map[pathKind]*pathAfter
	meshUnpaired []*pathAfter
}

// pathAfter is a path after the change.
type pathAfter struct {
	*Effective
	visited bool // in a pair
}

// unit compares the paths that two walks visit, given the positions before of the rules of
// the unit's route; nil if the positions are the same.
func (c *comparison) unit(rulesBefore []int, before, after func() error) error {
	c.unitNumber++
	clear(c.pathsBefore)
	c.pathsBefore, c.paired, c.next, c.placesBefore, c.meshAfter, c.meshUnpaired = c.pathsBefore[:0], c.paired[:0], 0, nil, nil, nil
	c.rulesBefore = rulesBefore
	if err := before(); err != nil {
		return err
	}
	for i := range c.walkAfter.kinds {
		k := &c.walkAfter.kinds[i]
		ref := k.kind.Ref()
		k.empty = slices.Contains(c.empty, ref) || slices.ContainsFunc(c.pathsBefore, func(x *Effective) bool { return x.Kind.Ref() == ref })
	}
	if err := after(); err != nil {
		return err
	}
	return c.visitRemaining()
}

// addBefore adds a path before.
func (c *comparison) addBefore(x *Effective) error {
	c.pathsBefore, c.paired = append(c.pathsBefore, x), append(c.paired, false)
	return nil
}

// pairAfter visits the pair of a path after, unless it is a path of a mesh that can be
// paired with several before.
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

// findBefore returns the index of a path after among those before. Most come in the
// same order.
func (c *comparison) findBefore(x *Effective) (place int, ok bool) {
	if c.listenersBefore != nil && x.Path.Listener != nil {
		return c.find(c.pathKind(x))
	}
	rule := c.ruleBefore(x.Path.Rule)
	for i := c.next; i < min(c.next+maxLinear, len(c.pathsBefore)); i++ {
		if before := c.pathsBefore[i]; before.Path.Rule == rule && before.Path.SameButRule(&x.Path) && before.Kind.Ref() == x.Kind.Ref() {
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

// pathKind identifies a path after by its ID before.
func (c *comparison) pathKind(x *Effective) pathKind {
	id := c.listenersBefore.ID(x.Path)
	id.Rule = c.ruleBefore(id.Rule)
	return pathKind{id, x.Kind.Ref()}
}

// ruleBefore returns the position before of a rule after, -1 for none.
func (c *comparison) ruleBefore(rule int) int {
	if c.rulesBefore == nil || rule < 0 {
		return rule
	}
	return c.rulesBefore[rule]
}

// findInMesh returns the index before of a path of a mesh, or of one that contained it.
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

// visitRemaining visits the pairs of the unit's paths that were removed, and of those
// of a mesh that are new.
func (c *comparison) visitRemaining() error {
	for i, before := range c.pathsBefore {
		if c.paired[i] {
			continue
		}
		if err := c.walkAfter.budget.Alive(); err != nil {
			return err
		}
		if err := c.visitPair(c.pairOfRemoved(before)); err != nil {
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

// isRelevant reports whether a pair is to be visited.
func (c *comparison) isRelevant(p Pair) bool {
	return p.Before != nil || len(p.After.Outcomes)+len(p.After.Ignored) > 0 || slices.Contains(c.empty, p.After.Kind.Ref())
}

// pairOfRemoved pairs a path that was removed, with the path that contains it now if
// there is one.
func (c *comparison) pairOfRemoved(before *Effective) Pair {
	if before.Path.Service == nil {
		return Pair{Before: before}
	}
	for _, id := range containingPaths(before.Path.ID()) {
		if l := c.meshAfter[pathKind{id, before.Kind.Ref()}]; l != nil {
			p := Pair{Before: before, After: l.Effective, Again: l.visited}
			l.visited = true
			return p
		}
	}
	return Pair{Before: before}
}

// containingPaths returns a path of a mesh and those that contain it, the closest
// first: of all ports, of all clients, of both.
func containingPaths(id gateway.ID) []gateway.ID {
	ports, clients, both := id, id, id
	ports.Port, clients.Client = 0, ""
	both.Port, both.Client = 0, ""
	return []gateway.ID{id, ports, clients, both}
}
