package guard

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// weakenings are the overrides that other rules gate or weaken.
type weakenings struct {
	*write

	pending findings // before permissions
}

// check checks for rules that gate or weaken the rules of an override, whichever
// policy they come from. What did so before is reported to those who write such a policy.
func (ev *weakenings) check(p effective.Pair) {
	if p.Before != nil && p.Before.Result == p.After.Result && ev.policy == nil {
		return
	}
	h := weakenedBefore{on: p.Before}
	for _, w := range p.After.Weakeners() {
		same, held, arrived := h.classify(&w)
		ev.add(p.After, &w, held, api.Deny)
		if w.Own() {
			continue
		}
		if action := ev.arrivalAction(p.After, &w); action != "" {
			ev.add(p.After, &w, arrived, action)
		}
		if ev.policy != nil && w.By.From.Policy == &ev.policy.Policy {
			ev.add(p.After, &w, same, api.Warn)
		}
	}
}

// checkOwn checks for rules that newly gate or weaken the overrides of their own
// policy, as if it were alone on a path.
func (ev *weakenings) checkOwn() {
	if k := ev.policy.Kind; len(k.Gates)+len(k.Alternatives) == 0 {
		return
	}
	is, was := effective.Alone(ev.policy), weakenedBefore{on: effective.Alone(ev.old)}
	for _, w := range is.Weakeners() {
		_, held, _ := was.classify(&w)
		policy, rule := is.Ref(w.By.From.Policy), w.By.Key.String()
		if !ev.pending.any(func(f *Finding) bool {
			return f.Code == api.ReasonOverrideRemoved && f.Rule == rule && f.Policy == policy
		}) {
			ev.add(is, &w, held, api.Deny)
		}
	}
}

// checkOnSuccessor checks what newly weakens the overrides of some policies on a
// path that takes the traffic of one on which they applied.
func (ev *weakenings) checkOnSuccessor(was, is *effective.Effective, policies []*merge.Policy) {
	h := weakenedBefore{on: was}
	for _, w := range is.Weakeners() {
		if slices.ContainsFunc(policies, func(p *merge.Policy) bool { return p.Same(w.HeldRules.Policy) }) {
			_, held, _ := h.classify(&w)
			ev.add(is, &w, held, api.Deny)
		}
	}
}

// weakenedBefore is what was weakened on a path before the write.
type weakenedBefore struct {
	on   *effective.Effective                  // nil for no such path
	by   map[weakenerKey]*effective.Weakener   // made when first asked
	all  []*effective.HeldRules                // likewise
	kept map[[2]*effective.HeldRules]heldSplit // by what is held now and before
}

// weakenerKey identifies a rule that weakens the overrides of a policy.
type weakenerKey struct {
	rule   merge.Key
	gate   bool
	policy [2]string
}

func keyOf(w *effective.Weakener) weakenerKey {
	of := w.HeldRules.Policy
	return weakenerKey{w.By.Key, w.Gate, [2]string{of.Namespace, of.Name}}
}

// heldSplit are the overrides that were held before with the same value, and others.
type heldSplit struct{ same, fresh []*merge.Effective }

func (b *weakenedBefore) load() {
	if b.by != nil {
		return
	}
	b.by, b.kept = make(map[weakenerKey]*effective.Weakener), make(map[[2]*effective.HeldRules]heldSplit)
	if b.on == nil {
		return
	}
	weakeners := b.on.Weakeners()
	for i := range weakeners {
		b.by[keyOf(&weakeners[i])] = &weakeners[i]
	}
	b.all = b.on.OverridesInForce()
}

// classify returns the overrides that a rule weakens: those that it weakened before, too;
// those that were held and not weakened so; and those that were not held. An alternative
// was enough, whatever its value; a gate may let less through now. One of another policy
// is new though it is equal: else its author could find out the value of the existing one
// by trying.
func (b *weakenedBefore) classify(w *effective.Weakener) (same, held, arrived weakenedRules) {
	b.load()
	was := b.by[keyOf(w)]
	switch {
	case was == nil || !was.By.From.Policy.Same(w.By.From.Policy) || w.Gate && !merge.Equal(was.By.Value, w.By.Value):
		k := b.split(w.HeldRules, b.heldBy(w.HeldRules.Policy))
		return weakenedRules{}, among(w, k.same), among(w, k.fresh)
	case was.Except != w.Except: // the profile names other alternatives now
		first, rest := was.Weakens(was.HeldRules.Rules)
		k := splitHeld(w.HeldRules.Rules, slices.Concat(first, rest))
		fresh := splitHeld(k.fresh, b.heldBy(w.HeldRules.Policy).Rules)
		return among(w, k.same), among(w, fresh.same), among(w, fresh.fresh)
	default:
		k := b.split(w.HeldRules, was.HeldRules)
		return among(w, k.same), weakenedRules{}, among(w, k.fresh)
	}
}

