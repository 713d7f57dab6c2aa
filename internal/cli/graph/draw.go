package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// drawing is a Graph that is being drawn.
type drawing struct {
	*collapser
	*Graph
	lines   int
	boxes   []*Box // by group
	noted   map[string]*noteTally
	results map[string]*resultTally
}

func (b *Builder) draw(d detail, o Options) *Graph {
	w := &drawing{collapser: b.collapse(d), Graph: &Graph{Paths: len(b.paths)}, lines: o.Lines}
	w.addBoxes()
	for i := range b.paths {
		w.addPath(&b.paths[i])
	}
	w.addNotes()
	w.addResults()
	w.addPathless()
	w.arrange()
	if text := w.collapsed(); text != "" {
		w.Collapsed = strings.TrimSpace(text + " " + o.More)
	}
	return w.Graph
}

func (w *drawing) addBoxes() {
	for id, group := range w.groups {
		e := &w.elements[id]
		for len(w.boxes) <= group {
			w.boxes = append(w.boxes, nil)
		}
		if w.boxes[group] == nil {
			w.boxes[group] = &Box{Kind: e.Kind, lane: e.lane}
			w.Boxes = append(w.Boxes, w.boxes[group])
		}
		box := w.boxes[group]
		if box.Kind != e.Kind {
			box.Kind = "object"
		}
		box.Members = append(box.Members, e.PathElement)
	}
	for _, box := range w.Boxes {
		slices.SortFunc(box.Members, func(a, b api.PathElement) int {
			return api.ComparePaths([]api.PathElement{a}, []api.PathElement{b})
		})
	}
	slices.SortFunc(w.Boxes, func(a, b *Box) int {
		return cmp.Or(cmp.Compare(a.lane, b.lane), api.ComparePaths(a.Members, b.Members))
	})
	for id := range w.elements {
		child := w.boxes[w.groups[id]]
		for p := range w.elements[id].parents {
			if parent := w.boxes[w.groups[p]]; parent != child && !slices.Contains(child.parents, parent) {
				child.parents = append(child.parents, parent)
			}
		}
	}
}

// noteTally counts what becomes of the rules of a note.
type noteTally struct {
	Note
	policies set[api.Ref]
	blocks   set[string]
	states   map[api.State]*int
	messages set[string]
	changes  set[string]
	paths    int
	rules    map[ruleKey]*ruleTally
}

type ruleKey struct{ rule, block string }

type ruleTally struct {
	inEffect int
	lost     int
	equal    int
	by       set[api.Ref]
}

// resultTally counts what is in effect at the end of paths.
type resultTally struct {
	Result
	box   *Box
	via   set[*Box]
	rules map[ruleKey]*originTally
	// changed and removed are the rules that a change alters, by the policies that set
	// them before; none for an added rule.
	changed, removed map[string]*set[api.Ref]
}

type originTally struct {
	paths int
	from  set[api.Ref]
}

func (w *drawing) addPath(p *path) {
	byRef := make(map[api.Ref]*noteTally, len(p.Policies))
	for i := range p.Policies {
		o := &p.Policies[i]
		n := w.note(p, i)
		byRef[o.Policy] = n
		n.add(o)
	}
	r := w.result(p)
	r.Paths++
	for _, id := range p.ids[:len(p.ids)-1] {
		if w.elements[id].lane < laneRouteNamespace {
			r.via.add(w.boxes[w.groups[id]])
		}
	}
	for i := range p.Rules {
		o := &p.Rules[i]
		key := ruleKey{o.Rule, o.Block}
		if n := byRef[o.From]; n != nil {
			entry(&n.rules, key).inEffect++
		}
		origin := entry(&r.rules, key)
		origin.paths++
		origin.from.add(o.From)
	}
	for i := range p.Changes {
		r.addChange(&p.Changes[i])
	}
}

func (r *resultTally) addChange(c *RuleChange) {
	all := &r.changed
	if c.Removed {
		all = &r.removed
	}
	if was := entry(all, c.Rule); c.Was != nil {
		was.add(*c.Was)
	}
}

// note returns the note for policy i of a path.
func (w *drawing) note(p *path, i int) *noteTally {
	o := &p.Policies[i]
	key := w.nameOf(p, o.Policy)
	var on *Box
	if o.At >= 0 {
		on = w.boxes[w.groups[p.ids[o.At]]]
	}
	if w.detail >= routesOfParent {
		key = o.Policy.PolicyKind().String()
	}
	n := entry(&w.noted, fmt.Sprintf("%p %s", on, key))
	n.Kind, n.On = p.Kind, on
	return n
}

func (n *noteTally) add(o *Policy) {
	n.policies.add(o.Policy)
	n.paths++
	*entry(&n.states, o.State)++
	if o.Message != "" {
		n.messages.add(o.Message)
	}
	for _, b := range o.Blocks {
		n.blocks.add(b)
	}
	if o.Change != "" {
		n.changes.add(o.Change)
	}
	for i := range o.Lost {
		l := &o.Lost[i]
		r := entry(&n.rules, ruleKey{l.Rule, l.Block})
		r.lost++
		winner := l.To
		if l.InForce != nil {
			winner = *l.InForce
		}
		r.by.add(winner)
		if l.Equal {
			r.equal++
		}
	}
}

// result returns the result of the kind and the outcome at the end of a path.
func (w *drawing) result(p *path) *resultTally {
	box := w.boxes[w.groups[p.ids[len(p.ids)-1]]]
	key := fmt.Sprintf("%p %s", box, p.Kind)
	if w.detail < routesOfParent {
		key += w.outcome(p)
	}
	r := entry(&w.results, key)
	r.Kind, r.box = p.Kind, box
	return r
}

func sortedRefs(s set[api.Ref]) []api.Ref {
	return slices.SortedFunc(maps.Keys(s), api.CompareRefs)
}

func sortedRules[T any](rules map[ruleKey]T) []ruleKey {
	return slices.SortedFunc(maps.Keys(rules), func(a, b ruleKey) int {
		return cmp.Or(strings.Compare(a.rule, b.rule), strings.Compare(a.block, b.block))
	})
}
