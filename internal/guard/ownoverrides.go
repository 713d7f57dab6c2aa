package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// addOwnLosses adds the overrides that their policy does not have after the write as it
// has them before, on whichever paths they hold now, or on none: else a user could detach
// the policy, edit it, and attach it again (SEMANTICS section 8, OverrideRemoved).
func (ev *evaluation) addOwnLosses() {
	if ev.old == nil || ev.old.Invalid != nil {
		return
	}
	for i := range ev.old.Blocks {
		b := &ev.old.Blocks[i]
		if b.Block != merge.Overrides {
			continue
		}
		for n := range b.Rules {
			if r := &b.Rules[n]; !r.EmptyMap { // that replaces nothing
				ev.addOwnLoss(effective.Override{Rule: r, Policy: &ev.old.Policy, Block: b.Block, When: conditionOf(b), Atomic: b.Strategy == merge.Atomic})
			}
		}
	}
	if ev.policy != nil && ev.policy.Invalid == nil {
		ev.checkOwnWeakened()
	}
}

// addOwnLoss adds an override of the policy that is written if the policy gives it up.
func (ev *evaluation) addOwnLoss(o effective.Override) {
	key := lostOverrideKey{kind: ev.old.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded}
	if !ev.indirect { // else the whole policy goes
		if key.givenUp = ev.givenUp(o); key.givenUp == "" {
			return
		}
		key.code = api.ReasonOverrideRemoved
	}
	ev.overrides.addOwn(&lostOverride{key: key})
}

// conditionOf returns the condition of a block, "" for none.
func conditionOf(b *merge.Rules) string {
	if b.When == nil {
		return ""
	}
	return b.When.String()
}

// givenUp returns how the policy that is written gives up an override of its own, wherever
// it is attached: givenUpRule, or what the write does to it; "" if it keeps it. How a bare
// block is read does not depend on the policy where its override is one.
func (ev *evaluation) givenUp(o effective.Override) string {
	if ev.policy == nil || ev.policy.Invalid != nil {
		return givenUpRule
	}
	how := givenUpRule
	for i := range ev.policy.Blocks {
		b := &ev.policy.Blocks[i]
		bare := b.Block == merge.Bare && o.Block == merge.Bare
		if !bare && b.Block != merge.Overrides {
			continue
		}
		when := conditionOf(b)
		switch r := b.At(o.Key); {
		case r == nil && !setsPart(b, o.Key):
		case r == nil || r.EmptyMap != o.EmptyMap || !merge.Equal(r.Value, o.Value):
			how = "changes the value of"
		case when != "" && o.When == "":
			how = "adds a condition to"
		case when != "" && when != o.When:
			how = "changes the condition of"
		case !bare && o.Atomic && b.Strategy != merge.Atomic:
			how = "removes the strategy atomic from"
		default:
			return ""
		}
	}
	return how
}

// givenUpRule says that a policy has no such override any more.
const givenUpRule = "it is removed"

// setsPart reports whether a block has a rule above or below a key: in a kind whose rules
// are leaves, another value of the same place.
func setsPart(b *merge.Rules, k merge.Key) bool {
	return slices.ContainsFunc(b.Rules, func(r merge.Rule) bool { return !r.EmptyMap && (k.Holds(r.Key) || r.Key.Holds(k)) })
}

// checkOwnWeakened checks for rules that newly gate or weaken the overrides of their own
// policy, as if it were alone on a path.
func (ev *evaluation) checkOwnWeakened() {
	if k := ev.policy.Kind; len(k.Gates)+len(k.Alternatives) == 0 {
		return
	}
	is, was := effective.Alone(ev.policy), weakenedBefore{on: effective.Alone(ev.old)}
	for _, w := range is.Weakeners() {
		_, held, _ := was.classify(&w)
		if !ev.overrides.weakenings.haveOwn(is.Ref(w.By.From.Policy), w.By.Key.String()) {
			ev.addWeakening(is, &w, held, api.Deny)
		}
	}
}

// haveOwn reports whether the findings have a rule of a policy that weakens its own
// overrides.
func (fs findings) haveOwn(policy api.Ref, rule string) bool {
	for _, f := range fs {
		if f.Code == api.ReasonOverrideRemoved && f.Rule == rule && *f.Policy == policy {
			return true
		}
	}
	return false
}

// ownLoss identifies an override that its own policy gives up.
type ownLoss struct {
	policy api.Ref
	rule   string
}

func ownLossOf(l *lostOverride) ownLoss { return ownLoss{l.ref(l.key.policy), l.key.rule} }

// addOwn adds an override that its own policy gives up. What the write itself does comes
// before what a new owner does.
func (o *overrides) addOwn(l *lostOverride) {
	if known := o.own[ownLossOf(l)]; known == nil || known.key.givenUp == "" {
		put(&o.own, ownLossOf(l), l)
	}
}
