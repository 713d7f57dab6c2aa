package merge

import "slices"

// loss is the loss of a rule of a policy. One without To tells in settle that
// the rule survives all the same.
type loss struct {
	Lost
	of *Policy
}

// lose books the loss of a rule.
func (f *fold) recordLoss(e Effective, to Origin) {
	f.losses = append(f.losses, loss{Lost{Rule: e.Rule, Block: e.From.Block, To: to}, e.From.Policy})
}

// loseWhole books the loss of rules that one block replaces or refuses together.
func (f *fold) recordBlockLoss(rules []Effective, to Origin) {
	n := len(f.losses)
	for _, e := range rules {
		f.recordLoss(e, to)
	}
	f.markWhole(n)
}

// whole marks the losses from the n-th on.
func (f *fold) markWhole(n int) {
	for i := range f.losses[n:] {
		f.losses[n+i].Whole = true
	}
}

// heirs tells for each policy that lost its last rule which one is in force in
// its place. A policy that beats another stands in E then, so what it loses, it
// loses later: read from the last loss on, its own heir is known already.
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

// inForce completes a loss: whether the effective rule has an equal value, and
// the policy that is in force in the end, where that is not the one that beat it.
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

// holders returns the rules of E that hold the place of a rule, which stands at
// in E or would: the one with the same key, one above it, or those below it.
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
