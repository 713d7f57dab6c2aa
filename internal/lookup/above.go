package lookup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// aboveRoutes returns which policies hold for the requests of the named routes on paths that
// end above routes, such as at a listener, and where to see them: these paths are none of the
// routes.
func (a *answering) aboveRoutes(ctx context.Context) ([]string, error) {
	var kinds []api.PolicyKind
	for _, k := range a.View.Kinds() {
		if a.Engine.EndsAboveRoutes(k) && a.IncludesKind(k.Ref()) {
			kinds = append(kinds, k.Ref())
		}
	}
	var out []string
	for _, o := range a.Objects {
		r, ok := o.(*gateway.Route)
		if !ok || len(kinds) == 0 {
			continue
		}
		for _, root := range routeRoots(r, a) {
			found := make(PolicySet)
			scope := effective.Scope{Roots: []api.Ref{root}, Kinds: kinds}
			err := a.Engine.Walk(a.View, scope, false, a.budget(ctx), func(e *effective.Effective) error {
				if e.Unread == "" && a.meets(&e.Path, r) {
					a.addPolicies(found, e)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			if len(found) > 0 {
				out = append(out, a.aboveText(r, root, found.Sorted()))
			}
		}
	}
	return out, nil
}

// routeRoots returns the gateways and Services that a route names as parents, itself or through
// a ListenerSet.
func routeRoots(r *gateway.Route, a *answering) []api.Ref {
	var out []api.Ref
	for _, p := range r.Parents {
		root := p.Ref()
		if g := a.View.GatewayOf(p); g != nil {
			root = g.Ref()
		}
		if !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	return out
}

// meets reports whether requests of a route go along a path that ends above routes: it has no
// listener, or one that accepts the route, as one of the gateway does.
func (a *answering) meets(p *gateway.Path, r *gateway.Route) bool {
	if p.Service != nil {
		return p.Client == "" || p.Client == r.Namespace
	}
	labels := a.View.NamespaceLabels(r.Namespace)
	return p.Gateway != nil && slices.ContainsFunc(a.View.Listeners(p.Gateway), func(l gateway.ListenerMatch) bool {
		at := gateway.ListenerMatch{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener}
		return (p.Listener == nil || at.Same(&l)) && l.Accepts(r, labels)
	})
}

// aboveText says which policies hold at a gateway or Service for the requests of a route.
func (a *answering) aboveText(r *gateway.Route, root api.Ref, policies []*policykind.Policy) string {
	var names []string
	for _, p := range policies[:min(len(policies), maxRouteNames)] {
		names = append(names, p.Ref().String())
	}
	text := fmt.Sprintf("the requests of %s are also subject to policies on %s, whose paths end above routes: %s%s",
		r.Ref(), root, strings.Join(names, ", "), api.More(", ", len(policies)-maxRouteNames, ""))
	if a.Hides == nil {
		text += fmt.Sprintf("; see: kubectl overrule effective -n %s %s/%s", root.Namespace, strings.ToLower(root.Kind), root.Name)
	}
	return text
}
