package graph

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func (w *drawing) addNotes() {
	for _, key := range slices.Sorted(maps.Keys(w.noted)) {
		n := w.noted[key]
		n.Policies = sortedRefs(n.policies)
		n.Blocks = slices.Sorted(maps.Keys(n.blocks))
		n.Status = n.status()
		for _, rule := range sortedRules(n.rules) {
			n.Lines = append(n.Lines, n.line(rule))
		}
		n.Lines = cut(n.Lines, w.lines)
		w.Notes = append(w.Notes, &n.Note)
	}
	slices.SortStableFunc(w.Notes, compareNotes)
	for _, n := range w.Notes {
		if n.On != nil {
			n.On.notes = append(n.On.notes, n)
		}
	}
}

func compareNotes(a, b *Note) int {
	return cmp.Or(api.ComparePolicyKinds(a.Kind, b.Kind), slices.CompareFunc(a.Policies, b.Policies, api.CompareRefs), compareBoxes(a.On, b.On))
}

func compareBoxes(a, b *Box) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.lane, b.lane), api.ComparePaths(a.Members, b.Members))
}

// status says on which paths the policy has no effect, and why.
func (n *noteTally) status() string {
	var parts []string
	add := func(s api.State, why string) {
		if count := *entry(&n.states, s); count > 0 {
			parts = append(parts, "no effect"+onPaths(count, n.paths)+": "+why)
		}
	}
	add(api.Overridden, "overridden")
	add(api.Inactive, "its condition is not met")
	add(api.Unreached, "no request reaches it")
	parts = append(parts, slices.Sorted(maps.Keys(n.messages))...)
	return strings.Join(append(parts, slices.Sorted(maps.Keys(n.changes))...), "; ")
}

// line says what becomes of a rule.
func (n *noteTally) line(k ruleKey) Line {
	r := n.rules[k]
	line := Line{Text: k.rule, Lost: r.inEffect == 0 && r.lost > 0}
	if len(n.blocks) > 1 {
		line.Text += " (" + k.block + ")"
	}
	if r.lost > 0 {
		line.Comment = "replaced by " + examples(sortedRefs(r.by), n.winner) + onPaths(r.lost, r.lost+r.inEffect)
		if r.equal == r.lost {
			line.Comment += ", with an equal value"
		}
	}
	return line
}

// winner names a policy that replaces one of the kind of the note.
func (n *noteTally) winner(r api.Ref) string {
	if r.PolicyKind() == n.Kind {
		return r.Key()
	}
	return r.String()
}

// cut cuts the lines to a number, the last of which counts those that are left out.
// Lines that were lost stay before others.
func cut(lines []Line, n int) []Line {
	if len(lines) <= n {
		return lines
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(rank(a), rank(b)) })
	more := len(lines) - n + 1
	return append(lines[:n-1:n-1], Line{Text: "and " + countOf("more rule", more)})
}

func rank(l Line) int {
	if l.Comment != "" {
		return 0
	}
	return 1
}

func (w *drawing) addResults() {
	type boxKind struct {
		*Box
		api.PolicyKind
	}
	count := make(map[boxKind]int)
	for _, r := range w.results {
		count[boxKind{r.box, r.Kind}]++
	}
	for _, key := range slices.Sorted(maps.Keys(w.results)) {
		r := w.results[key]
		for _, rule := range sortedRules(r.rules) {
			r.Lines = append(r.Lines, r.line(rule))
		}
		for _, rule := range slices.Sorted(maps.Keys(r.removed)) {
			r.Lines = append(r.Lines, Line{Text: rule, Lost: true, Comment: "removed, was from " + r.policies(*r.removed[rule])})
		}
		r.Lines = cut(r.Lines, w.lines)
		switch {
		case len(r.Lines) == 0:
			r.Lines = []Line{{Text: "no rule"}}
		case len(r.rules) == 0:
			r.Lines = append([]Line{{Text: "no rule any more"}}, r.Lines...)
		}
		if count[boxKind{r.box, r.Kind}] > 1 {
			r.Via = r.viaText()
		}
		r.box.Results = append(r.box.Results, &r.Result)
	}
	for _, b := range w.Boxes {
		slices.SortStableFunc(b.Results, compareResults)
	}
}

