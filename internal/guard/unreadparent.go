package guard

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// viaUnreadParent reports whether a path goes by a parent of an unsupported kind.
func viaUnreadParent(p gateway.Path) bool {
	return (p.Route != nil || p.Set != nil) && p.Gateway == nil && p.Service == nil
}

// movesAlong reports whether what is attached at a level moves with the route, or the
// listener set, of a path that has no root.
func movesAlong(p gateway.Path, level gateway.Level) bool {
	return level >= gateway.LevelRouteNamespace || p.Route == nil && level >= gateway.LevelListenerSet
}

// unreadParents returns the parents of a route by which a kind has no paths, though they
// may bring traffic: those of unsupported kinds, the parents of listener sets that are,
// and, where the kind has no paths of a mesh, Services.
func (ev *write) unreadParents(v *snapshot.View, r *gateway.Route, k *policykind.Kind) []api.Ref {
	if r == nil {
		return nil
	}
	out := slices.Clone(r.Unread)
	for _, p := range r.Parents {
		switch o := v.Get(p.Ref()).(type) {
		case *gateway.ListenerSet:
			if o.Unread != (api.Ref{}) {
				out = append(out, o.Unread)
			}
		case *gateway.Service:
			if !ev.guard.Engine.OnServices(k) {
				out = append(out, o.Ref())
			}
		}
	}
	return out
}

// unreadParentsText names the parents of unsupported kinds that may take the traffic of a
// path.
func (ev *write) unreadParentsText(e *effective.Effective) string {
	parents := ev.unreadParents(ev.after, e.Path.Route, e.Kind)
	if e.Path.Route == nil {
		parents = []api.Ref{e.Path.Set.Unread}
	}
	var names []string
	for _, p := range parents {
		names = append(names, withGroup(p))
	}
	return fmt.Sprintf("policies through %s are not evaluated", strings.Join(names, ", "))
}

// withGroup names an object with the group of its kind: one of an unsupported kind may
// have the kind's name of a supported one.
func withGroup(r api.Ref) string {
	if r.Group == "" {
		return r.String()
	}
	return fmt.Sprintf("%s of %s", r, r.Group)
}
