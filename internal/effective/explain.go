package effective

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Explain returns what each policy contributed and lost on the path, and to which
// policy. A rule filters by the rules that it matches: a key, a prefix of keys or a bare
// name, as in an unset list. ok is false if it matches none.
func (e *Effective) Explain(rule *merge.Name) (x api.Explanation, ok bool) {
	in := explanation{e, rule}
	x = api.Explanation{
		PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(),
		Policies: make([]api.Contribution, 0, len(e.Outcomes)),
		Rules:    in.rules(),
	}
	for i := range e.Outcomes {
		c := in.contribution(&e.Outcomes[i])
		if rule == nil || len(c.Blocks) > 0 || len(c.Unset) > 0 {
			x.Policies = append(x.Policies, c)
		}
	}
	x.Weakened = in.weakened()
	x.Bindings = slices.DeleteFunc(in.bindings(), func(b api.Binding) bool { return !in.hasBinding(b) })
	for _, n := range e.Notes {
		x.Notes = append(x.Notes, e.NoteText(n))
	}
	if e.Unread != "" {
		x.Notes = append(x.Notes, e.Unread)
	}
	if e.Unreached != nil {
		x.Notes = append(x.Notes, "no request reaches this path")
	}
	return x, rule == nil || len(x.Policies) > 0
}

// explanation is a path that is explained: the rules that match a filter, nil for all.
type explanation struct {
	*Effective

	filter *merge.Name
}

func (e explanation) matches(k merge.Key) bool { return e.filter == nil || e.filter.Matches(k) }

// hasBinding reports whether a binding matches the filter: by its rule, or by the one that
// shadows it.
func (e explanation) hasBinding(b api.Binding) bool {
	for _, text := range []string{b.Rule, b.ShadowedBy} {
		if k, err := merge.ParseKey(text); text != "" && err == nil && e.matches(k) {
			return true
		}
	}
	return false
}

func (e explanation) contribution(o *merge.Outcome) api.Contribution {
	c := api.Contribution{
		Policy: e.Ref(o.Policy), State: e.StateOf(o),
		Target:     e.Path.Element(e.Level(o.Policy)),
		ReplacedBy: refOf(e.Effective, e.replacedBy(o)), Message: e.emptyMessage(o),
	}
	var keys []merge.Key
	for _, b := range o.Blocks() {
		part := api.ExplainedPart{Block: b.Block.String(), Strategy: b.Strategy.String(), When: b.Condition(), TookPart: o.BlockApplied(b.Block), As: bareAs(o, b.Block)}
		for _, r := range b.Rules {
			if !e.matches(r.Key) {
				continue
			}
			part.Rules = append(part.Rules, r.Key.String())
			if part.TookPart && !isLost(o, r.Key) {
				keys = append(keys, r.Key)
			}
		}
		if len(part.Rules) > 0 {
			c.Blocks = append(c.Blocks, part)
		}
	}
	c.Contributed = keyNames(keys)
	for _, u := range o.Policy.Unset {
		if e.filter == nil || e.unsets(u) {
			c.Unset = append(c.Unset, u.String())
		}
	}
	c.Lost = slices.DeleteFunc(e.LostRules(o), func(l api.LostRule) bool {
		return e.filter != nil && !slices.ContainsFunc(c.Blocks, func(p api.ExplainedPart) bool { return slices.Contains(p.Rules, l.Rule) })
	})
	return c
}

// bareAs returns what the bare rules of a policy acted as, nil if they did as themselves.
func bareAs(o *merge.Outcome, b merge.Block) []string {
	if b != merge.Bare || !o.AppliedAs(b, merge.Defaults) && !o.AppliedAs(b, merge.Overrides) {
		return nil
	}
	var out []string
	for _, as := range []merge.Block{merge.Defaults, merge.Bare, merge.Overrides} {
		if o.AppliedAs(b, as) {
			out = append(out, as.String())
		}
	}
	return out
}

func isLost(o *merge.Outcome, k merge.Key) bool {
	return slices.ContainsFunc(o.Lost, func(l merge.Lost) bool { return l.Key == k })
}

