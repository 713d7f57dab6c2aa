package guard

import (
	"fmt"
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// reachCheck looks for what no request reaches.
type reachCheck struct {
	*requests

	blast    *blastRadius
	ownReach ownReach
	reaches  *effective.Reaches // after the write
}

// ownReach is whether requests reach the paths of the policy that is written.
type ownReach struct {
	reached bool
	looked  int
	first   gateway.Reach // of the first path
	on      *effective.Effective
}

// addOwnReach looks whether requests reach a path of the policy that is written, until one
// that they reach is found. Beside many that none reaches, the next one counts as reached.
func (ev *reachCheck) addOwnReach(e *effective.Effective) {
	own := &ev.ownReach
	if own.reached {
		return
	}
	x := gateway.Reach{Reached: true}
	if own.looked++; own.looked <= maxUnreachedPaths {
		x = ev.reachAfter(&e.Path)
	}
	own.reached = x.Reached
	if own.on == nil {
		own.first, own.on = x, e
	}
}

// notReached reports whether no request reaches a path after the write of a policy or a route.
// Beside many of that kind, or at many gateways, it counts as reached.
func (ev *reachCheck) notReached(p effective.Pair) bool {
	if _, writesRoute := ev.change.Object().(*gateway.Route); p.After == nil || !writesRoute && !ev.writesPolicy() || ev.blast.unreached.count() >= maxUnreachedCounted {
		return false
	}
	if known := ev.gateways; len(known) >= maxReachGateways && readsRequests(&p.After.Path) && known[entryOf(&p.After.Path)] == nil {
		return false
	}
	return !ev.reachAfter(&p.After.Path).Reached
}

// reachAfter returns whether requests reach a path after the write.
func (ev *reachCheck) reachAfter(p *gateway.Path) gateway.Reach {
	if ev.reaches == nil {
		ev.reaches = effective.ReachesBy(func(p *gateway.Path) *gateway.Router { return ev.routersOf(entryOf(p)).after })
	}
	return ev.reaches.Of(p)
}

// reportAll reports what no request reaches after the write, and from what the write
// takes all requests (SEMANTICS section 9).
func (ev *reachCheck) reportAll() {
	objectCheck{ev.requests}.reportDetached()
	ref := ev.change.Object().Ref()
	switch o := ev.after.Get(ref).(type) {
	case *gateway.Route:
		old, _ := ev.before.Get(ref).(*gateway.Route)
		if old != o && (old == nil || !old.SameRequests(o)) {
			ev.reportRoute(old, o)
		}
	case *gateway.Gateway:
		ev.reportListeners(o)
	case *gateway.ListenerSet:
		if g := ev.after.Gateway(o.GatewayNamespace, o.GatewayName); g != nil {
			ev.reportListeners(g)
		}
	default:
		if own := &ev.ownReach; ev.policy != nil && own.on != nil && !own.reached {
			on := pathText(own.on)
			if r := own.on.Path.Route; r != nil && !ev.reads(r.Namespace) {
				on = ev.routeName(r)
			}
			ev.reportNotReached("the policy has no effect: no request reaches "+on, &own.first, own.on.Path.Route)
		}
	}
}

// reportRoute reports rules of the route that is written which no request reaches,
// and those of others from which it takes all.
func (ev *reachCheck) reportRoute(old, r *gateway.Route) {
	for _, entry := range ev.reroutedRoutes(nil, []*gateway.Route{r}).entries {
		at := ev.routersOf(entry)
		if at.after == nil {
			continue
		}
		if at.after.MayBeUnreached(r) {
			ev.reportRules(entry, at, old, r)
		}
		var taken []ruleOf
		for rival := range at.after.Rivals(r) {
			of := ruleOf{rival.Route, rival.Rule}
			if len(taken) < maxTaken && of.route != r && r.Precedes(of.route) && !slices.Contains(taken, of) {
				taken = append(taken, of)
			}
		}
		ev.reportTaken(entry, at, r, taken)
		if !at.mesh {
			ev.reportOtherKinds(entry, at, old, r)
		}
	}
}

// ruleOf is a rule of a route.
type ruleOf struct {
	route *gateway.Route
	rule  int
}

// reportRules reports the rules of a route that no request reaches, unless none
// did before.
func (ev *reachCheck) reportRules(entry api.Ref, at *gatewayRouters, old, r *gateway.Route) {
	var rulesBefore []int
	if old != nil && at.before != nil {
		rulesBefore = gateway.MatchRules(old, r)
	}
	var found []gateway.Reach
	var rules []int
	newly := false
	for rule := range r.Rules {
		x := at.after.ReachAnywhere(r, rule)
		if x.Reached && !x.Isolated {
			continue
		}
		found, rules = append(found, x), append(rules, rule)
		newly = newly || rulesBefore == nil || rulesBefore[rule] < 0 || at.before.ReachAnywhere(old, rulesBefore[rule]) == gateway.Reach{Reached: true}
	}
	if !newly {
		return
	}
	on := fmt.Sprintf(" on %s", entry)
	if len(found) == len(r.Rules) {
		ev.reportNotReached("no request reaches "+r.Ref().String()+on, &found[0], r)
		return
	}
	for i := range found[:min(len(found), maxUnreached)] {
		ev.reportNotReached(fmt.Sprintf("no request reaches %s of %s%s", r.RuleName(rules[i]), r.Ref(), on), &found[i], r)
	}
	if more := len(found) - maxUnreached; more > 0 {
		ev.warn(api.ReasonUnreached, Finding{}, "no request reaches %s of %s%s", api.Plural(more, "more rule"), r.Ref(), on)
	}
}

// reportNotReached reports something that no request reaches, since others take all.
func (ev *reachCheck) reportNotReached(what string, x *gateway.Reach, own *gateway.Route) {
	if x.Isolated {
		what += ", if the implementation isolates listeners"
	}
	what += ": " + x.Taker(own)
	f := Finding{What: what, Short: what}
	if x.Request != nil && x.By.Route != nil && own != nil && ev.reads(own.Namespace) {
		f.Request, f.ServedBy = x.Request.String(), servedText(x.By)
	}
	ev.report(api.ReasonUnreached, api.Warn, f)
}

// checkNames is the advice to writers who may not read what a finding is about.
const checkNames = "kubectl overrule check names it"

// servedText names the rule that serves a request.
func servedText(s gateway.Served) string {
	p := s.Path()
	return p.Element(gateway.LevelRule).String()
}

// reportTaken reports rules of other routes which the written one takes all requests from,
// and that some reached before.
func (ev *reachCheck) reportTaken(entry api.Ref, at *gatewayRouters, r *gateway.Route, rules []ruleOf) {
	routes := make(map[*gateway.Route]bool)
	for _, of := range rules {
		x := at.after.ReachAnywhere(of.route, of.rule)
		if x.Reached || x.By.Route == nil || x.By.Route.Ref() != r.Ref() {
			continue
		}
		if at.before != nil && !at.before.ReachAnywhere(of.route, of.rule).Reached {
			continue
		}
		whole := !at.after.ReachAnywhere(of.route, -1).Reached
		if whole && routes[of.route] {
			continue
		}
		routes[of.route] = true
		victim, rule, advice := ev.routeName(of.route), "a rule", checkNames
		if ev.reads(of.route.Namespace) {
			rule, advice = of.route.RuleName(of.rule), "ask the owner of "+victim
		}
		if !whole {
			victim = rule + " of " + victim
		}
		what := fmt.Sprintf("no request would reach %s on %s: %s takes all", victim, entry, r.Ref())
		ev.report(api.ReasonUnreached, api.Warn, Finding{
			What: what, Short: what, Advice: advice,
			Request: x.Request.String(), ServedBy: servedText(x.By),
		})
	}
}

// reportOtherKinds reports an HTTPRoute and a GRPCRoute on intersecting hostnames, of which
// Gateway API has the younger one rejected.
func (ev *reachCheck) reportOtherKinds(entry api.Ref, at *gatewayRouters, old, r *gateway.Route) {
	kind := map[string]string{gateway.KindHTTPRoute: gateway.KindGRPCRoute, gateway.KindGRPCRoute: gateway.KindHTTPRoute}[r.Kind]
	if kind == "" {
		return
	}
	of := func(v *snapshot.View) func(api.Ref) iter.Seq[*gateway.Route] {
		return func(parent api.Ref) iter.Seq[*gateway.Route] { return v.RoutesOfKind(parent, kind) }
	}
	others := at.after.OtherKinds(r, of(ev.after))
	if len(others) == 0 {
		return
	}
	before := make(map[api.Ref]bool)
	if at.before != nil && old != nil {
		for _, o := range at.before.OtherKinds(old, of(ev.before)) {
			before[o.Ref()] = true
		}
	}
	var rejects *gateway.Route // the oldest one
	reported := 0
	for _, o := range others {
		switch {
		case o.Created == r.Created && !o.Dated(): // which one is older is not known
		case o.Precedes(r) && (rejects == nil || o.Precedes(rejects)):
			rejects = o
		case r.Precedes(o) && !before[o.Ref()] && reported < maxUnreached:
			reported++
			ev.reportRejected(entry, o, r)
		}
	}
	if rejects != nil && !before[rejects.Ref()] {
		ev.reportRejected(entry, r, rejects)
	}
}

// reportRejected reports a route that Gateway API has rejected, since one of another kind
// on intersecting hostnames precedes it. Implementations may accept both.
func (ev *reachCheck) reportRejected(entry api.Ref, r, by *gateway.Route) {
	why := "is older"
	if r.Created == by.Created {
		why = "is as old and first by name"
	}
	ev.warn(api.ReasonUnreached, Finding{
		Short:  fmt.Sprintf("%s may be rejected on %s: %s, which has an intersecting hostname, %s", ev.routeName(r), entry, by.Ref(), why),
		Advice: "use another hostname",
	}, "no request reaches %s on %s if one kind of route per hostname is accepted, as Gateway API requires: %s on an intersecting hostname %s; else the more specific match counts", ev.routeName(r), entry, by.Ref(), why)
}

// reportListeners reports listeners of a gateway which newly conflict with others
// that precede them, and routes that are newly behind a listener.
func (ev *reachCheck) reportListeners(g *gateway.Gateway) {
	at := ev.routersOf(g.Ref())
	for l, with := range at.after.Conflicts {
		if at.before != nil && at.before.ConflictOf(l) != nil {
			continue
		}
		ev.warn(api.ReasonUnreached, Finding{Advice: "give it a hostname or a port of its own"},
			"no request reaches %s: it conflicts with %s, %s", l.Text(), with.Text(), conflictText(l, with))
	}
	if at.before == nil {
		return
	}
	looked := 0
	for r := range at.after.BehindNew(at.before) {
		if looked++; looked > maxTaken {
			return
		}
		x := at.after.ReachAnywhere(r, -1)
		if was := at.before.ReachAnywhere(r, -1); was.Reached && !was.Isolated && (!x.Reached || x.Isolated) {
			ev.reportNotReached(fmt.Sprintf("no request would reach %s on %s", ev.routeName(r), g.Ref()), &x, r)
		}
	}
}

// conflictText says why a listener precedes one that conflicts with it.
func conflictText(l, with *gateway.ListenerMatch) string {
	switch {
	case with.Set == l.Set:
		return "which is listed first"
	case with.Set == nil:
		return "since the Gateway's own listeners come first"
	case with.Set.Created < l.Set.Created:
		return "since its ListenerSet is older"
	default:
		return "since its ListenerSet is as old and first by name"
	}
}
