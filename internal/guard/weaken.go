package guard

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// weakened finds rules that gate or water down the rules of an override, whichever
// policy they come from. What did so before is reported to those who write such a
// policy.
func (j *judge) weakened(p effective.Pair) {
	if p.Before != nil && p.Before.Result == p.After.Result && j.policy == nil {
		return
	}
	h := weakenedBefore{on: p.Before}
	for _, w := range p.After.Weakeners() {
		same, held, arrived := h.of(&w)
		j.weakening(p.After, &w, held, api.Deny)
		if w.Own() {
			continue
		}
		if action := j.arrival(p.After, &w); action != "" {
			j.weakening(p.After, &w, arrived, action)
		}
		if j.policy != nil && w.By.From.Policy == &j.policy.Policy {
			j.weakening(p.After, &w, same, api.Warn)
		}
	}
}

// weakenedAfter finds what newly weakens the overrides of some policies on a path
// that takes the traffic of one on which they held.
func (j *judge) weakenedAfter(was, is *effective.Effective, policies []*merge.Policy) {
	h := weakenedBefore{on: was}
	for _, w := range is.Weakeners() {
		if slices.ContainsFunc(policies, func(p *merge.Policy) bool { return sameName(p, w.HeldRules.Policy) }) {
			_, held, _ := h.of(&w)
			j.weakening(is, &w, held, api.Deny)
		}
	}
}

// weakenedBefore is what was weakened on a path before the write.
type weakenedBefore struct {
	on   *effective.Effective                // nil for no such path
	by   map[weakenerKey]*effective.Weakener // made when first asked
	all  []*effective.HeldRules              // likewise
	kept map[[2]*effective.HeldRules]kept    // by what is held now and before
}

// weakenerKey tells a rule from another that weakens the same overrides, whose
// policy is named.
type weakenerKey struct {
	rule  merge.Key
	gate  bool
	their [2]string
}

func keyOf(w *effective.Weakener) weakenerKey {
	of := w.HeldRules.Policy
	return weakenerKey{w.By.Key, w.Gate, [2]string{of.Namespace, of.Name}}
}

// kept are the overrides that were held before with the same value, and others.
type kept struct{ same, fresh []*merge.Effective }

func (h *weakenedBefore) read() {
	if h.by != nil {
		return
	}
	h.by, h.kept = make(map[weakenerKey]*effective.Weakener), make(map[[2]*effective.HeldRules]kept)
	if h.on == nil {
		return
	}
	weakeners := h.on.Weakeners()
	for i := range weakeners {
		h.by[keyOf(&weakeners[i])] = &weakeners[i]
	}
	h.all = h.on.InForce()
}

// of returns the overrides that a rule weakens: those that it weakened before,
// too; those that were held and not weakened so; and those that were not held. An
// alternative was enough whatever it says; a gate may let less through now. One of
// another policy is new though it is equal: else its author could find out the value
// of the one that was there by trying.
func (h *weakenedBefore) of(w *effective.Weakener) (same, held, arrived weakenedRules) {
	h.read()
	was := h.by[keyOf(w)]
	switch {
	case was == nil || !sameName(was.By.From.Policy, w.By.From.Policy) || w.Gate && !merge.Equal(was.By.Value, w.By.Value):
		k := h.keep(w.HeldRules, h.heldBy(w.HeldRules.Policy))
		return weakenedRules{}, among(w, k.same), among(w, k.fresh)
	case was.Except != w.Except: // the profile names other alternatives now
		first, rest := was.Weakens(was.HeldRules.Rules)
		k := keep(w.HeldRules.Rules, slices.Concat(first, rest))
		fresh := keep(k.fresh, h.heldBy(w.HeldRules.Policy).Rules)
		return among(w, k.same), among(w, fresh.same), among(w, fresh.fresh)
	default:
		k := h.keep(w.HeldRules, was.HeldRules)
		return among(w, k.same), weakenedRules{}, among(w, k.fresh)
	}
}

