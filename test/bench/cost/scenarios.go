package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/flight"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/webhook"
)

// many routes are under a write of a gateway or its policy; few are enough to
// see that a write of one route does not look at the others.
const (
	few  = 100
	many = 1000
)

// Names that laws are about.
const (
	routeWrite      = "a write of a route, among 1000"
	routeWriteFew   = "a write of a route, among 100"
	policyWrite     = "a write of a route's policy, among 1000"
	policyWriteFew  = "a write of a route's policy, among 100"
	routeEvent      = "an event of a route, among 1000"
	routeEventFew   = "an event of a route, among 100"
	policyEvent     = "an event of a policy, among 1000"
	policyEventFew  = "an event of a policy, among 100"
	whenMoreThanHis = `"when":"spec.limits.requests.rates.exists(r, r.limit > 50)",`
)

var laws = []law{
	{routeWrite, routeWriteFew}, {policyWrite, policyWriteFew}, {routeEvent, routeEventFew}, {policyEvent, policyEventFew},
}

var scenarios = []scenario{
	{routeWrite, 50, writeOfRoute(many)},
	{routeWriteFew, 50, writeOfRoute(few)},
	{"an annotation of a route", 50, annotationOfRoute},
	{policyWrite, 50, writeOfRoutePolicy(many)},
	{policyWriteFew, 50, writeOfRoutePolicy(few)},
	{"an annotation of a route's policy", 50, annotationOfRoutePolicy},
	{"a write of a gateway, 1000 routes", 5, writeOfGateway},
	{"a write of a gateway's policy, 1000 routes with a policy", 5, writeOfGatewayPolicy(own, "")},
	{"a write of a gateway's policy with a when, 1000 routes with a policy", 5, writeOfGatewayPolicy(own, whenMoreThanHis)},
	{"a write of a gateway's policy, 1000 routes without", 5, writeOfGatewayPolicy(none, "")},
	{"a write of a gateway's policy under two constraints, 1000 routes with a policy", 5, writeUnderConstraints},
	{routeEvent, 50, eventOfRoute(many)},
	{routeEventFew, 50, eventOfRoute(few)},
	{policyEvent, 50, eventOfPolicy(many)},
	{policyEventFew, 50, eventOfPolicy(few)},
	{"effective policies of 1000 paths, from cold", 3, effectivePolicies},
	{"a route decoded, 3 KB", 50, decodedRoute},
	{"a list of 1000 routes", 3, listOfRoutes},
}

var holdings = []holding{
	{"a route held, of 1 KiB", 2000, heldRoutes},
	{"a policy held, of 1 KiB", 2000, heldPolicies},
}

// writeOfRoute gives a route another host.
func writeOfRoute(among int) func() (func() error, error) {
	return func() (func() error, error) {
		w, err := crowd(among, own, "")
		if err != nil {
			return nil, err
		}
		return w.door().write(routeKind, team(7), routeName(7), bigRoute(7, "new.example.com"), bigRoute(7, hostOf(7))), nil
	}
}

// bigRoute is a route of 3 KB.
func bigRoute(i int, host string) string { return route(i, "edge", host, 5) }

func annotationOfRoute() (func() error, error) {
	w, err := crowd(few, own, "")
	if err != nil {
		return nil, err
	}
	d := w.door()
	review := update(routeKind, team(7), routeName(7), bigRoute(7, "new.example.com"), bigRoute(7, hostOf(7)))
	return func() error { return d.ask(webhook.PathMutate, review) }, nil
}

// writeOfRoutePolicy gives the policy of a route another limit.
func writeOfRoutePolicy(among int) func() (func() error, error) {
	return func() (func() error, error) {
		w, err := crowd(among, own, "")
		if err != nil {
			return nil, err
		}
		return w.door().write(limitKind, team(7), routeName(7), routeLimits(7, 10), routeLimits(7, 27)), nil
	}
}

func annotationOfRoutePolicy() (func() error, error) {
	w, err := crowd(few, own, "")
	if err != nil {
		return nil, err
	}
	d := w.door()
	review := update(limitKind, team(7), routeName(7), routeLimits(7, 10), routeLimits(7, 27))
	return func() error { return d.ask(webhook.PathMutate, review) }, nil
}

// writeOfGateway gives a listener that no route is on another port.
func writeOfGateway() (func() error, error) {
	w, err := crowd(many, own, "")
	if err != nil {
		return nil, err
	}
	was := gateway("edge")
	return w.door().write(gatewayKind, "infra", "edge", strings.ReplaceAll(was, "8080", "8081"), was), nil
}