func compareResults(a, b *Result) int {
	return cmp.Or(
		api.ComparePolicyKinds(a.Kind, b.Kind), strings.Compare(a.Via, b.Via), cmp.Compare(b.Paths, a.Paths),
		slices.CompareFunc(a.Lines, b.Lines, func(x, y Line) int {
			return cmp.Or(strings.Compare(x.Text, y.Text), strings.Compare(x.Comment, y.Comment))
		}),
	)
}

func (r *resultTally) line(k ruleKey) Line {
	o := r.rules[k]
	comment := "from " + r.policies(o.from)
	if k.block == Overrides || k.block == Defaults {
		comment += " (" + k.block + ")"
	}
	comment += onPaths(o.paths, r.Paths)
	switch was, changed := r.changed[k.rule]; {
	case changed && len(*was) == 0:
		comment += ", added"
	case changed && maps.Equal(*was, o.from):
		comment += ", changed"
	case changed:
		comment += ", was from " + r.policies(*was)
	}
	return Line{Text: k.rule, Comment: comment}
}

// policies names policies.
func (r *resultTally) policies(from set[api.Ref]) string {
	return examples(sortedRefs(from), func(ref api.Ref) string {
		if ref.PolicyKind() == r.Kind {
			return ref.Key()
		}
		return ref.String()
	})
}

// viaText names the listeners, or else the gateways or Services, that the paths of a
// result come through.
func (r *resultTally) viaText() string {
	var last lane
	for b := range r.via {
		last = max(last, b.lane)
	}
	var names []string
	for b := range r.via {
		if b.lane == last {
			_, name := b.Title()
			if b.lane == laneListener && len(b.Members) == 1 {
				name = b.Members[0].Name + "#" + name
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return examples(names, func(s string) string { return s })
}

func (w *drawing) addPathless() {
	for i := range w.pathless {
		o := &w.pathless[i]
		w.Pathless = append(w.Pathless, Line{Text: o.Policy.String(), Comment: cmp.Or(o.Message, string(o.State))})
	}
	slices.SortFunc(w.Pathless, func(a, b Line) int { return strings.Compare(a.Text, b.Text) })
	w.Pathless = cut(w.Pathless, w.lines)
	if k := len(w.Pathless); k > 0 && strings.HasPrefix(w.Pathless[k-1].Text, "and ") {
		w.Pathless[k-1].Text = "and " + countOf("more policy", len(w.pathless)-k+1)
	}
}

// arrange gives each box its first parent, sorts, and numbers everything.
func (w *drawing) arrange() {
	for _, b := range w.Boxes {
		slices.SortFunc(b.parents, compareBoxes)
		for i, p := range b.parents {
			if i == 0 {
				p.children = append(p.children, b)
			} else {
				p.links = append(p.links, b)
			}
			w.edges++
		}
		if len(b.parents) == 0 {
			w.roots = append(w.roots, b)
		}
	}
	for i, n := range w.Notes {
		n.ID = "p" + strconv.Itoa(i+1)
		w.edges++
	}
	results := 0
	for i, b := range w.Boxes {
		b.ID = "t" + strconv.Itoa(i+1)
		for _, r := range b.Results {
			results++
			r.ID = "e" + strconv.Itoa(results)
			w.edges++
		}
	}
}

// collapsed says how many objects are drawn as one, of the kinds that are not all named.
func (w *drawing) collapsed() string {
	objects, boxes, unnamed := make(map[string]int), make(map[string]int), make(map[string]bool)
	for _, b := range w.Boxes {
		objects[b.Kind] += len(b.Members)
		boxes[b.Kind]++
		if len(b.Members) > maxExamples {
			unnamed[b.Kind] = true
		}
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(objects)) {
		if unnamed[kind] {
			parts = append(parts, countOf(kind, objects[kind])+" in "+countOf("box", boxes[kind]))
		}
	}
	for i := range parts {
		parts[i] = strings.Replace(parts[i], " in box", " in 1 box", 1)
	}
	if len(parts) == 0 {
		return ""
	}
	how := "with equal outcomes"
	if w.detail >= routesOfParent {
		how = "also with different outcomes"
	}
	return "Drawn as one, " + how + ": " + strings.Join(parts, ", ") + "."
}
