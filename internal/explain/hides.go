package explain

import (
	"reflect"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Hides reports whether a reader is not allowed to read an object: a policy, or a route
// whose own fields are part of an effective policy. Nil hides nothing.
//
// Its methods return what the output has for that reader: the names of policies and rules,
// and neither values and conditions of hidden objects nor whether these are equal to others,
// with which a guess could be confirmed. Nothing else in the package knows of readers.
// Which objects it is asked about does not depend on values.
type Hides func(api.Ref) bool

// some reports whether one of some objects is hidden. It asks about each of them.
func (h Hides) some(objects ...*api.Ref) bool {
	hidden := false
	for _, ref := range objects {
		hidden = ref != nil && h(*ref) || hidden
	}
	return hidden
}

// Item is the item for the reader.
func (h Hides) Item(e *effective.Effective) api.EffectivePolicy {
	out := Item(e)
	if h == nil {
		return out
	}
	for i := range out.Policies {
		h.redactLost(&out.Policies[i].Policy, out.Policies[i].Lost)
	}
	list, _ := out.Spec.([]any)
	for i := range out.Rules {
		r := &out.Rules[i]
		if r.Redacted = h(r.From); r.Redacted {
			out.Redacted, r.Value = true, nil
			if r.Item != nil {
				list[*r.Item] = map[string]any{}
			}
		}
	}
	if out.Redacted && list == nil {
		readable := *e
		readable.Result = &merge.Result{Rules: slices.DeleteFunc(slices.Clone(e.Rules), func(r merge.Effective) bool { return h(e.Ref(r.From.Policy)) })}
		out.Spec = readable.Spec()
	}
	if out.Route != nil {
		h.redactRoute(out.Route, e)
	}
	return out
}

// redactLost removes whether the values of a policy's lost rules are equal to those in force.
func (h Hides) redactLost(policy *api.Ref, lost []api.LostRule) {
	for i := range lost {
		l := &lost[i]
		l.Equal = !h.some(policy, &l.To, l.InForce) && l.Equal
	}
}

// redactRoute removes the fields of which a rule is hidden, also if its value is null: that
// is not shown either.
func (h Hides) redactRoute(out *api.EffectiveRoute, e *effective.Effective) {
	for i := range out.Fields {
		f := &out.Fields[i]
		key, _ := merge.ParseKey(f.Rule)
		var below []merge.Effective // of the field
		for _, r := range e.Rules {
			if key.Holds(r.Key) {
				below = append(below, r)
			}
		}
		if slices.ContainsFunc(below, func(r merge.Effective) bool { return h(e.Ref(r.From.Policy)) }) {
			first := e.Ref(below[0].From.Policy)
			f.Value, f.From, f.Block, f.Redacted = nil, &first, below[0].From.Block.String(), true
		}
	}
	out.Spec = withFields(ownRule(e), out.Fields)
	if out.Redacted = h(e.Path.Route.Ref()); out.Redacted {
		out.Spec = map[string]any{}
	}
}

// Explanation is Explain for the reader.
func (h Hides) Explanation(e *effective.Effective, rule *merge.Name) (x api.Explanation, ok bool) {
	if x, ok = Explain(e, rule); h == nil {
		return x, ok
	}
	for i := range x.Policies {
		c := &x.Policies[i]
		h.redactLost(&c.Policy, c.Lost)
		for j := range c.Blocks {
			if b := &c.Blocks[j]; b.When != "" && h(c.Policy) {
				b.When, b.Redacted = "", true
			}
		}
	}
	for i := range x.Rules {
		r := &x.Rules[i]
		if r.Redacted = h.some(r.From); r.Redacted {
			r.Value = nil
		}
		for j := range r.Lost {
			l := &r.Lost[j]
			l.Equal = !h.some(&l.Policy, &l.To, l.InForce) && l.Equal
			if l.Redacted = h(l.Policy); l.Redacted {
				l.Value = nil
			}
		}
	}
	for i := range x.Bindings { // what a policy selects, and the matches of the route
		b := &x.Bindings[i]
		if b.Redacted = h.some(new(e.Path.Route.Ref()), &b.From); b.Redacted {
			b.By, b.AlsoMatches, b.Hostnames = nil, nil, nil
		}
	}
	h.redactNotes(x.Notes, e)
	return x, ok
}

// redactNotes removes the names in conditions and the errors of their evaluation: they may
// have values of any policy on the path.
func (h Hides) redactNotes(texts []string, e *effective.Effective) {
	if len(e.Notes) == 0 || !slices.ContainsFunc(e.Result.Outcomes, func(o merge.Outcome) bool { return h(e.Ref(o.Policy)) }) {
		return
	}
	for i, n := range e.Notes {
		if texts[i] = notEvaluated(e, n); n.Answer.Err == nil {
			texts[i] = conditionText(e, n) + " refers to a field that is not set: the block does not apply"
		}
	}
}

// Outcome is Outcomes.Of for the reader.
func (h Hides) Outcome(all *Outcomes, v *snapshot.View, p *policykind.Policy) api.Outcome {
	out := all.Of(v, p)
	if h == nil {
		return out
	}
	hidden := h(out.Policy)
	var lost []api.LostCount
	for _, l := range out.Lost {
		l.Equal = !h.some(&out.Policy, &l.To, l.InForce) && l.Equal
		if n := len(lost) - 1; n >= 0 && sameLoss(lost[n], l) { // the one before was not equal
			lost[n].Paths, lost[n].Whole = lost[n].Paths+l.Paths, lost[n].Whole+l.Whole
			continue
		}
		lost = append(lost, l)
	}
	out.Lost = lost
	if out.State == api.Unreached {
		if by := all.tallies[&p.Policy].taken.By.Route; hidden || by != nil && h(by.Ref()) {
			out.Message = "no request reaches its paths"
		}
	}
	if hidden {
		out.Targets, out.Redacted = []api.Target{}, true
		if out.Message != "" && out.Paths.Total == 0 {
			out.Message = "the reason is not shown, because you are not allowed to get the policy"
		}
	}
	return out
}

// sameLoss reports whether two losses differ in nothing but the paths.
func sameLoss(a, b api.LostCount) bool {
	a.Paths, a.Whole = b.Paths, b.Whole
	return reflect.DeepEqual(a, b)
}
