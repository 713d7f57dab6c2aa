package guard

import (
	"cmp"
	"slices"

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
	request     func() *gateway.Request // returns one that is no longer subject to it, nil where none is known; or nil
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
func (ev *evaluation) addLostOverride(o effective.Override, was *effective.Effective, s successor, unboundReason string) *lostOverride {
	key := lostOverrideKey{
		kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded, unboundReason: unboundReason,
		unsure: s.unsure, unsearched: s.by.unsearched, neighbor: ev.ofNeighbor(o, was),
	}
	own := !ev.indirect && ev.old != nil && ev.old.Ref() == was.Ref(o.Policy)
	var substitutes []*merge.Policy
	if unboundReason == "" {
		substitutes = ev.remaining(o, was, s.Effective, s.Substitutes(o))
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
	l := ev.overrides.lost[key]
	if l == nil {
		l = &lostOverride{key: key, was: was, is: s.Effective, request: s.by.shown, substitutes: substitutes}
		put(&ev.overrides.lost, key, l)
	}
	l.addPath(ev.overrides.pairs)
	return l
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