// writeOfGatewayPolicy lowers the limit that holds on every route of a gateway.
func writeOfGatewayPolicy(have policies, when string) func() (func() error, error) {
	return func() (func() error, error) {
		w, err := crowd(many, have, when)
		if err != nil {
			return nil, err
		}
		is, was := gatewayLimits("edge", when, 40), gatewayLimits("edge", when, 50)
		return w.door().write(limitKind, "infra", "edge", is, was), nil
	}
}

// writeUnderConstraints is the same write where each path has to meet demands.
func writeUnderConstraints() (func() error, error) {
	w, err := crowd(many, own, "")
	if err != nil {
		return nil, err
	}
	if err := w.put(constraint.ClusterKind, constraints...); err != nil {
		return nil, err
	}
	if v, _ := w.View(); len(v.Constraints(limitKind)) != len(constraints) {
		return nil, errors.New("a constraint is not in force")
	}
	is, was := gatewayLimits("edge", "", 40), gatewayLimits("edge", "", 50)
	return w.door().write(limitKind, "infra", "edge", is, was), nil
}

// eventOfRoute is what happens between a decoded route and the next moment of
// the store.
func eventOfRoute(among int) func() (func() error, error) {
	return func() (func() error, error) {
		w, err := crowd(among, own, "")
		if err != nil {
			return nil, err
		}
		flight.New(w.Store, flight.Options{})
		o, err := watchedRoute(bigRoute(7, "new.example.com"))
		if err != nil {
			return nil, err
		}
		return func() error {
			r, err := hierarchy.FromRoute(routeKind.Kind, o)
			if err != nil {
				return err
			}
			w.Apply(store.Put(r))
			w.Saw(store.Seen{Ref: r.Ref(), UID: uid, Version: "2"})
			return nil
		}, nil
	}
}

// eventOfPolicy is the same for a policy.
func eventOfPolicy(among int) func() (func() error, error) {
	return func() (func() error, error) {
		w, err := crowd(among, own, "")
		if err != nil {
			return nil, err
		}
		flight.New(w.Store, flight.Options{})
		o, err := watchedPolicy(routeAuth(7))
		if err != nil {
			return nil, err
		}
		return func() error {
			p := w.kinds[authKind].Read(o, 0).Pack()
			w.Apply(store.Put(p))
			w.Saw(store.Seen{Ref: p.Ref(), UID: uid, Version: "2"})
			return p.Invalid
		}, nil
	}
}

func effectivePolicies() (func() error, error) {
	w, err := crowd(many, own, "")
	if err != nil {
		return nil, err
	}
	v, _ := w.View()
	edge := effective.ScopeOf(v.Get(api.Ref{Group: gatewayKind.Group, Kind: gatewayKind.Kind, Namespace: "infra", Name: "edge"}))
	return func() error {
		paths := make(map[hierarchy.ID]bool, many)
		budget := effective.NewBudget(context.Background(), guard.DefaultBudget)
		err := effective.NewEngine().Walk(v, edge, false, budget, func(e *effective.Effective) error {
			paths[e.Path.ID()] = true
			return nil
		})
		if err == nil && len(paths) != many {
			return fmt.Errorf("%d paths, want %d", len(paths), many)
		}
		return err
	}, nil
}

func decodedRoute() (func() error, error) {
	text := []byte(bigRoute(7, hostOf(7)))
	return func() error {
		_, err := store.Decode(routeKind, nil, text, 0)
		return err
	}, nil
}

// listOfRoutes is the first list of a watch, decoded already.
func listOfRoutes() (func() error, error) {
	w, err := newWorld()
	if err != nil {
		return nil, err
	}
	all := make([]store.Object, many)
	for i := range all {
		if all[i], err = w.read(routeKind, route(i, "edge", hostOf(i), 1)); err != nil {
			return nil, err
		}
	}
	return func() error {
		store.New().Replace(routeKind, all)
		return nil
	}, nil
}

// heldRoutes is a store of routes on the gateway edge, with nothing else in it.
func heldRoutes(n int) (any, error) {
	w, err := newWorld()
	if err != nil {
		return nil, err
	}
	for i := range n {
		o, err := watchedRoute(route(i, "edge", hostOf(i), 2))
		if err != nil {
			return nil, err
		}
		r, err := hierarchy.FromRoute(routeKind.Kind, o)
		if err != nil {
			return nil, err
		}
		w.Apply(store.Put(r))
	}
	return w, nil
}

// heldPolicies is a store of policies of routes, with nothing else in it.
func heldPolicies(n int) (any, error) {
	w, err := newWorld()
	if err != nil {
		return nil, err
	}
	for i := range n {
		o, err := watchedPolicy(routeAuth(i))
		if err != nil {
			return nil, err
		}
		w.Apply(store.Put(w.kinds[authKind].Read(o, 0).Pack()))
	}
	return w, nil
}
