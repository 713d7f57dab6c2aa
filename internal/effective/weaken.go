package effective

import (
	"slices"

	"overrule.dev/overrule/merge"
)

// Weakener is a rule that makes overrides of one policy ineffective without replacing
// them. It may be of a lower, equal or higher policy, or of the same one.
type Weakener struct {
	By *merge.Effective
	// Below is set if the policy of By is below the one with the overrides.
	Below bool
	// Gate is set if By decides whether they have any effect; else By is an
	// alternative to them that is sufficient.
	Gate bool
	// HeldRules are the overrides: all of the policy, or those of By's group of
	// alternatives. It is shared: do not edit.
	HeldRules *HeldRules
	// Except is the alternative that By belongs to, or By's own key: By does not weaken
	// overrides at or below it. The zero Key for none.
	Except merge.Key
}

// HeldRules are the rules in force that come from overrides of one policy, by key.
type HeldRules struct {
	Policy *merge.Policy
	Rules  []*merge.Effective
}

// Own reports whether the rule belongs to the policy whose overrides it weakens.
func (w *Weakener) Own() bool { return w.By.From.Policy == w.HeldRules.Policy }

// OverridesInForce returns the rules in force that come from overrides, by policy, the
// highest first.
func (e *Effective) OverridesInForce() []*HeldRules {
	if !slices.ContainsFunc(e.Rules, isOverrideInForce) {
		return nil
	}
	return e.heldAmong(func(merge.Key) bool { return true })
}

// Holds reports whether it weakens the override with a key.
func (w *Weakener) Holds(k merge.Key) bool {
	return (w.Except == (merge.Key{}) || !w.Except.Holds(k)) && slices.ContainsFunc(w.HeldRules.Rules, func(r *merge.Effective) bool { return r.Key == k })
}

// Weakens returns those of the rules that are weakened, in two parts: all except the
// consecutive ones of one alternative. The rules are sorted by key and among HeldRules.
func (w *Weakener) Weakens(rules []*merge.Effective) (first, rest []*merge.Effective) {
	if w.Except == (merge.Key{}) {
		return rules, nil
	}
	start, _ := slices.BinarySearchFunc(rules, w.Except, func(r *merge.Effective, k merge.Key) int { return r.Key.Compare(k) })
	end := start
	for end < len(rules) && w.Except.Holds(rules[end].Key) {
		end++
	}
	return rules[:start], rules[end:]
}

// Weakeners returns what weakens the overrides of the path, by the weakening rule, then
// by the policy that is weakened, the highest first. There can be many rules on either
// side, so it does not return pairs of rules.
func (e *Effective) Weakeners() []Weakener {
	if len(e.Kind.Gates)+len(e.Kind.Alternatives) == 0 || !slices.ContainsFunc(e.Rules, e.mayWeaken) {
		return nil
	}
	all := e.OverridesInForce()
	if len(all) == 0 {
		return nil
	}
	groups := make(map[merge.Key][]*HeldRules) // those of all by group of alternatives
	order := make(map[*merge.Policy]int)       // the highest first
	for i := range e.Result.Outcomes {
		order[e.Result.Outcomes[i].Policy] = i
	}
	var out []Weakener
	for i := range e.Rules {
		by := &e.Rules[i]
		if !e.mayWeaken(*by) {
			continue
		}
		w, held := Weakener{By: by, Gate: e.Kind.IsGate(by.Key), Except: by.Key}, all
		if !w.Gate {
			var group merge.Key
			group, w.Except, _ = e.Kind.Alternative(by.Key)
			if _, known := groups[group]; !known {
				groups[group] = e.heldAmong(func(k merge.Key) bool {
					of, _, ok := e.Kind.Alternative(k)
					return ok && of == group
				})
			}
			held = groups[group]
		}
		for _, w.HeldRules = range held {
			w.Below = order[by.From.Policy] > order[w.HeldRules.Policy]
			if first, rest := w.Weakens(w.HeldRules.Rules); len(first)+len(rest) > 0 {
				out = append(out, w)
			}
		}
	}
	return out
}

// mayWeaken reports whether a rule is one that weakens others.
func (e *Effective) mayWeaken(r merge.Effective) bool {
	if r.Value == nil {
		return false
	}
	_, _, alternative := e.Kind.Alternative(r.Key)
	return alternative || e.Kind.IsGate(r.Key)
}

func isOverrideInForce(r merge.Effective) bool {
	return r.From.Block == merge.Overrides && r.Value != nil
}

// heldAmong returns those of the rules in force that come from overrides, by policy, the highest
// first.
func (e *Effective) heldAmong(wanted func(merge.Key) bool) []*HeldRules {
	by := make(map[*merge.Policy]*HeldRules)
	for i := range e.Rules {
		r := &e.Rules[i]
		if !isOverrideInForce(*r) || !wanted(r.Key) {
			continue
		}
		h := by[r.From.Policy]
		if h == nil {
			h = &HeldRules{Policy: r.From.Policy}
			by[r.From.Policy] = h
		}
		h.Rules = append(h.Rules, r)
	}
	var out []*HeldRules
	for i := range e.Result.Outcomes {
		if h := by[e.Result.Outcomes[i].Policy]; h != nil {
			out = append(out, h)
		}
	}
	return out
}

// higher reports whether a policy of the path is above another one.
func (e *Effective) higher(a, b *merge.Policy) bool {
	place := func(p *merge.Policy) int {
		return slices.IndexFunc(e.Result.Outcomes, func(o merge.Outcome) bool { return o.Policy == p })
	}
	return place(a) < place(b)
}
