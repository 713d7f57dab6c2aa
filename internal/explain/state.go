package explain

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// stateOf returns the state of a policy on the path: Unreached where no request reaches it,
// Overridden for one without rules that another policy replaces.
func stateOf(e *effective.Effective, o *merge.Outcome) api.State {
	switch {
	case e.Unreached != nil:
		return api.Unreached
	case o.Policy.Empty() && replacedBy(e, o) != nil:
		return api.Overridden
	default:
		return effective.RulesState(o)
	}
}

// replacedBy returns the policy that replaces another one as a whole, which may have no
// rules to lose; nil if there is none.
func replacedBy(e *effective.Effective, o *merge.Outcome) *merge.Policy {
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
		case !replaced && l.Policy != e.Object:
			by = l.Policy
		}
	}
	return nil
}

// replaces reports whether a policy replaces another one as a whole.
func replaces(e *effective.Effective, p *merge.Policy) bool {
	return slices.ContainsFunc(e.Outcomes, func(o merge.Outcome) bool { return replacedBy(e, &o) == p })
}

// emptyMessageOf returns the message for a policy without rules, which may replace the
// policies above it; "" for other policies.
func emptyMessageOf(e *effective.Effective, o *merge.Outcome) string {
	return emptyMessage(o.Policy, o.Policy.Empty() && replaces(e, o.Policy))
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
