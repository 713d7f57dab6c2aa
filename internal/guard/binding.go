package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// boundPair is what the limits in force on a path bind to, before and after; nil
// where there are none.
type boundPair struct{ was, is *side }

// side is a path with limits.
type side struct {
	*effective.Bound
	on *effective.Effective
}

func (b boundPair) none() bool { return b.was == nil && b.is == nil }

// elsewhere reports whether requests for other hostnames reach the path now, which
// may matter to what binds there.
func (b boundPair) elsewhere(p effective.Pair) bool {
	return b.was != nil && b.is != nil && !slices.Equal(p.Before.Path.Hosts(), p.After.Path.Hosts())
}

// bind binds the limits of a path, before and after.
func (ev *evaluation) bind(p effective.Pair) boundPair {
	return boundPair{sideOf(&ev.binding.was, p.Before), sideOf(&ev.binding.is, p.After)}
}

func sideOf(b *effective.Binder, e *effective.Effective) *side {
	if bound := b.Bind(e); bound != nil {
		return &side{bound, e}
	}
	return nil
}

// boundOn binds the limits of a path after the change.
func (ev *evaluation) boundOn(e *effective.Effective) *side { return sideOf(&ev.binding.is, e) }

// holds reports whether an override is bound to the path's rule.
func (s *side) holds(o effective.Override) bool {
	if s == nil {
		return false
	}
	i := s.Place(o.Key)
	return i >= 0 && s.Rules[i].From.Policy == o.Policy && s.Binds(i)
}

// Why an override is not bound to a rule: its triggers do not match it, or do so for
// hostnames alone by which no request reaches it.
const (
	unmatched = "its triggers do not match"
	apart     = "no request for the hostnames of its triggers reaches"
	// gone: the rule is no more, and the triggers do not match another one.
	gone = "its rule would be removed, and its triggers do not match"
)

// unbinds says why an override that is given on the path is not bound to its rule,
// in the same words for all rules; "" where it is, or where what takes its place is
// another override, as high or higher.
func (s *side) unbinds(o effective.Override) string {
	if s == nil {
		return ""
	}
	i := s.Place(o.Key)
	if i < 0 || s.Binds(i) {
		return ""
	}
	r := s.Rules[i]
	if !s.Binding.Limits[i].Matches(s.on.Path.Rule) {
		if !merge.Equal(r.Value, o.Value) && s.asHigh(r, o.Level) {
			return ""
		}
		if len(s.Binding.Limits[i].KeptBy(s.on.Path.Rule)) > 0 {
			return apart
		}
		return unmatched
	}
	holder := s.Rules[s.Holder()]
	if s.asHigh(holder, o.Level) {
		return ""
	}
	return fmt.Sprintf("%s of %s, which precedes it by name, would be bound instead", holder.Key, s.on.Ref(holder.From.Policy))
}

// asHigh reports whether a rule is an override of a policy at a level or above it.
func (s *side) asHigh(r *merge.Effective, level gateway.Level) bool {
	return r.From.Block == merge.Overrides && s.on.Level(r.From.Policy) <= level
}

// of names the policy of the limit at a place.
func (s *side) of(place int) api.Ref { return s.on.Ref(s.Rules[place].From.Policy) }

// find returns the place of the limit of a key that a policy of that name gives,
// or -1.
func (s *side) find(k merge.Key, policy *merge.Policy) int {
	if s == nil {
		return -1
	}
	i := s.Place(k)
	if i >= 0 && !sameName(s.Rules[i].From.Policy, policy) {
		return -1
	}
	return i
}

// matches reports whether a limit of that name and policy matches a rule.
func (s *side) matches(r *merge.Effective, rule int) bool {
	i := s.find(r.Key, r.From.Policy)
	return i >= 0 && s.Binding.Limits[i].Matches(rule)
}

func sameName(a, b *merge.Policy) bool { return a.Namespace == b.Namespace && a.Name == b.Name }

// hiddenKey is an override that is given and bound to nothing, and what is bound in
// its place.
type hiddenKey struct {
	limit, by limitKey
	action    api.Action
}

// hidden books overrides that lower policies' limits come before: they are given,
// and not bound to the path's rule, which they were not before the write, either. It
// is nothing new where a limit of the same policy came before them, or the same
// limit did behind another one that is gone.
func (ev *evaluation) hidden(p effective.Pair) {
	is := ev.boundOn(p.After)
	if is == nil {
		return
	}
	all := is.Matching()
	if len(all) < 2 {
		return
	}
	holder := is.Rules[all[0]]
	was := sideOf(&ev.binding.was, p.Before)
	for _, i := range all[1:] {
		r := is.Rules[i]
		if r.From.Block != merge.Overrides || holder.From.Policy == r.From.Policy || is.asHigh(holder, p.After.Level(r.From.Policy)) {
			continue
		}
		if p.Before != nil && was.matches(r, p.Before.Path.Rule) &&
			(sameName(was.Rules[was.Holder()].From.Policy, holder.From.Policy) || was.matches(holder, p.Before.Path.Rule)) {
			continue
		}
		action := api.Deny
		if ev.change.Operation != "" && !ev.causedByWrite(is.of(i)) {
			action = api.Warn
		}
		if ev.binding.hidden == nil {
			ev.binding.hidden = make(map[hiddenKey]*policykind.Kind)
		}
		ev.binding.hidden[hiddenKey{is.key(i), is.key(all[0]), action}] = p.After.Kind
	}
}

// hiding turns these into findings, unless the write takes the override from where
// it was bound: the message says so. For those who may override its policy a denial
// is a warning; may is nil where the right does not matter.
func (ev *evaluation) hiding(may *authorizer) error {
	for _, k := range slices.SortedFunc(maps.Keys(ev.binding.hidden), compareHidden) {
		kind, policy, by := ev.binding.hidden[k], k.limit.ref(), k.by.ref()
		if ev.losesBinding(k.limit) {
			continue
		}
		action := k.action
		if mine, err := may.allows(Finding{Action: action, Policy: &policy}); err != nil {
			return err
		} else if mine {
			action = api.Warn
		}
		ev.tellLimit(limitSort{kind, api.ReasonOverrideWeakened, action, "more overrides that other limits are bound instead of"}, func() Finding {
			return Finding{
				Rule: k.by.at.String(), Policy: &policy,
				Short:  fmt.Sprintf("%s of %s is bound instead of %s, which follows it by name", k.by.at, by, k.limit.at),
				What:   fmt.Sprintf("%s of %s is bound instead of %s, an override of %s that follows it by name", k.by.at, by, k.limit.at, policy),
				Advice: fmt.Sprintf("rename %s so that it sorts after %s, or ask the owner of %s", k.by.at, k.limit.at, policy.Key()),
			}
		})
	}
	return nil
}

func compareHidden(a, b hiddenKey) int {
	return cmp.Or(compareLimits(a.limit, b.limit), compareLimits(a.by, b.by), strings.Compare(string(a.action), string(b.action)))
}

// losesBinding reports whether an override is lost since it is not bound any more.
func (ev *evaluation) losesBinding(k limitKey) bool {
	for l, t := range ev.lostOverrides {
		if l.unboundReason != "" && l.rule == k.at.String() && t.ref(t.policy) == k.ref() {
			return true
		}
	}
	return false
}
