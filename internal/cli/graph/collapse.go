package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// detail is how much of the paths is shown, from all to the least.
type detail int

const (
	// equalRoutes draws routes, rules and backends as one if they are on the same
	// parents and their outcomes are equal.
	equalRoutes detail = iota
	// equalGateways also does so with listeners and gateways.
	equalGateways
	// routesOfParent draws the routes of one parent as one, whatever their outcomes.
	routesOfParent
	// oneOfLane draws one box for each lane.
	oneOfLane
)

// collapser assigns elements to groups.
type collapser struct {
	*Builder
	detail detail
	// shared are the policies that are attached above the lanes that are collapsed.
	shared set[api.Ref]
	// ends and notes are the signatures of the outcomes that end at an element,
	// and of the policies that are attached to it.
	ends, notes []set[string]
	signatures  []int
	groups      []int
}

// collapse assigns each element to a group.
func (b *Builder) collapse(d detail) *collapser {
	c := &collapser{Builder: b, detail: d}
	c.findShared()
	c.sign()
	c.group()
	return c
}

// first returns the first lane whose elements are collapsed.
func (d detail) first() lane {
	if d < equalGateways {
		return laneRouteNamespace
	}
	return laneClass
}

func (c *collapser) findShared() {
	for i := range c.paths {
		p := &c.paths[i]
		for j := range p.Policies {
			if at := p.Policies[j].At; at < 0 || c.elements[p.ids[at]].lane < c.detail.first() {
				c.shared.add(p.Policies[j].Policy)
			}
		}
	}
}

// sign computes the signatures of all elements, the last lane first.
func (c *collapser) sign() {
	c.ends, c.notes = make([]set[string], len(c.elements)), make([]set[string], len(c.elements))
	for i := range c.paths {
		c.signPath(&c.paths[i])
	}
	c.signatures = make([]int, len(c.elements))
	known := make(map[string]int)
	for l := lanes - 1; l >= 0; l-- {
		for id := range c.elements {
			if c.elements[id].lane == l {
				c.signatures[id] = numberOf(known, c.signature(id))
			}
		}
	}
}

func (c *collapser) signPath(p *path) {
	if c.detail >= routesOfParent {
		return
	}
	text := p.Kind.String() + c.outcome(p)
	if c.detail < equalGateways {
		text += c.via(p)
	}
	c.ends[p.ids[len(p.ids)-1]].add(text)
	for i := range p.Policies {
		if at := p.Policies[i].At; at >= 0 {
			c.notes[p.ids[at]].add(c.policySignature(p, i))
		}
	}
}

// via returns the key of the last element above the route.
func (c *collapser) via(p *path) string {
	key := ""
	for _, id := range p.ids {
		if c.elements[id].lane < laneRouteNamespace {
			key = c.elements[id].key
		}
	}
	return key
}

// outcome returns a text that is equal for equal outcomes.
func (c *collapser) outcome(p *path) string {
	var text strings.Builder
	for i := range p.Rules {
		r := &p.Rules[i]
		fmt.Fprintf(&text, "\x01%s\x02%s\x02%s", r.Rule, r.Block, c.nameOf(p, r.From))
	}
	for _, r := range p.Changes {
		fmt.Fprintf(&text, "\x05%s\x02%t", r.Rule, r.Removed)
		if r.Was != nil {
			text.WriteString("\x02" + c.nameOf(p, *r.Was))
		}
	}
	for i := range p.Policies {
		text.WriteString(c.policySignature(p, i))
	}
	return text.String()
}

// place returns the number of policies above policy i on the same element.
func (p *path) place(i int) int {
	n := 0
	for j := range i {
		if p.Policies[j].At == p.Policies[i].At {
			n++
		}
	}
	return n
}

func (c *collapser) policySignature(p *path, i int) string {
	o := &p.Policies[i]
	var text strings.Builder
	fmt.Fprintf(&text, "\x03%s\x02%s\x02%s\x02%s", c.nameOf(p, o.Policy), o.State, strings.Join(o.Blocks, ","), o.Change)
	for j := range o.Lost {
		l := &o.Lost[j]
		fmt.Fprintf(&text, "\x01%s\x02%s\x02%s\x02%s", l.Rule, l.Block, c.nameOf(p, l.To), l.ToBlock)
	}
	return text.String()
}

// nameOf returns the name of a policy in a signature: its own if it is shared, else its
// place among the policies of the path, so that routes with a policy each can be equal.
func (c *collapser) nameOf(p *path, ref api.Ref) string {
	if !c.shared[ref] {
		for i := range p.Policies {
			if o := &p.Policies[i]; o.Policy == ref && o.At >= 0 {
				return fmt.Sprintf("%s %d %d", ref.Kind, c.elements[p.ids[o.At]].lane, p.place(i))
			}
		}
	}
	if c.elements[p.ids[len(p.ids)-1]].lane >= laneRoute && isRoute(api.PathElement{Kind: ref.Kind}) {
		return ref.Kind // the route's own fields
	}
	return ref.String()
}

// signature returns a text that is equal for elements that may be one box.
func (c *collapser) signature(id int) string {
	e := &c.elements[id]
	if c.detail == oneOfLane {
		return fmt.Sprint(e.lane)
	}
	if e.lane < c.detail.first() {
		return e.key
	}
	if c.detail == routesOfParent && e.lane < laneRouteNamespace {
		return e.key
	}
	var below set[string]
	if c.detail < routesOfParent {
		for child := range e.children {
			below.add(fmt.Sprint(c.signatures[child]))
		}
	}
	return strings.Join([]string{e.Kind, e.Client, sorted(c.ends[id]), sorted(c.notes[id]), sorted(below)}, "\x04")
}

func sorted(s set[string]) string { return strings.Join(slices.Sorted(maps.Keys(s)), "\x05") }

// group puts the elements of a lane with equal signatures and equal groups of parents
// into one group. The first elements that were added come first.
func (c *collapser) group() {
	c.groups = make([]int, len(c.elements))
	known := make(map[string]int)
	for l := range lanes {
		for id := range c.elements {
			if e := &c.elements[id]; e.lane == l {
				c.groups[id] = numberOf(known, fmt.Sprint(c.signatures[id])+"\x04"+c.parentGroups(e))
			}
		}
	}
}

func (c *collapser) parentGroups(e *element) string {
	if c.detail == oneOfLane {
		return fmt.Sprint(e.lane)
	}
	var groups set[string]
	for p := range e.parents {
		groups.add(fmt.Sprint(c.groups[p]))
	}
	return fmt.Sprint(e.lane) + " " + sorted(groups)
}

// numberOf returns the number of a key, which is a new one for a new key.
func numberOf(known map[string]int, key string) int {
	n, ok := known[key]
	if !ok {
		n = len(known)
		known[key] = n
	}
	return n
}

// set is a set of values. The zero value is ready to use.
type set[T comparable] map[T]bool

func (s *set[T]) add(value T) {
	if *s == nil {
		*s = make(set[T])
	}
	(*s)[value] = true
}

// entry returns the value of a key of a map, which may be nil, and adds a zero one if there
// is none.
func entry[K comparable, V any](m *map[K]*V, key K) *V {
	if *m == nil {
		*m = make(map[K]*V)
	}
	if (*m)[key] == nil {
		(*m)[key] = new(V)
	}
	return (*m)[key]
}
