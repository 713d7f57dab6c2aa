package graph

import (
	"slices"
	"strconv"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Path is the outcome of the policies of one kind on one path.
type Path struct {
	Kind     api.PolicyKind
	Elements []api.PathElement // from the root to the end, at least one
	Rules    []api.RuleOrigin  // in effect at the end
	Policies []Policy          // on the path, from the highest to the lowest
	// Changes are what a change does to the rules in effect, sorted by rule; empty in a
	// picture of what is.
	Changes []RuleChange
}

// RuleChange is what a change does to a rule in effect on a path.
type RuleChange struct {
	Rule string
	// Was is the policy that set the rule before the change; nil for an added rule.
	Was *api.Ref
	// Removed is set if the rule is not in effect after the change.
	Removed bool
}

// Policy is a policy on a path.
type Policy struct {
	api.PolicyOnPath
	// At is the index of the element that it is attached to; -1 for the whole mesh.
	At int
	// Blocks are what its blocks that were applied on the path acted as: Defaults,
	// Neither, Overrides.
	Blocks []string
	// Change is what a change does to the policy on the path, such as "removed"; empty
	// for nothing.
	Change string
}

// What the blocks of a policy act as. Neither is a policy's own rules outside of both
// blocks.
const (
	Defaults  = "defaults"
	Neither   = "rules"
	Overrides = "overrides"
)

// Builder collects paths. The zero value is ready to use.
type Builder struct {
	elements []element
	ids      map[string]int
	paths    []path
	pathless []api.Outcome
}

// element is an element of paths, with the elements around it.
type element struct {
	api.PathElement
	lane     lane
	key      string
	parents  set[int]
	children set[int]
}

// path is a Path whose elements are indexes of Builder.elements.
type path struct {
	Path
	ids []int
}

// Add adds a path. Two paths of equal elements must be of different policy kinds.
func (b *Builder) Add(p Path) {
	if b.ids == nil {
		b.ids = make(map[string]int)
	}
	ids := make([]int, len(p.Elements))
	for i := range p.Elements {
		ids[i] = b.intern(p.Elements, i)
		if i > 0 {
			b.elements[ids[i-1]].children.add(ids[i])
			b.elements[ids[i]].parents.add(ids[i-1])
		}
	}
	p.Elements = nil // the ids say the same
	b.paths = append(b.paths, path{p, ids})
}

// AddPathless adds a policy that is on no path.
func (b *Builder) AddPathless(o api.Outcome) { b.pathless = append(b.pathless, o) }

func (b *Builder) intern(elements []api.PathElement, i int) int {
	e := elements[i]
	l := laneOf(elements, i)
	key := strconv.Itoa(int(l)) + elementKey(e)
	id := numberOf(b.ids, key)
	if id == len(b.elements) {
		b.elements = append(b.elements, element{PathElement: e, lane: l, key: key})
	}
	return id
}

// elementKey identifies an element within its lane. A rule without a name has its
// index in its section.
func elementKey(e api.PathElement) string {
	return strings.Join([]string{e.Kind, e.Namespace, e.Name, e.Section, e.Client, e.Member}, "\x00")
}

// lane is a column of the picture.
type lane int

// The lanes, from the least to the most specific.
const (
	laneClass lane = iota
	laneGatewayNamespace
	laneGateway
	laneListenerSet
	laneListener
	laneServiceNamespace
	laneService
	laneRouteNamespace
	laneRoute
	laneRule
	laneBackend
	laneResult
	lanes
)

// laneTitles returns the heading of each lane.
func laneTitles() [lanes]string {
	return [lanes]string{
		"GatewayClass", "Namespace of the gateway", "Gateway", "ListenerSet", "Listener",
		"Namespace of the Service", "Service", "Namespace of the route", "Route", "Rule", "Backend", "In effect",
	}
}

// laneOf returns the lane of element i of a path.
func laneOf(path []api.PathElement, i int) lane {
	kind := path[i].Kind
	route := slices.IndexFunc(path, isRoute)
	switch {
	case kind == "GatewayClass":
		return laneClass
	case kind == "Gateway":
		return laneGateway
	case strings.HasSuffix(kind, "ListenerSet"):
		return laneListenerSet
	case kind == "Listener":
		return laneListener
	case i == route:
		return laneRoute
	case kind == "Namespace":
		return laneOfNamespace(path, i)
	case route >= 0 && i < route:
		return laneService
	case route >= 0 && kind == path[route].Kind+"Rule":
		return laneRule
	default:
		return laneBackend
	}
}

func laneOfNamespace(path []api.PathElement, i int) lane {
	switch {
	case i+1 < len(path) && path[i+1].Kind == "Gateway":
		return laneGatewayNamespace
	case i+1 < len(path) && isRoute(path[i+1]):
		return laneRouteNamespace
	default:
		return laneServiceNamespace
	}
}

func isRoute(e api.PathElement) bool { return strings.HasSuffix(e.Kind, "Route") }
