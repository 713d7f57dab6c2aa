package effective

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// Hides reports whether a reader is not allowed to read an object: a policy, or a route
// whose own fields are part of an effective policy. The values and conditions of such an
// object are left out of the output, and so is whether they are equal to others. Nil
// hides nothing.
type Hides func(api.Ref) bool

func (h Hides) hides(ref api.Ref) bool { return h != nil && h(ref) }

// showsEqual reports whether the value of a lost rule is equal to the one in force and a
// reader may read both: else a guess could be confirmed. Which objects h is asked about
// does not depend on the values either.
func (e *Effective) showsEqual(h Hides, of *merge.Policy, l *merge.Lost) bool {
	if h == nil {
		return l.Equal
	}
	hidden := h(e.Ref(of)) || h(e.Ref(l.To.Policy)) || l.InForce != nil && h(e.Ref(l.InForce))
	return l.Equal && !hidden
}

// hidesAny reports whether a reader may not read some policy on the path.
func (e *Effective) hidesAny(h Hides) bool {
	for i := range e.Result.Outcomes {
		if h.hides(e.Ref(e.Result.Outcomes[i].Policy)) {
			return true
		}
	}
	return false
}

// specWithout returns the effective spec without the values of hidden policies. In a kind
// that collects, their items are empty. redacted is true if a rule is left out.
func (e *Effective) specWithout(h Hides) (spec any, redacted bool) {
	hidden := func(r *merge.Effective) bool { return h.hides(e.Ref(r.From.Policy)) }
	if h != nil && e.Kind.SameTarget == api.Collect {
		rules := e.collected()
		out := make([]any, len(rules))
		for i := range rules {
			if hidden(&rules[i]) {
				out[i], redacted = map[string]any{}, true
				continue
			}
			out[i] = merge.Plain(rules[i].Value)
		}
		return out, redacted
	}
	var shown []merge.Effective
	for i := range e.Rules {
		if hidden(&e.Rules[i]) {
			redacted = true
			continue
		}
		shown = append(shown, e.Rules[i])
	}
	if !redacted {
		return e.Spec(), false
	}
	rest := *e
	rest.Result = &merge.Result{Rules: shown}
	return rest.Spec(), true
}
