package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// RulesState returns the state of a policy on one path by its rules alone (SEMANTICS
// section 6).
func RulesState(o *merge.Outcome) api.State {
	switch {
	case !o.TookPart && o.Skipped:
		return api.Inactive
	case len(o.Lost) == 0:
		return api.Enforced
	case len(o.Lost) == o.Rules:
		return api.Overridden
	default:
		return api.PartiallyEnforced
	}
}

// StateOf returns the state of a policy on the path: Unreached where no request reaches it,
// Overridden for one without rules that another policy replaces.
func (e *Effective) StateOf(o *merge.Outcome) api.State {
	switch {
	case e.Unreached != nil:
		return api.Unreached
	case o.Policy.Empty() && e.replacedBy(o) != nil:
		return api.Overridden
	default:
		return RulesState(o)
	}
}

// replacedBy returns the policy that replaces another one as a whole, which may have no
// rules to lose; nil if there is none.
func (e *Effective) replacedBy(o *merge.Outcome) *merge.Policy {
	if !o.Policy.Empty() {
		return o.ReplacedBy()
	}
	var by *merge.Policy
	for i := range slices.Backward(e.Layers) {
		l := &e.Layers[i]
		replaced := l.As != nil && l.As.Block == merge.Bare && (l.As.By != nil || l.As.Strategy == merge.Atomic)
		switch {
		case l.Policy == o.Policy && !replaced:
			return nil
		case l.Policy == o.Policy && l.As.By != nil:
			return l.As.By
		case l.Policy == o.Policy:
			return by
		case !replaced && l.Policy != e.object:
			by = l.Policy
		}
	}
	return nil
}

// State returns the state of the policies on the path together: empty if there are
// none, Inactive if none of their rules is in force, Enforced if no rule was lost, else
// PartiallyEnforced.
func (e *Effective) State() api.State {
	state := api.State("")
	for i := range e.Outcomes {
		switch s := RulesState(&e.Outcomes[i]); {
		case s == api.Inactive && state == "":
			state = api.Inactive
		case s == api.Enforced && (state == "" || state == api.Inactive):
			state = api.Enforced
		case s == api.PartiallyEnforced || s == api.Overridden:
			return api.PartiallyEnforced
		}
	}
	return state
}

// replaces reports whether a policy replaces another one as a whole.
func (e *Effective) replaces(p *merge.Policy) bool {
	return slices.ContainsFunc(e.Outcomes, func(o merge.Outcome) bool { return e.replacedBy(&o) == p })
}

// emptyMessage returns the message for a policy without rules, which may replace the
// policies above it; "" for other policies.
func (e *Effective) emptyMessage(o *merge.Outcome) string {
	return emptyMessage(o.Policy, o.Policy.Empty() && e.replaces(o.Policy))
}

func emptyMessage(p *merge.Policy, replaces bool) string {
	switch {
	case !p.Empty():
		return ""
	case replaces:
		return "it has no rules, and the policies above it have no effect because of it"
	default:
		return "it has no rules"
	}
}
