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
	w := &drawing{
		collapser: b.collapse(d), Graph: &Graph{Paths: len(b.paths)}, lines: o.Lines,
		noted: make(map[string]*noteTally), results: make(map[string]*resultTally),
	}
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
	policies map[api.Ref]bool
	blocks   map[string]bool
	states   map[api.State]int
	messages map[string]bool
	changes  map[string]bool
	paths    int
	rules    map[ruleKey]*ruleTally
}

type ruleKey struct{ rule, block string }

type ruleTally struct {
	inEffect int
	lost     int
	equal    int
	by       map[api.Ref]bool
}

// resultTally counts what is in effect at the end of paths.
type resultTally struct {
	Result
	box   *Box
	via   map[*Box]bool
	rules map[ruleKey]*originTally
	// changed and removed are the rules that a change alters, by the policies that set
	// them before; none for an added rule.
	changed, removed map[string]map[api.Ref]bool
}

type originTally struct {
	paths int
	from  map[api.Ref]bool
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
			r.via[w.boxes[w.groups[id]]] = true
		}
	}
	for i := range p.Rules {
		o := &p.Rules[i]
		key := ruleKey{o.Rule, o.Block}
		if n := byRef[o.From]; n != nil {
			n.rule(key).inEffect++
		}
		if r.rules[key] == nil {
			r.rules[key] = &originTally{from: make(map[api.Ref]bool)}
		}
		r.rules[key].paths++
		r.rules[key].from[o.From] = true
	}
	for i := range p.Changes {
		r.addChange(&p.Changes[i])
	}
}

func (r *resultTally) addChange(c *RuleChange) {
	all := r.changed
	if c.Removed {
		all = r.removed
	}
	if c.Was != nil {
		add(all, c.Rule, *c.Was)
	} else if all[c.Rule] == nil {
		all[c.Rule] = make(map[api.Ref]bool)
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
	key = fmt.Sprintf("%p %s", on, key)
	if w.noted[key] == nil {
		w.noted[key] = &noteTally{
			Note: Note{Kind: p.Kind, On: on}, policies: make(map[api.Ref]bool), blocks: make(map[string]bool),
			states: make(map[api.State]int), messages: make(map[string]bool), changes: make(map[string]bool), rules: make(map[ruleKey]*ruleTally),
		}
	}
	return w.noted[key]
}

func (n *noteTally) add(o *Policy) {
	n.policies[o.Policy] = true
	n.paths++
	n.states[o.State]++
	if o.Message != "" {
		n.messages[o.Message] = true
	}
	for _, b := range o.Blocks {
		n.blocks[b] = true
	}
	if o.Change != "" {
		n.changes[o.Change] = true
	}
	for i := range o.Lost {
		l := &o.Lost[i]
		r := n.rule(ruleKey{l.Rule, l.Block})
		r.lost++
		winner := l.To
		if l.InForce != nil {
			winner = *l.InForce
		}
		r.by[winner] = true
		if l.Equal {
			r.equal++
		}
	}
}

func (n *noteTally) rule(k ruleKey) *ruleTally {
	if n.rules[k] == nil {
		n.rules[k] = &ruleTally{by: make(map[api.Ref]bool)}
	}
	return n.rules[k]
}

// result returns the result of the kind and the outcome at the end of a path.
func (w *drawing) result(p *path) *resultTally {
	box := w.boxes[w.groups[p.ids[len(p.ids)-1]]]
	key := fmt.Sprintf("%p %s", box, p.Kind)
	if w.detail < routesOfParent {
		key += w.outcome(p)
	}
	if w.results[key] == nil {
		w.results[key] = &resultTally{
			Result: Result{Kind: p.Kind}, box: box, via: make(map[*Box]bool), rules: make(map[ruleKey]*originTally),
			changed: make(map[string]map[api.Ref]bool), removed: make(map[string]map[api.Ref]bool),
		}
	}
	return w.results[key]
}

func sortedRefs(set map[api.Ref]bool) []api.Ref {
	return slices.SortedFunc(maps.Keys(set), api.CompareRefs)
}

func sortedRules[T any](rules map[ruleKey]T) []ruleKey {
	return slices.SortedFunc(maps.Keys(rules), func(a, b ruleKey) int {
		return cmp.Or(strings.Compare(a.rule, b.rule), strings.Compare(a.block, b.block))
	})
}
