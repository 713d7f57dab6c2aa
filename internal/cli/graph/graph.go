package graph

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Graph is a picture of effective policies.
type Graph struct {
	// Boxes are the targets, by lane. The roots have no parent.
	Boxes, roots []*Box
	// Notes are the policies on targets, Pathless those that are on no path.
	Notes    []*Note
	Pathless []Line
	// Collapsed says of which kinds several objects are drawn as one and not all are
	// named; empty if all are.
	Collapsed string
	// Paths is the number of paths.
	Paths int

	edges int
}

// Box is a target, or several whose outcomes are equal.
type Box struct {
	ID      string
	Kind    string
	Members []api.PathElement // sorted
	Results []*Result

	lane     lane
	children []*Box // of which this is the first parent
	links    []*Box // children that have another first parent
	parents  []*Box
	notes    []*Note
}

// Note is a policy, or one each of several targets that are drawn as one.
type Note struct {
	ID       string
	Kind     api.PolicyKind
	Policies []api.Ref // sorted
	// Blocks are what the applied blocks acted as, see Policy. Status is
	// set if it has no effect on some paths.
	Blocks []string
	Status string
	Lines  []Line
	On     *Box // nil for the whole mesh
}

// Overrides reports whether the policy has overrides.
func (n *Note) Overrides() bool { return slices.Contains(n.Blocks, Overrides) }

// Relation says how the policy applies, in words.
func (n *Note) Relation() string {
	if len(n.Blocks) == 0 {
		return "does not apply"
	}
	return strings.Join(n.Blocks, " and ")
}

// Title is the kind, and the name or the number of the policies.
func (n *Note) Title() (kind, name string) {
	return countOf(n.Kind.Kind, len(n.Policies)), examples(n.Policies, api.Ref.Key)
}

// Result is what is in effect at the end of paths, for one policy kind.
type Result struct {
	ID    string
	Kind  api.PolicyKind
	Paths int
	// Via are the parents of the route that the paths come from, if not all do.
	Via   string
	Lines []Line
}

// Title is the heading of the result.
func (r *Result) Title() string {
	title := "In effect: " + r.Kind.Kind
	if r.Via != "" {
		title += ", via " + r.Via
	}
	return title
}

// Line is a rule of a policy or of a result.
type Line struct {
	Text string
	// Lost is set if the rule has no effect on any path.
	Lost bool
	// Comment says who replaces the rule, or where it comes from.
	Comment string
}

// Title is the kind, and the name or the number of the targets.
func (b *Box) Title() (kind, name string) {
	return countOf(b.Kind, len(b.Members)), examples(b.Members, b.memberName)
}

// memberName returns the name of an element; one member of several has that of its
// object, too.
func (b *Box) memberName(e api.PathElement) string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + e.Name
	}
	switch {
	case e.Section == "":
	case b.lane == laneRule || b.lane == laneListener:
		name = e.Section
		if b.severalObjects() {
			name = e.Name + "#" + e.Section
		}
	default:
		name += ":" + e.Section
	}
	if e.Member != "" {
		name += "." + e.Member
	}
	if e.Client != "" {
		name += ", clients in " + e.Client
	}
	return name
}

func (b *Box) severalObjects() bool {
	first := b.Members[0]
	return slices.ContainsFunc(b.Members, func(e api.PathElement) bool {
		return e.Name != first.Name || e.Namespace != first.Namespace
	})
}

// Options limit a picture.
type Options struct {
	// Nodes is the number of boxes, notes and results up to which targets are drawn
	// one by one if their outcomes differ; 0 for 120.
	Nodes int
	// Lines is the number of rules shown in a note or a result; 0 for 12.
	Lines int
	// More says what to do to see more of what is drawn as one.
	More string
	// Fits reports whether a picture is small enough for its format; nil if any is.
	Fits func(*Graph) bool
}

// Graph draws the paths with the most detail that the options allow.
func (b *Builder) Graph(o Options) *Graph {
	if o.Nodes == 0 {
		o.Nodes = 120
	}
	if o.Lines == 0 {
		o.Lines = 12
	}
	var g *Graph
	for d := equalRoutes; d <= oneOfLane; d++ {
		g = b.draw(d, o)
		if g.nodes() <= o.Nodes && (o.Fits == nil || o.Fits(g)) {
			break
		}
	}
	return g
}

func (g *Graph) nodes() int {
	n := len(g.Boxes) + len(g.Notes)
	for _, b := range g.Boxes {
		n += len(b.Results)
	}
	return n
}
