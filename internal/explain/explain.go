package explain

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// Explain returns what each policy contributed and lost on the path, and to which
// policy. A rule filters by the rules that it matches: a key, a prefix of keys or a bare
// name, as in an unset list. ok is false if it matches none.
func Explain(e *effective.Effective, rule *merge.Name) (x api.Explanation, ok bool) {
	x = api.Explanation{
		PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(),
		Policies: make([]api.Contribution, 0, len(e.Outcomes)),
		Rules:    explainRules(e, rule),
	}
	for i := range e.Outcomes {
		c := contribution(e, &e.Outcomes[i], rule)
		if rule == nil || len(c.Blocks) > 0 || len(c.Unset) > 0 {
			x.Policies = append(x.Policies, c)
		}
	}
	x.Weakened = weakenings(e, func(of, by merge.Key) bool { return matchesFilter(rule, of) || matchesFilter(rule, by) })
	x.Bindings = slices.DeleteFunc(bindings(e), func(b api.Binding) bool { return !bindingMatches(rule, b) })
	for _, n := range e.Notes {
		x.Notes = append(x.Notes, NoteText(e, n))
	}
	if e.Unread != "" {
		x.Notes = append(x.Notes, e.Unread)
	}
	if e.Unreached != nil {
		x.Notes = append(x.Notes, "no request reaches this path")
	}
	return x, rule == nil || len(x.Policies) > 0
}

// matchesFilter reports whether a rule matches a filter, nil for all.
func matchesFilter(filter *merge.Name, k merge.Key) bool { return filter == nil || filter.Matches(k) }

// bindingMatches reports whether a binding matches a filter: by its rule, or by the one
// that shadows it.
func bindingMatches(filter *merge.Name, b api.Binding) bool {
	for _, text := range []string{b.Rule, b.ShadowedBy} {
		if k, err := merge.ParseKey(text); text != "" && err == nil && matchesFilter(filter, k) {
			return true
		}
	}
	return false
}

func contribution(e *effective.Effective, o *merge.Outcome, filter *merge.Name) api.Contribution {
	c := api.Contribution{
		Policy: e.Ref(o.Policy), State: stateOf(e, o),
		Target:     e.Path.Element(e.Level(o.Policy)),
		ReplacedBy: refOf(e, replacedBy(e, o)), Message: emptyMessageOf(e, o),
	}
	var keys []merge.Key
	for _, b := range o.Blocks() {
		part := api.ExplainedPart{Block: b.Block.String(), Strategy: b.Strategy.String(), When: b.Condition(), TookPart: o.BlockApplied(b.Block), As: bareAs(o, b.Block)}
		for _, r := range b.Rules {
			if !matchesFilter(filter, r.Key) {
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
		if filter == nil || unsets(e, u, *filter) {
			c.Unset = append(c.Unset, u.String())
		}
	}
	c.Lost = slices.DeleteFunc(lostRules(e, o), func(l api.LostRule) bool {
		return filter != nil && !slices.ContainsFunc(c.Blocks, func(p api.ExplainedPart) bool { return slices.Contains(p.Rules, l.Rule) })
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
func unsets(e *effective.Effective, entry, filter merge.Name) bool {
	for i := range e.Outcomes {
		for _, b := range e.Outcomes[i].Blocks() {
			if slices.ContainsFunc(b.Rules, func(r merge.Rule) bool { return entry.Matches(r.Key) && filter.Matches(r.Key) }) {
				return true
			}
		}
	}
	return false
}

// explainRules returns the rules that are in force or were lost, by key.
func explainRules(e *effective.Effective, filter *merge.Name) []api.ExplainedRule {
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
		if matchesFilter(filter, r.Key) {
			from := e.Ref(r.From.Policy)
			x := at(r.Key)
			x.From, x.Block, x.Value = &from, r.From.Block.String(), merge.Plain(r.Value)
		}
	}
	all := e.Result.Outcomes // that of the route's own fields included
	for i := range all {
		for _, l := range all[i].Lost {
			if matchesFilter(filter, l.Key) {
				x := at(l.Key)
				x.Lost = append(x.Lost, api.LostFrom{
					Policy: e.Ref(all[i].Policy), Block: l.Block.String(), Value: merge.Plain(l.Value),
					To: e.Ref(l.To.Policy), ToBlock: l.To.Block.String(), InForce: refOf(e, l.InForce), Equal: l.Equal,
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

// NoteText returns the text of a note about a condition.
func NoteText(e *effective.Effective, n merge.Note) string {
	if n.Answer.Err != nil {
		return fmt.Sprintf("%s: %v", notEvaluated(e, n), n.Answer.Err)
	}
	return fmt.Sprintf("%s refers to %s, which is not set: the block does not apply", conditionText(e, n), n.Answer.Missing)
}

func conditionText(e *effective.Effective, n merge.Note) string {
	return fmt.Sprintf("the condition of the %s of %s", n.Block, e.Ref(n.Policy))
}

// notEvaluated says what follows from a condition that cannot be evaluated.
func notEvaluated(e *effective.Effective, n merge.Note) string {
	if n.Block == merge.Overrides {
		return conditionText(e, n) + " cannot be evaluated, so the block applies"
	}
	return conditionText(e, n) + " cannot be evaluated, so the block does not apply"
}

// bindings returns the bindings of the limits in force on the path, in the order in
// which they bind.
func bindings(e *effective.Effective) []api.Binding {
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

// weakenings returns the rules that other policies weaken, one by one: by the
// weakening rule, then by the weakened one.
func weakenings(e *effective.Effective, wanted func(rule, by merge.Key) bool) []api.WeakenedRule {
	var out []api.WeakenedRule
	all := slices.DeleteFunc(e.Weakeners(), func(w effective.Weakener) bool { return w.Own() })
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
			if wanted(r.Key, all[0].By.Key) {
				out = append(out, weakenedRule(e, r, &all[0]))
			}
		}
		all = all[same:]
	}
	return out
}

func weakenedRule(e *effective.Effective, r *merge.Effective, w *effective.Weakener) api.WeakenedRule {
	how := "alternative"
	if w.Gate {
		how = "gate"
	}
	return api.WeakenedRule{
		Rule: r.Key.String(), Policy: e.Ref(r.From.Policy), How: how,
		By: e.Ref(w.By.From.Policy), ByRule: w.By.Key.String(),
	}
}
