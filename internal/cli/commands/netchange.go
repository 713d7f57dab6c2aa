package commands

import (
	"cmp"
	"encoding/json"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/graph"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

// netChanges are what a sequence of writes changes in the end: for each path of a policy
// kind its effective policy before the first write and after the last one. A path has
// several changes if it took over requests of others.
type netChanges struct {
	paths map[string][]*netChange // by the keyOfEffective after the writes; that before, if it was removed
}

// netChange is the change of one path.
type netChange struct {
	effective.Pair
	causes []*evaluatedStep // in the order of the writes
}

// newNetChanges returns what the steps of a change change in the end.
func newNetChanges(steps []evaluatedStep) *netChanges {
	n := &netChanges{paths: make(map[string][]*netChange)}
	bySequence := func(a, b evaluatedStep) int { return a.sequence - b.sequence }
	for _, e := range slices.SortedStableFunc(slices.Values(steps), bySequence) {
		n.add(&e)
	}
	return n
}

// add adds the paths that a write changes. Each is on top of what earlier writes changed:
// the pairs of the write are looked up before any of them is added.
func (n *netChanges) add(e *evaluatedStep) {
	next := make(map[string][]*netChange)
	var replaced []string
	for _, p := range e.pairs {
		to := keyOfEffective(p.Effective())
		from := to
		if p.Before != nil {
			from = keyOfEffective(p.Before)
		}
		if len(n.paths[from]) == 0 {
			next[to] = append(next[to], &netChange{Pair: p, causes: []*evaluatedStep{e}})
			continue
		}
		replaced = append(replaced, from)
		for _, was := range n.paths[from] {
			c := &netChange{Pair: p, causes: append(slices.Clone(was.causes), e)}
			c.Before = was.Before
			next[to] = append(next[to], c)
		}
	}
	for _, from := range replaced {
		delete(n.paths, from)
	}
	for to, changes := range next {
		n.paths[to] = append(n.paths[to], changes...)
	}
}

// keyOfEffective returns a key that identifies a path of a policy kind.
func keyOfEffective(e *effective.Effective) string {
	text, err := json.Marshal([]any{e.Kind.Ref(), e.Path.Elements()})
	if err != nil {
		return err.Error() // strings and numbers can always be encoded
	}
	return string(text)
}

// changed returns the changes of paths whose effective policy differs in the end, sorted
// by policy kind and path. What a path was itself before comes before what it took over.
func (n *netChanges) changed() []*netChange {
	var out []*netChange
	for _, changes := range n.paths {
		for _, c := range changes {
			if c.Effective() != nil && c.Changed() {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *netChange) int {
		x, y := a.Effective(), b.Effective()
		if c := cmp.Or(api.ComparePolicyKinds(x.Kind.Ref(), y.Kind.Ref()), api.ComparePaths(x.Path.Elements(), y.Path.Elements())); c != 0 {
			return c
		}
		return api.ComparePaths(a.was(), b.was()) // of few: names take time
	})
	return out
}

// change returns the change as the JSON contract shows it.
func (c *netChange) change() api.Change { return c.causes[len(c.causes)-1].changeOf(c.Pair) }

// was returns the path before the change, nil if there was none or it has the same name.
func (c *netChange) was() []api.PathElement {
	if c.Before == nil || c.After == nil {
		return nil
	}
	before := c.Before.Path.Elements()
	if api.PathText(before) == api.PathText(c.After.Path.Elements()) {
		return nil
	}
	return before
}

// items returns the changes as the JSON contract shows them.
func (n *netChanges) items() []api.Change {
	changed := n.changed()
	out := make([]api.Change, len(changed))
	for i, c := range changed {
		out[i] = c.change()
	}
	return out
}

// Limits of the diagram in a report: what a reader takes in, and a fraction of the size of
// a comment.
const (
	diagramPaths      = 400
	diagramNodes      = 40
	diagramCharacters = 12_000
)

// diagram draws the changed paths as they are after the change, or were before, if they
// no longer exist. It is empty if there are none, or the picture is too large.
func diagram(changes []*netChange) string {
	if len(changes) == 0 || len(changes) > diagramPaths {
		return ""
	}
	b := &graph.Builder{}
	for _, c := range changes {
		b.Add(c.graphPath())
	}
	fits := func(g *graph.Graph) bool { return graph.FitsMermaid(g) && len(g.Mermaid()) <= diagramCharacters }
	g := b.Graph(graph.Options{Nodes: diagramNodes, Lines: 6, Fits: fits})
	if !fits(g) {
		return ""
	}
	return g.Mermaid()
}

// graphPath returns the path for a picture, with what the change does to it.
func (c *netChange) graphPath() graph.Path {
	out := effectivePath(c.Effective())
	for _, r := range c.Rules() {
		change := graph.RuleChange{Rule: r.Rule, Removed: r.After == nil || c.After == nil}
		if r.Before != nil {
			change.Was = &r.Before.From
		}
		out.Changes = append(out.Changes, change)
	}
	if c.After == nil {
		out.Rules = nil
	}
	had := c.policies(c.Before)
	for i := range out.Policies {
		p := &out.Policies[i]
		switch {
		case c.After == nil:
			p.Change = "removed from the path"
		case c.Before == nil:
			if c.created(p.Policy) {
				p.Change = "added"
			}
		case !had[p.Policy]:
			p.Change = "added"
		}
	}
	if c.Before != nil && c.After != nil {
		out.Policies = append(out.Policies, c.removedPolicies(&out)...)
	}
	return out
}

// created reports whether the change creates a policy.
func (c *netChange) created(policy api.Ref) bool {
	return slices.ContainsFunc(c.causes, func(e *evaluatedStep) bool {
		ref, operation := e.objectAndOperation()
		return ref == policy && operation == string(guard.Create)
	})
}

// policies returns the policies on a path.
func (c *netChange) policies(e *effective.Effective) map[api.Ref]bool {
	out := make(map[api.Ref]bool)
	if e != nil {
		for i := range e.Outcomes {
			out[e.Ref(e.Outcomes[i].Policy)] = true
		}
	}
	return out
}

// removedPolicies returns the policies that were on a path and are not any more, on the
// elements that the path still has.
func (c *netChange) removedPolicies(now *graph.Path) []graph.Policy {
	has := c.policies(c.After)
	var out []graph.Policy
	was := effectivePath(c.Before)
	for _, p := range was.Policies {
		if has[p.Policy] || p.At < 0 {
			continue
		}
		if p.At = elementIndex(now.Elements, was.Elements[p.At]); p.At < 0 {
			continue
		}
		out = append(out, graph.Policy{PolicyOnPath: api.PolicyOnPath{Policy: p.Policy}, At: p.At, Change: "removed"})
	}
	return out
}