func keyNames(keys []merge.Key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unsets reports whether an entry of an unset list matches some rule on the path that
// matches the filter.
func (e explanation) unsets(entry merge.Name) bool {
	for i := range e.Outcomes {
		for _, b := range e.Outcomes[i].Blocks() {
			if slices.ContainsFunc(b.Rules, func(r merge.Rule) bool { return entry.Matches(r.Key) && e.filter.Matches(r.Key) }) {
				return true
			}
		}
	}
	return false
}

// rules returns the rules that are in force or were lost, by key.
func (e explanation) rules() []api.ExplainedRule {
	rules := make(map[string]*api.ExplainedRule)
	at := func(k merge.Key) *api.ExplainedRule {
		r := rules[k.String()]
		if r == nil {
			r = &api.ExplainedRule{Rule: k.String()}
			rules[k.String()] = r
		}
		return r
	}
	for _, r := range e.Rules {
		if e.matches(r.Key) {
			from := e.Ref(r.From.Policy)
			x := at(r.Key)
			x.From, x.Block, x.Value = &from, r.From.Block.String(), merge.Plain(r.Value)
		}
	}
	all := e.Result.Outcomes // that of the route's own fields included
	for i := range all {
		for _, l := range all[i].Lost {
			if e.matches(l.Key) {
				x := at(l.Key)
				x.Lost = append(x.Lost, api.LostFrom{
					Policy: e.Ref(all[i].Policy), Block: l.Block.String(), Value: merge.Plain(l.Value),
					To: e.Ref(l.To.Policy), ToBlock: l.To.Block.String(), InForce: refOf(e.Effective, l.InForce), Equal: l.Equal,
				})
			}
		}
	}
	out := make([]api.ExplainedRule, 0, len(rules))
	for _, r := range rules {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b api.ExplainedRule) int { return strings.Compare(a.Rule, b.Rule) })
	return out
}

// weakened returns the rules that other policies weaken, one by one: by the
// weakening rule, then by the weakened one.
func (e explanation) weakened() []api.WeakenedRule {
	var out []api.WeakenedRule
	all := slices.DeleteFunc(e.Weakeners(), func(w Weakener) bool { return w.Own() })
	for len(all) > 0 {
		same := 1
		for same < len(all) && all[same].By == all[0].By {
			same++
		}
		var rules []*merge.Effective
		for i := range all[:same] {
			first, rest := all[i].Weakens(all[i].HeldRules.Rules)
			rules = append(append(rules, first...), rest...)
		}
		slices.SortFunc(rules, func(a, b *merge.Effective) int { return a.Key.Compare(b.Key) })
		for _, r := range rules {
			if e.matches(r.Key) || e.matches(all[0].By.Key) {
				out = append(out, e.weakenedRule(r, &all[0]))
			}
		}
		all = all[same:]
	}
	return out
}

func (e explanation) weakenedRule(r *merge.Effective, w *Weakener) api.WeakenedRule {
	how := "alternative"
	if w.Gate {
		how = "gate"
	}
	return api.WeakenedRule{
		Rule: r.Key.String(), Policy: e.Ref(r.From.Policy), How: how,
		By: e.Ref(w.By.From.Policy), ByRule: w.By.Key.String(),
	}
}

// bindings returns the bindings of the limits in force on the path, in the order in
// which they bind.
func (e explanation) bindings() []api.Binding {
	bound := e.Bound()
	if bound == nil {
		return nil
	}
	var out []api.Binding
	holder := bound.Holder()
	for i, r := range bound.Rules {
		l := &bound.Limits[i]
		x := api.Binding{
			Rule: r.Key.String(), From: e.Ref(r.From.Policy), Block: r.From.Block.String(), State: api.BindingUnmatched,
			By: l.By(e.Path.Rule), AlsoMatches: l.AlsoMatches(e.Path.Rule), Hostnames: l.Hostnames(e.Path.Rule),
		}
		switch {
		case i == holder:
			x.State = api.BindingBound
		case l.Matches(e.Path.Rule):
			x.State, x.ShadowedBy = api.BindingShadowed, bound.Rules[holder].Key.String()
		}
		out = append(out, x)
	}
	return out
}

// NoteText returns the text of a note about a condition.
func (e *Effective) NoteText(n merge.Note) string {
	if n.Answer.Err != nil {
		return fmt.Sprintf("%s: %v", notEvaluated(e, n), n.Answer.Err)
	}
	return fmt.Sprintf("%s refers to %s, which is not set: the block does not apply", conditionText(e, n), n.Answer.Missing)
}

// conditionText names the condition of a note.
func conditionText(e *Effective, n merge.Note) string {
	return fmt.Sprintf("the condition of the %s of %s", n.Block, e.Ref(n.Policy))
}

// notEvaluated says what follows from a condition that cannot be evaluated.
func notEvaluated(e *Effective, n merge.Note) string {
	if n.Block == merge.Overrides {
		return conditionText(e, n) + " cannot be evaluated, so the block applies"
	}
	return conditionText(e, n) + " cannot be evaluated, so the block does not apply"
}
