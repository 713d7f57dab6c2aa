package guard

import (
	"cmp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// lostOverrideKey is what the losses of an override on several paths have in common.
type lostOverrideKey struct {
	kind            api.PolicyKind
	policy          *merge.Policy
	rule            string
	code            api.ReasonCode
	substituteNames string // their names
	unboundReason   string // why it is no longer bound, "" where it is lost otherwise
	unsure          string // why its requests may not go there, "" if they do
	unsearched      bool   // too many matches compete to find out whether they do
	neighbor        bool   // it is of another namespace's route and does not bind the write
	givenUp         string // how its own policy gives it up, "" if that keeps it
}

// lostOverride is an override that is lost on a number of paths; the first path stands for
// all.
type lostOverride struct {
	key         lostOverrideKey
	was, is     *effective.Effective
	request     func() *gateway.Request // returns one that is no longer subject to it, nil where none is known; or nil
	substitutes []*merge.Policy
	paths       []int32 // each once, by the number of its pair
	permitted   bool    // the writer is allowed to remove it
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

// addLostOverride adds an override that applied on a path and is not given on the one
// that takes its traffic. It returns where it was added.
func (ev *evaluation) addLostOverride(o effective.Override, was *effective.Effective, s successor) *lostOverride {
	is := s.Effective
	substitutes := ev.remaining(o, was, is, is.Substitutes(o))
	reason := ev.lossReason(was, o)
	key := lostOverrideKey{
		kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: reason.code, givenUp: reason.givenUp,
		unsure: s.unsure, unsearched: s.by.Unsearched, neighbor: ev.ofNeighbor(o, was),
	}
	for _, p := range substitutes {
		key.substituteNames += was.Ref(p).Key() + " "
	}
	return ev.overrides.addLost(lostOverride{key: key, was: was, is: is, request: s.by.shown(), substitutes: substitutes})
}

// addLost adds the path on which an override is lost, and returns where it was added.
func (o *overrides) addLost(loss lostOverride) *lostOverride {
	if o.lost == nil {
		o.lost = make(map[lostOverrideKey]*lostOverride)
	}
	l := o.lost[loss.key]
	if l == nil {
		l = &loss
		o.lost[loss.key] = l
	}
	l.addPath(o.pairs)
	return l
}

// addUnboundOverride adds an override that is given on a path, and no longer bound to its
// rule.
func (ev *evaluation) addUnboundOverride(o effective.Override, was *effective.Effective, s successor, why string) {
	key := lostOverrideKey{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded, unboundReason: why, unsure: s.unsure, unsearched: s.by.Unsearched, neighbor: ev.ofNeighbor(o, was)}
	if !ev.indirect && ev.old != nil && ev.old.Ref() == was.Ref(o.Policy) {
		key.code = api.ReasonOverrideRemoved
	}
	ev.overrides.addLost(lostOverride{key: key, was: was, is: s.Effective, request: s.by.shown()})
}

// ofNeighbor reports whether an override is attached to a route, or below it, and what is
// written is neither above that nor in its namespace: a team must not be able to freeze its
// neighbors, unless the kind's profile says so (SEMANTICS section 9). A route that sends
// requests to a backend of another namespace may stop that.
func (ev *evaluation) ofNeighbor(o effective.Override, was *effective.Effective) bool {
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

// lossReason is why an override is lost: OverrideRemoved if its own policy gives it up,
// and how; OverrideEvaded if it is lost because something else is changed, its policy's
// target included.
type lossReason struct {
	code    api.ReasonCode
	givenUp string
}

// lossReason returns why an override is lost. It is the same on every path.
func (ev *evaluation) lossReason(was *effective.Effective, o effective.Override) lossReason {
	reason, known := ev.overrides.reasons[o.Rule]
	if !known {
		if ev.overrides.reasons == nil {
			ev.overrides.reasons = make(map[*merge.Rule]lossReason)
		}
		reason = ev.findLossReason(was, o)
		ev.overrides.reasons[o.Rule] = reason
	}
	return reason
}

// findLossReason is lossReason without its memo.
func (ev *evaluation) findLossReason(was *effective.Effective, o effective.Override) lossReason {
	if !ev.indirect && ev.old != nil && ev.old.Ref() == was.Ref(o.Policy) {
		if how := ev.givenUp(o); how != "" {
			return lossReason{api.ReasonOverrideRemoved, how}
		}
	}
	return lossReason{code: api.ReasonOverrideEvaded}
}

// sortedLosses returns the losses by policy, rule and reason.
func (o *overrides) sortedLosses() []*lostOverride {
	out := make([]*lostOverride, 0, len(o.lost))
	for _, l := range o.lost {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *lostOverride) int {
		return cmp.Or(
			api.CompareRefs(a.ref(a.key.policy), b.ref(b.key.policy)),
			strings.Compare(a.key.rule, b.key.rule),
			strings.Compare(string(a.key.code), string(b.key.code)),
			strings.Compare(a.key.substituteNames, b.key.substituteNames),
			strings.Compare(a.key.unboundReason, b.key.unboundReason),
			strings.Compare(a.key.unsure, b.key.unsure),
			cmp.Compare(btoi(a.key.unsearched), btoi(b.key.unsearched)),
			cmp.Compare(btoi(a.key.neighbor), btoi(b.key.neighbor)),
			strings.Compare(a.key.givenUp, b.key.givenUp),
		)
	})
	return out
}
