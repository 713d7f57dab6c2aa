package guard

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// weakened finds lower policies that gate or water down the rules of an
// override. What did so before is told to those who write such a policy.
func (j *judge) weakened(p effective.Pair) {
	if p.Before != nil && p.Before.Result == p.After.Result && j.policy == nil {
		return
	}
	now := p.After.Weakenings()
	if len(now) == 0 {
		return
	}
	var before []effective.Weakening
	if p.Before != nil {
		before = p.Before.Weakenings()
	}
	for _, w := range now {
		was := wasWeakened(before, w)
		own := j.policy != nil && w.By.From.Policy == &j.policy.Policy
		if was && !own {
			continue
		}
		j.weakening(p.After, w, was)
	}
}

// wasWeakened reports whether the same rule weakened the same override before.
func wasWeakened(before []effective.Weakening, w effective.Weakening) bool {
	for _, b := range before {
		if b.Gate == w.Gate && same(b.Rule, w.Rule) && same(b.By, w.By) {
			return true
		}
	}
	return false
}

func same(a, b *merge.Effective) bool {
	return a.Key == b.Key && merge.Equal(a.Value, b.Value) &&
		a.From.Policy.Namespace == b.From.Policy.Namespace && a.From.Policy.Name == b.From.Policy.Name
}

func (j *judge) weakening(e *effective.Effective, w effective.Weakening, was bool) {
	policy, by := e.Ref(w.Rule.From.Policy), e.Ref(w.By.From.Policy)
	action := api.Deny
	if was || j.change.Operation != "" && !j.lowerWrite(policy) {
		action = api.Warn
	}
	what := fmt.Sprintf("%s of %s is enough in place of %s, which the overrides of %s hold", w.By.Key, by, w.Rule.Key, policy)
	if w.Gate {
		what = fmt.Sprintf("%s of %s decides whether %s has an effect, which the overrides of %s hold", w.By.Key, by, w.Rule.Key, policy)
	}
	j.reportOf(e.Kind, api.ReasonOverrideWeakened, action, Finding{
		Rule: w.By.Key.String(), Policy: &policy, What: what,
		Advice: fmt.Sprintf("take %s out of %s, or ask the owner of %s", w.By.Key, by.Key(), policy.Key()),
	})
}

// lowerWrite reports whether a write is to blame for what weakens an override:
// one of the override's own policy is not, nor one of what is above the routes,
// which brings the override to policies that were there already.
func (j *judge) lowerWrite(override api.Ref) bool {
	switch o := j.change.Object().(type) {
	case *policykind.Policy:
		return o.Ref() != override
	case *hierarchy.Route:
		return true
	case *policykind.Profile, *policykind.Definition:
		return true
	default:
		return false
	}
}