// heldBy returns what the overrides of a policy held.
func (b *weakenedBefore) heldBy(policy *merge.Policy) *effective.HeldRules {
	i := slices.IndexFunc(b.all, func(held *effective.HeldRules) bool { return held.Policy.Same(policy) })
	if i < 0 {
		return &noHeldRules
	}
	return b.all[i]
}

var noHeldRules effective.HeldRules

func (b *weakenedBefore) split(held, before *effective.HeldRules) heldSplit {
	at := [2]*effective.HeldRules{held, before}
	k, ok := b.kept[at]
	if !ok {
		k = splitHeld(held.Rules, before.Rules)
		b.kept[at] = k
	}
	return k
}

// splitHeld splits what is held by whether it was held before. Both are sorted by key.
func splitHeld(held, before []*merge.Effective) heldSplit {
	var k heldSplit
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
	return strings.Join(r.names(maxWeakenedNamed), ", ") + api.More(" and ", len(r.first)+len(r.rest)-maxWeakenedNamed, "")
}

// names returns the names of the first ones.
func (r weakenedRules) names(most int) (names []string) {
	for _, rules := range [][]*merge.Effective{r.first, r.rest} {
		for _, rule := range rules[:min(len(rules), most-len(names))] {
			names = append(names, rule.Key.String())
		}
	}
	return names
}

func (ev *weakenings) add(e *effective.Effective, w *effective.Weakener, rules weakenedRules, action api.Action) {
	if len(rules.first)+len(rules.rest) == 0 {
		return
	}
	policy, by := e.Ref(w.HeldRules.Policy), e.Ref(w.By.From.Policy)
	f := Finding{Code: api.ReasonOverrideWeakened, Action: action, Rule: w.By.Key.String(), Policy: policy}
	text := "%s of %s is accepted instead of %s"
	if w.Gate {
		text = "%s of %s decides whether %s has an effect"
	}
	set := fmt.Sprintf(", which the overrides of %s set", policy)
	f.Short = fmt.Sprintf(text, w.By.Key, by, rules.names(1)[0]) + set
	f.What = fmt.Sprintf(text, w.By.Key, by, rules) + set
	f.Advice = fmt.Sprintf("remove %s from %s, or ask the owner of %s", w.By.Key, by.Key(), policy.Key())
	if w.Own() { // its own policy was edited
		f.Code, f.Advice = api.ReasonOverrideRemoved, fmt.Sprintf("ask the owner of %s, or check whether you are allowed to: %s", policy.Key(), ev.checkCommand(policy))
	}
	if f.Action == api.Deny {
		f.Action = e.Kind.Action(f.Code, api.Deny)
	}
	ev.pending.add(f) // until the writer's permissions are known
}

// arrivalAction returns what is done where an override comes into force on a path that has
// what weakens it; "" for nothing. A write of its own policy, of a gateway or of a class
// only warns, and one that brings it to a path whose higher policies weaken it reports
// nothing: they weaken every path there.
func (ev *weakenings) arrivalAction(e *effective.Effective, w *effective.Weakener) api.Action {
	switch {
	case ev.change.Operation == "":
		return api.Deny
	case !ev.causedByWrite(e.Ref(w.HeldRules.Policy)):
		return api.Warn
	case w.Below:
		return api.Deny
	default:
		return ""
	}
}

// reportAll reports the overrides that are weakened: a denial is a warning for writers
// who are allowed to override the policy. may is nil where permissions do not matter.
func (ev *weakenings) reportAll(may *authorizer) error {
	for _, f := range ev.pending {
		permitted, err := may.allows(f)
		if err != nil {
			return err
		}
		if permitted {
			f.Action, f.Advice = api.Warn, permittedAdvice
		}
		ev.findings.add(f)
	}
	return nil
}