// heldBy returns what the overrides of a policy held.
func (h *weakenedBefore) heldBy(policy *merge.Policy) *effective.HeldRules {
	i := slices.IndexFunc(h.all, func(held *effective.HeldRules) bool { return sameName(held.Policy, policy) })
	if i < 0 {
		return &nothing
	}
	return h.all[i]
}

var nothing effective.HeldRules

func (h *weakenedBefore) keep(held, before *effective.HeldRules) kept {
	at := [2]*effective.HeldRules{held, before}
	k, ok := h.kept[at]
	if !ok {
		k = keep(held.Rules, before.Rules)
		h.kept[at] = k
	}
	return k
}

// keep parts what is held by whether it was before. Both are sorted by key.
func keep(held, before []*merge.Effective) kept {
	var k kept
	i := 0
	for _, r := range held {
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

func (j *judge) weakening(e *effective.Effective, w *effective.Weakener, rules weakenedRules, action api.Action) {
	if len(rules.first)+len(rules.rest) == 0 {
		return
	}
	policy, by := e.Ref(w.HeldRules.Policy), e.Ref(w.By.From.Policy)
	f := Finding{Code: api.ReasonOverrideWeakened, Action: action, Rule: w.By.Key.String(), Policy: &policy}
	if w.Gate {
		f.Short = fmt.Sprintf("%s of %s decides whether %s has an effect", w.By.Key, by, rules.one())
		f.What = fmt.Sprintf("%s of %s decides whether %s has an effect, which the overrides of %s hold", w.By.Key, by, rules, policy)
	} else {
		f.Short = fmt.Sprintf("%s of %s is enough in place of %s", w.By.Key, by, rules.one())
		f.What = fmt.Sprintf("%s of %s is enough in place of %s, which the overrides of %s hold", w.By.Key, by, rules, policy)
	}
	f.Advice = fmt.Sprintf("take %s out of %s, or ask the owner of %s", w.By.Key, by.Key(), policy.Key())
	if w.Own() { // its own policy was edited
		f.Code, f.Advice = api.ReasonOverrideRemoved, fmt.Sprintf("ask the owner of %s, or see whether you may: %s", policy.Key(), j.check(policy))
	}
	j.byRight(e.Kind, f)
}

// arrival returns what is done where an override comes into force on a path that
// has what weakens it; "" for nothing. A write of its own policy, of a gateway or
// of a class is not to blame, and neither is one that brings it to a path whose
// higher policies weaken it: they weaken every path there.
func (j *judge) arrival(e *effective.Effective, w *effective.Weakener) api.Action {
	switch {
	case j.change.Operation == "":
		return api.Deny
	case !j.lowerWrite(e.Ref(w.HeldRules.Policy)):
		return api.Warn
	case w.Below:
		return api.Deny
	default:
		return ""
	}
}

// lowerWrite reports whether a write is to blame for an override that comes to what
// weakens it. One of the override's own policy is not, nor one of a gateway or its
// class: they bring the override to policies that were there already.
func (j *judge) lowerWrite(override api.Ref) bool {
	switch o := j.change.Object().(type) {
	case *policykind.Policy:
		return o.Ref() != override
	case *gateway.Gateway, *gateway.Class:
		return false
	default:
		return true
	}
}

// byRight books a finding about an override that is weakened: a denial is a
// warning for those who may override its policy.
func (j *judge) byRight(kind *policykind.Kind, f Finding) {
	if f.Action == api.Deny {
		f.Action = kind.Action(f.Code, api.Deny)
	}
	j.rightful.add(f)
}

// weakenings reports what was booked by right; may is nil where the right does not
// matter.
func (j *judge) weakenings(may *rights) error {
	for _, f := range j.rightful {
		mine, err := may.allows(f)
		if err != nil {
			return err
		}
		if mine {
			f.Action, f.Advice = api.Warn, youMay
		}
		j.found.add(f)
	}
	return nil
}
