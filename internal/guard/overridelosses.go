package guard

import (
	"cmp"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// lostOverrideKey is what the losses of an override on several paths have in common.
type lostOverrideKey struct {
	kind            api.PolicyKind
	policy          *merge.Policy
	rule            string
	code            api.ReasonCode // OverrideRemoved if its own policy gives it up, OverrideEvaded if something else is changed
	substituteNames string         // their names
	unboundReason   string         // why it is no longer bound, "" where it is lost otherwise
	unsure          string         // why its requests may not go there, "" if they do
	unsearched      bool           // too many matches compete to find out whether they do
	neighbor        bool           // it is of another namespace's route and does not bind the write
	givenUp         string         // how its own policy gives it up, "" if that keeps it
}

// lostOverride is an override that is lost on a number of paths; the first path stands for
// all.
type lostOverride struct {
	key         lostOverrideKey
	was, is     *effective.Effective
	request     func() *gateway.Request // returns one that is no longer subject to it; nil where none is known
	substitutes []*merge.Policy
	paths       []int32 // each once, by the number of its pair
	permitted   bool    // the writer is allowed to remove it
	reported    bool    // if its own policy gives it up: it is reported with its paths
}

// addPath adds a path, by the number of its pair.
func (l *lostOverride) addPath(pair int32) {
	if n := len(l.paths); n == 0 || l.paths[n-1] != pair {
		l.paths = append(l.paths, pair)
	}
}

func (l *lostOverride) ref(p *merge.Policy) api.Ref {
	return api.Ref{Group: l.key.kind.Group, Kind: l.key.kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// addLostOverride adds an override that applied on a path and is not given on the one that
// takes its traffic, or is given there and no longer bound to its rule, for a reason. It
// returns where it was added.
func (ev *overrides) addLostOverride(o effective.Override, was *effective.Effective, s successor, unboundReason string) *lostOverride {
	key := lostOverrideKey{
		kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded, unboundReason: unboundReason,
		unsure: s.unsure, unsearched: s.by.Unsearched, neighbor: ev.ofNeighbor(o, was),
	}
	own := !ev.deletedWithOwner && ev.old != nil && ev.old.Ref() == was.Ref(o.Policy)
	var substitutes []*merge.Policy
	if unboundReason == "" {
		substitutes = ev.substitutes(o, was, s.Effective)
		for _, p := range substitutes {
			key.substituteNames += was.Ref(p).Key() + " "
		}
		if own {
			key.givenUp = ev.givenUp(o)
			own = key.givenUp != ""
		}
	}
	if own {
		key.code = api.ReasonOverrideRemoved
	}
	l := ev.lost[key]
	if l == nil {
		l = &lostOverride{key: key, was: was, is: s.Effective, request: s.by.shown(), substitutes: substitutes}
		put(&ev.lost, key, l)
	}
	l.addPath(ev.pairs)
	return l
}

// substitutes returns the policies that stand in for an override of a path on another one.
func (ev *overrides) substitutes(o effective.Override, was, is *effective.Effective) []*merge.Policy {
	return slices.DeleteFunc(ev.terminating.remaining(o, was, is, is.Substitutes(o)), func(p *merge.Policy) bool {
		return weakensSubstitute(o, was, is, p)
	})
}

// weakensSubstitute reports whether the same override of another policy has less effect than
// it had: something gates it there, is sufficient instead of it, or is bound in its place.
func weakensSubstitute(o effective.Override, was, is *effective.Effective, by *merge.Policy) bool {
	bound, b := was.Bound().Holds(o), is.Bound()
	if o.Policy = by; bound && b != nil && !b.Holds(o) && (b.Holder() < 0 || !b.Overrides(b.Rules[b.Holder()], o.Level-1)) {
		return true
	}
	before := was.Weakeners()
	return slices.ContainsFunc(is.Weakeners(), func(w effective.Weakener) bool {
		return w.HeldRules.Policy.Same(by) && w.Holds(o.Key) && !slices.ContainsFunc(before, func(x effective.Weakener) bool {
			return x.By.Key == w.By.Key && x.Gate == w.Gate && x.Holds(o.Key) && merge.Equal(x.By.Value, w.By.Value)
		})
	})
}

// ofNeighbor reports whether an override is attached to a route, or below it, and what is
// written is neither above that nor in its namespace: a team must not be able to freeze its
// neighbors, unless the kind's profile says so (SEMANTICS section 9). A route that sends
// requests to a backend of another namespace may stop that.
func (ev *overrides) ofNeighbor(o effective.Override, was *effective.Effective) bool {
	x := &was.Path
	if o.Level < gateway.LevelRouteNamespace || was.Kind.BindsAllNamespaces() || x.Route == nil {
		return false
	}
	id := x.ID()
	home := id.RouteNamespace
	if o.Level >= gateway.LevelBackend {
		home = cmp.Or(id.Backend.Object.Namespace, home)
	}
	switch written := ev.change.Object().(type) {
	case *gateway.Route:
		return written.Namespace != home
	case *gateway.ListenerSet:
		return written.Namespace != home && (x.Set == nil || x.Set.Ref() != written.Ref())
	case *gateway.Namespace:
		return (x.Gateway == nil || x.Gateway.Namespace != written.Name) &&
			!slices.Contains([]string{home, o.Policy.Namespace, id.RouteNamespace, id.SetNamespace, id.ServiceNamespace}, written.Name)
	default:
		return false
	}
}

// addOwnLosses adds the overrides that their policy does not have after the write as it
// has them before, on whichever paths they hold now, or on none: else a user could detach
// the policy, edit it, and attach it again (SEMANTICS section 8, OverrideRemoved).
func (ev *overrides) addOwnLosses() {
	if ev.old == nil || ev.old.Invalid != nil {
		return
	}
	layer := merge.Layer{Policy: &ev.old.Policy}
	if slices.ContainsFunc(ev.before.Targets(ev.old), func(t policykind.Target) bool { return t.Ref.Kind == gateway.KindGatewayClass }) {
		layer.As = ev.old.BareOverrides
	}
	for o, b := range effective.OverrideBlocks(&layer) {
		for i := range b.Rules {
			if o.Rule = &b.Rules[i]; !o.EmptyMap { // that replaces nothing
				ev.addOwnLoss(o)
			}
		}
	}
	if ev.policy != nil && ev.policy.Invalid == nil {
		ev.weakenings.checkOwn()
	}
}

// addOwnLoss adds an override of the policy that is written if the policy gives it up.
func (ev *overrides) addOwnLoss(o effective.Override) {
	key := lostOverrideKey{kind: ev.old.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded}
	if !ev.deletedWithOwner { // else the whole policy goes
		if key.givenUp = ev.givenUp(o); key.givenUp == "" {
			return
		}
		key.code = api.ReasonOverrideRemoved
	}
	ev.addOwn(&lostOverride{key: key})
}

// givenUp returns how the policy that is written gives up an override of its own, wherever
// it is attached: givenUpRule, or what the write does to it; "" if it keeps it.
func (ev *overrides) givenUp(o effective.Override) string {
	if ev.policy == nil || ev.policy.Invalid != nil {
		return givenUpRule
	}
	how := givenUpRule
	for i := range ev.policy.Blocks {
		b := &ev.policy.Blocks[i]
		bare := b.Block == merge.Bare && o.Block == merge.Bare && (ev.policy.BareOverrides != nil) == (ev.old.BareOverrides != nil)
		if !bare && b.Block != merge.Overrides {
			continue
		}
		when := b.Condition()
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

// policyRule is a rule of a policy, by name.
type policyRule struct {
	policy api.Ref
	rule   string
}

func policyRuleOf(l *lostOverride) policyRule { return policyRule{l.ref(l.key.policy), l.key.rule} }

// addOwn adds an override that its own policy gives up. What the write itself does comes
// before what a new owner does.
func (ev *overrides) addOwn(l *lostOverride) {
	if known := ev.own[policyRuleOf(l)]; known == nil || known.key.givenUp == "" {
		put(&ev.own, policyRuleOf(l), l)
	}
}
