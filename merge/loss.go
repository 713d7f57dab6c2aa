package merge

import "slices"

// loss is the loss of a rule of a policy. A loss without To marks a rule that is in
// effect after all; finishOutcomes drops the other losses of its key.
type loss struct {
	Lost
	of *Policy
}

// recordLoss records the loss of a rule.
func (f *fold) recordLoss(e Effective, to Origin) {
	f.losses = append(f.losses, loss{Lost{Rule: e.Rule, Block: e.From.Block, To: to}, e.From.Policy})
}

// recordBlockLoss records the loss of rules that a block replaces or rejects together.
func (f *fold) recordBlockLoss(rules []Effective, to Origin) {
	n := len(f.losses)
	for _, e := range rules {
		f.recordLoss(e, to)
	}
	f.markWhole(n)
}

// markWhole marks the losses from the n-th on as Whole.
func (f *fold) markWhole(n int) {
	for i := range f.losses[n:] {
		f.losses[n+i].Whole = true
	}
}

// findSuccessors sets, for each policy that lost all its rules, the policy in force in
// its place. A policy that beats another has rules in E at that time, so it loses them
// later: iterating from the last loss on, its own successor is already set.
func (f *fold) findSuccessors(all []tally) {
	for i := len(f.losses) - 1; i >= 0; i-- {
		l := &f.losses[i]
		b := &all[f.outcomeOf(l.of)]
		if b.survives || b.successor != nil || l.To.Policy == nil {
			continue
		}
		b.successor = l.To.Policy
		if l.To.Block == Unset {
			continue
		}
		if successor := all[f.outcomeOf(l.To.Policy)].successor; successor != nil {
			b.successor = successor
		}
	}
}

// completeLoss sets whether the effective rule has an equal value, and which policy is
// finally in force if it is not the one that beat the rule.
func (f *fold) completeLoss(l *Lost, all []tally) {
	at, same := find(f.rules, l.Key)
	l.Equal = same && Equal(f.rules[at].Value, l.Value)
	holders := f.rulesInPlace(l.Rule, at, same)
	switch {
	case slices.ContainsFunc(holders, func(e Effective) bool { return e.From.Policy == l.To.Policy }):
	case len(holders) > 0:
		l.InForce = holders[0].From.Policy
	case l.To.Block != Unset:
		l.InForce = all[f.outcomeOf(l.To.Policy)].successor
	}
}

// rulesInPlace returns the rules of E in the place of a rule: the one with the same key,
// an ancestor of it, or those below it. at is the index of the key in E, or where it
// would be; same reports whether E has it.
func (f *fold) rulesInPlace(r *Rule, at int, same bool) []Effective {
	if same && (r.EmptyMap || !f.rules[at].EmptyMap) {
		return f.rules[at : at+1]
	}
	if at > 0 && !f.rules[at-1].EmptyMap && f.rules[at-1].Key.Holds(r.Key) {
		return f.rules[at-1 : at]
	}
	if same { // an empty map, which may have others below it
		at++
	}
	end := at
	for end < len(f.rules) && r.Key.Holds(f.rules[end].Key) {
		end++
	}
	return f.rules[at:end]
}
