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
	return e.ExplainHiding(rule, nil)
}

// ExplainHiding is Explain without the values and conditions that a reader is not allowed
// to read.
func (e *Effective) ExplainHiding(rule *merge.Name, h Hides) (x api.Explanation, ok bool) {
	x = api.Explanation{
		PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(),
		Policies: make([]api.Contribution, 0, len(e.Outcomes)),
		Rules:    e.explainRules(rule, h),
	}
	for i := range e.Outcomes {
		c := e.contribution(&e.Outcomes[i], rule, h)
		if rule == nil || len(c.Blocks) > 0 || len(c.Unset) > 0 {
			x.Policies = append(x.Policies, c)
		}
	}
	x.Weakened = e.weakenings(func(of, by merge.Key) bool { return matchesFilter(rule, of) || matchesFilter(rule, by) })
	x.Bindings = slices.DeleteFunc(e.Bindings(&Binder{}), func(b api.Binding) bool { return !bindingMatches(rule, b) })
	e.redactBindings(x.Bindings, h)
	for _, n := range e.Notes {
		x.Notes = append(x.Notes, e.noteText(n, e.hidesAny(h)))
	}
	if e.Unread != "" {
		x.Notes = append(x.Notes, e.Unread)
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

func (e *Effective) contribution(o *merge.Outcome, filter *merge.Name, h Hides) api.Contribution {
	c := api.Contribution{
		Policy: e.Ref(o.Policy), State: e.StateOf(o),
		Target:     e.Path.Element(e.Level(o.Policy)),
		ReplacedBy: e.refOf(e.replacedBy(o)), Message: e.emptyMessage(o),
	}
	var keys []merge.Key
	for _, b := range o.Policy.Blocks {
		part := api.ExplainedPart{Block: b.Block.String(), Strategy: b.Strategy.String(), TookPart: o.BlockApplied(b.Block), As: bareAs(o, b.Block)}
		if b.When != nil {
			part.When = b.When.String()
			if part.Redacted = h.hides(c.Policy); part.Redacted {
				part.When = ""
			}
		}
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
		if filter == nil || e.unsets(u, *filter) {
			c.Unset = append(c.Unset, u.String())
		}
	}
	c.Lost = slices.DeleteFunc(e.lostRules(o, h), func(l api.LostRule) bool {
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
func (e *Effective) unsets(entry, filter merge.Name) bool {
	for i := range e.Outcomes {
		for _, b := range e.Outcomes[i].Policy.Blocks {
			if slices.ContainsFunc(b.Rules, func(r merge.Rule) bool { return entry.Matches(r.Key) && filter.Matches(r.Key) }) {
				return true
			}
		}
	}
	return false
}

// explainRules returns the rules that are in force or were lost, by key.
func (e *Effective) explainRules(filter *merge.Name, h Hides) []api.ExplainedRule {
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
			x.From, x.Block, x.Redacted = &from, r.From.Block.String(), h.hides(from)
			if !x.Redacted {
				x.Value = merge.Plain(r.Value)
			}
		}
	}
	all := e.Result.Outcomes // that of the route's own fields included
	for i := range all {
		for _, l := range all[i].Lost {
			if matchesFilter(filter, l.Key) {
				x := at(l.Key)
				lost := api.LostFrom{
					Policy: e.Ref(all[i].Policy), Block: l.Block.String(),
					To: e.Ref(l.To.Policy), ToBlock: l.To.Block.String(), InForce: e.refOf(l.InForce),
					Equal: e.showsEqual(h, all[i].Policy, &l),
				}
				if lost.Redacted = h.hides(lost.Policy); !lost.Redacted {
					lost.Value = merge.Plain(l.Value)
				}
				x.Lost = append(x.Lost, lost)
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
func (e *Effective) NoteText(n merge.Note) string { return e.noteText(n, false) }

// noteText is NoteText. With hidden it has neither the names in the condition nor the
// error, which may contain values of any policy on the path.
func (e *Effective) noteText(n merge.Note, hidden bool) string {
	block := fmt.Sprintf("the condition of the %s of %s", n.Block, e.Ref(n.Policy))
	switch {
	case hidden && n.Answer.Err == nil:
		return block + " refers to a field that is not set: the block does not apply"
	case hidden && n.Block == merge.Overrides:
		return block + " cannot be evaluated, so the block applies"
	case hidden:
		return block + " cannot be evaluated, so the block does not apply"
	case n.Answer.Err == nil:
		return fmt.Sprintf("%s refers to %s, which is not set: the block does not apply", block, n.Answer.Missing)
	case n.Block == merge.Overrides:
		return fmt.Sprintf("%s cannot be evaluated, so the block applies: %v", block, n.Answer.Err)
	default:
		return fmt.Sprintf("%s cannot be evaluated, so the block does not apply: %v", block, n.Answer.Err)
	}
}

// redactBindings removes what hidden policies select, and the matches of a hidden route.
func (e *Effective) redactBindings(all []api.Binding, h Hides) {
	if h == nil || len(all) == 0 || e.Path.Route == nil {
		return
	}
	route := h.hides(e.Path.Route.Ref())
	for i := range all {
		b := &all[i]
		if route || h.hides(b.From) {
			b.By, b.AlsoMatches, b.Hostnames, b.Redacted = nil, nil, nil, true
		}
	}
}

// CompareExplanations orders explanations as CompareItems orders effective
// policies.
func CompareExplanations(a, b api.Explanation) int {
	return CompareItems(
		api.EffectivePolicy{PolicyKind: a.PolicyKind, Path: a.Path},
		api.EffectivePolicy{PolicyKind: b.PolicyKind, Path: b.Path},
	)
}
