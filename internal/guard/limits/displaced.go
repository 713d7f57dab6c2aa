package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// displacedKey is an override that is given and not bound, and the limit of a lower
// policy that is bound instead.
type displacedKey struct {
	limit, by key
	action    api.Action
}

func compareDisplaced(a, b displacedKey) int {
	return cmp.Or(compareKeys(a.limit, b.limit), compareKeys(a.by, b.by), strings.Compare(string(a.action), string(b.action)))
}

// AddDisplaced adds overrides that match the path's rule after the write and are not
// bound to it, since limits of lower policies precede them by name. It leaves out those
// that were displaced before: by a limit of the same policy, or by the same limit
// behind another one that is gone.
func (t *Tracker) AddDisplaced(p effective.Pair) {
	is := t.BindAfter(p.After)
	if is == nil {
		return
	}
	all := is.bound.Matching()
	if len(all) < 2 {
		return
	}
	holder := is.bound.Rules[all[0]]
	before, _ := t.binders()
	was := bind(before, p.Before)
	for _, i := range all[1:] {
		r := is.bound.Rules[i]
		if r.From.Block != merge.Overrides || holder.From.Policy == r.From.Policy || is.overridesAt(holder, p.After.Level(r.From.Policy)) {
			continue
		}
		if was.displaced(r, holder) {
			continue
		}
		t.addDisplaced(displacedKey{is.key(i), is.key(all[0]), t.displacedAction(is.policy(i))}, p.After.Kind)
	}
}

// displaced reports whether a limit matched the path's rule and was not bound to it,
// but a limit of the holder's policy was, or the holder matched it as well.
func (p *Path) displaced(r, holder *merge.Effective) bool {
	return p != nil && p.matches(r, p.rule()) &&
		(p.bound.Rules[p.bound.Holder()].From.Policy.Same(holder.From.Policy) || p.matches(holder, p.rule()))
}

// displacedAction returns what is done about an override of a policy that is displaced.
func (t *Tracker) displacedAction(override api.Ref) api.Action {
	if t.Write.Causes != nil && !t.Write.Causes(override) {
		return api.Warn
	}
	return api.Deny
}

func (t *Tracker) addDisplaced(k displacedKey, kind *policykind.Kind) {
	if t.displaced == nil {
		t.displaced = make(map[displacedKey]*policykind.Kind)
	}
	t.displaced[k] = kind
}

// reportDisplaced reports the overrides that are displaced, but for those that the write
// takes from where they were bound: these are reported as lost. A denial is a warning
// for writers who are allowed to override the policy.
func (t *Tracker) reportDisplaced(x Exceptions) error {
	for _, k := range slices.SortedFunc(maps.Keys(t.displaced), compareDisplaced) {
		policy, by := k.limit.ref(), k.by.ref()
		if x.Lost != nil && x.Lost(policy, k.limit.rule.String()) {
			continue
		}
		action := k.action
		if action == api.Deny && x.Permitted != nil {
			permitted, err := x.Permitted(policy)
			if err != nil {
				return err
			}
			if permitted {
				action = api.Warn
			}
		}
		g := group{t.displaced[k], api.ReasonOverrideWeakened, action, "more overrides that other limits are bound instead of"}
		t.report(g, func() Finding {
			return Finding{
				Rule: k.by.rule.String(), Policy: &policy,
				Short:  fmt.Sprintf("%s of %s is bound instead of %s, which follows it by name", k.by.rule, by, k.limit.rule),
				What:   fmt.Sprintf("%s of %s is bound instead of %s, an override of %s that follows it by name", k.by.rule, by, k.limit.rule, policy),
				Advice: fmt.Sprintf("rename %s so that it sorts after %s, or ask the owner of %s", k.by.rule, k.limit.rule, policy.Key()),
			}
		})
	}
	return nil
}
