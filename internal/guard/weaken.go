package guard

import (
	"fmt"
	"slices"
	"strings"

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
	told := make(map[weakeningKey]*weakening)
	for _, w := range now {
		was := wasWeakened(before, w)
		if was && (j.policy == nil || w.By.From.Policy != &j.policy.Policy) {
			continue
		}
		at := weakeningKey{w.By, w.Rule.From.Policy, was}
		if told[at] == nil {
			told[at] = &weakening{Weakening: w, was: was}
		}
		told[at].rules = append(told[at].rules, w.Rule.Key.String())
	}
	for _, w := range told {
		j.weakening(p.After, w)
	}
}

// weakeningKey is what is told at once: one rule that weakens those of one
// override.
type weakeningKey struct {
	by     *merge.Effective
	policy *merge.Policy
	was    bool
}

type weakening struct {
	effective.Weakening
	was   bool // before the write, too
	rules []string
}

// wasWeakened reports whether the same rule weakened the same override before.
// An alternative was enough whatever it says; a gate may let less through now.
func wasWeakened(before []effective.Weakening, w effective.Weakening) bool {
	return slices.ContainsFunc(before, func(b effective.Weakening) bool {
		return b.Gate == w.Gate && sameRule(b.Rule, w.Rule) && merge.Equal(b.Rule.Value, w.Rule.Value) &&
			sameRule(b.By, w.By) && (!w.Gate || merge.Equal(b.By.Value, w.By.Value))
	})
}

func sameRule(a, b *merge.Effective) bool {
	return a.Key == b.Key &&
		a.From.Policy.Namespace == b.From.Policy.Namespace && a.From.Policy.Name == b.From.Policy.Name
}

func (j *judge) weakening(e *effective.Effective, w *weakening) {
	policy, by := e.Ref(w.Rule.From.Policy), e.Ref(w.By.From.Policy)
	action := api.Deny
	if w.was || j.change.Operation != "" && !j.lowerWrite(policy) {
		action = api.Warn
	}
	f := Finding{Rule: w.By.Key.String(), Policy: &policy}
	if w.Gate {
		f.Short = fmt.Sprintf("%s of %s decides whether %s has an effect", w.By.Key, by, w.rules[0])
		f.What = fmt.Sprintf("%s of %s decides whether %s has an effect, which the overrides of %s hold", w.By.Key, by, firstOf(w.rules), policy)
	} else {
		f.Short = fmt.Sprintf("%s of %s is enough in place of %s", w.By.Key, by, w.rules[0])
		f.What = fmt.Sprintf("%s of %s is enough in place of %s, which the overrides of %s hold", w.By.Key, by, firstOf(w.rules), policy)
	}
	f.Advice = fmt.Sprintf("take %s out of %s, or ask the owner of %s", w.By.Key, by.Key(), policy.Key())
	j.reportOf(e.Kind, api.ReasonOverrideWeakened, action, f)
}

// firstOf names the first of several rules.
func firstOf(rules []string) string {
	const most = 3
	if len(rules) <= most {
		return strings.Join(rules, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(rules[:most], ", "), len(rules)-most)
}

// lowerWrite reports whether a write is to blame for what weakens an override.
// One of the override's own policy is not, nor one of a gateway or its class:
// they bring the override to policies that were there already.
func (j *judge) lowerWrite(override api.Ref) bool {
	switch o := j.change.Object().(type) {
	case *policykind.Policy:
		return o.Ref() != override
	case *hierarchy.Gateway, *hierarchy.Class:
		return false
	default:
		return true
	}
}
