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
	now := p.After.Weakeners()
	if len(now) == 0 {
		return
	}
	h := weakenedBefore{kept: make(map[[2]*effective.Held]kept)}
	if p.Before != nil {
		h.weakeners = p.Before.Weakeners()
	}
	for i := range now {
		w := &now[i]
		same, fresh := h.of(w)
		j.weakening(p.After, w, fresh, false)
		if j.policy != nil && w.By.From.Policy == &j.policy.Policy {
			j.weakening(p.After, w, same, true)
		}
	}
}

// weakenedBefore is what was weakened on a path before the write.
type weakenedBefore struct {
	weakeners []effective.Weakener
	by        map[weakenerKey]*effective.Weakener // made when first asked
	kept      map[[2]*effective.Held]kept         // by what is held now and before
}

// weakenerKey tells a rule from another that weakens the same overrides; names
// are those of its policy and theirs.
type weakenerKey struct {
	rule         merge.Key
	gate         bool
	names, their [2]string
}

func keyOf(w *effective.Weakener) weakenerKey {
	by, of := w.By.From.Policy, w.Held.Policy
	return weakenerKey{w.By.Key, w.Gate, [2]string{by.Namespace, by.Name}, [2]string{of.Namespace, of.Name}}
}

// kept are the overrides that were held before with the same value, and others.
type kept struct{ same, fresh []*merge.Effective }

// of returns the overrides that a rule weakens: those that it weakened before,
// too, and those that it did not. An alternative was enough whatever it says; a
// gate may let less through now.
func (h *weakenedBefore) of(w *effective.Weakener) (same, fresh weakenedRules) {
	if h.by == nil {
		h.by = make(map[weakenerKey]*effective.Weakener, len(h.weakeners))
		for i := range h.weakeners {
			h.by[keyOf(&h.weakeners[i])] = &h.weakeners[i]
		}
	}
	was := h.by[keyOf(w)]
	if was == nil || w.Gate && !merge.Equal(was.By.Value, w.By.Value) {
		return weakenedRules{}, among(w, w.Held.Rules)
	}
	if was.Except != w.Except { // the profile names other alternatives now
		first, rest := was.Weakens(was.Held.Rules)
		k := keep(w.Held, slices.Concat(first, rest))
		return among(w, k.same), among(w, k.fresh)
	}
	at := [2]*effective.Held{w.Held, was.Held}
	k, ok := h.kept[at]
	if !ok {
		k = keep(w.Held, was.Held.Rules)
		h.kept[at] = k
	}
	return among(w, k.same), among(w, k.fresh)
}

// keep parts what is held by whether it was before. Both are sorted by key.
func keep(held *effective.Held, before []*merge.Effective) kept {
	var k kept
	i := 0
	for _, r := range held.Rules {
		for i < len(before) && before[i].Key.Compare(r.Key) < 0 {
			i++
		}
		if i < len(before) && before[i].Key == r.Key && merge.Equal(before[i].Value, r.Value) {
			k.same = append(k.same, r)
		} else {
			k.fresh = append(k.fresh, r)
		}
	}
	return k
}

// weakenedRules are some rules but for those in between, which may be very many.
type weakenedRules struct{ first, rest []*merge.Effective }

func among(w *effective.Weakener, rules []*merge.Effective) weakenedRules {
	first, rest := w.Weakens(rules)
	return weakenedRules{first, rest}
}

// String names the first of them.
func (r weakenedRules) String() string {
	const most = 3
	var names []string
	for _, rules := range [][]*merge.Effective{r.first, r.rest} {
		for _, rule := range rules[:min(len(rules), most-len(names))] {
			names = append(names, rule.Key.String())
		}
	}
	text := strings.Join(names, ", ")
	if more := len(r.first) + len(r.rest) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// one names the first alone.
func (r weakenedRules) one() string {
	if len(r.first) > 0 {
		return r.first[0].Key.String()
	}
	return r.rest[0].Key.String()
}

func (j *judge) weakening(e *effective.Effective, w *effective.Weakener, rules weakenedRules, was bool) {
	if len(rules.first)+len(rules.rest) == 0 {
		return
	}
	policy, by := e.Ref(w.Held.Policy), e.Ref(w.By.From.Policy)
	action := api.Deny
	if was || j.change.Operation != "" && !j.lowerWrite(policy) {
		action = api.Warn
	}
	f := Finding{Rule: w.By.Key.String(), Policy: &policy}
	if w.Gate {
		f.Short = fmt.Sprintf("%s of %s decides whether %s has an effect", w.By.Key, by, rules.one())
		f.What = fmt.Sprintf("%s of %s decides whether %s has an effect, which the overrides of %s hold", w.By.Key, by, rules, policy)
	} else {
		f.Short = fmt.Sprintf("%s of %s is enough in place of %s", w.By.Key, by, rules.one())
		f.What = fmt.Sprintf("%s of %s is enough in place of %s, which the overrides of %s hold", w.By.Key, by, rules, policy)
	}
	f.Advice = fmt.Sprintf("take %s out of %s, or ask the owner of %s", w.By.Key, by.Key(), policy.Key())
	j.reportOf(e.Kind, api.ReasonOverrideWeakened, action, f)
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
