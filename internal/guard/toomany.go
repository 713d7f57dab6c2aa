package guard

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// maximumCheck denies writes that bring more of what writes of others are compared with than
// allowed.
type maximumCheck struct{ *requests }

// check checks all maxima but that of validations (constraintWrite).
func (ev maximumCheck) check() {
	ev.checkConditionLimit()
	ev.checkRuleLimit()
	ev.checkMatchLimit()
	ev.checkPathLimit()
}

// attachPoint is where policies of a kind have conditions: an object or a section of it;
// client is the namespace whose traffic alone is meant, if one is.
type attachPoint struct {
	object  api.Ref
	kind    api.PolicyKind
	section string
	port    int32
	client  string
}

// conditionCount is the conditions at one attachPoint.
type conditionCount struct {
	conditions int
	policies   []api.Ref
}

// checkConditionLimit denies a write that brings more conditions to a place than allowed.
// One that adds none there is not denied for existing ones.
func (ev maximumCheck) checkConditionLimit() {
	for _, object := range ev.affectedObjects() {
		is := conditionsOn(ev.after, object)
		for at, c := range is {
			if c.conditions > maxConditions && c.conditions > conditionsOn(ev.before, object)[at].conditions {
				slices.SortFunc(c.policies, api.CompareRefs)
				place := policykind.Target{Ref: at.object, Section: at.section, Port: at.port}
				ev.denyTooMany(fmt.Sprintf("%s would have %d conditions (when) of kind %s: must have at most %d", place, c.conditions, at.kind.Kind, maxConditions),
					"every write above it evaluates them; they are in "+joinRefs(c.policies), "combine several into one, or remove one from a policy there")
			}
		}
	}
}

// affectedObjects returns the objects to which the write may bring policies: the targets
// of a policy with conditions, whether they exist or not; what labels or a namespace's
// labels let policies select; what a ReferenceGrant allows them.
func (ev maximumCheck) affectedObjects() []api.Ref {
	switch o := ev.change.After.(type) {
	case nil:
		return nil
	case *policykind.Policy:
		if countConditions(o) == 0 {
			return nil
		}
		return targetsOf(ev.after, o)
	case *gateway.Namespace:
		var out []api.Ref
		for _, c := range ev.after.AllIn(o.Name) {
			out = append(out, c.Ref)
		}
		return out
	case *gateway.Grant:
		var out []api.Ref
		for p := range ev.after.DependingOn(o) {
			out = append(out, targetsOf(ev.after, p)...)
		}
		slices.SortFunc(out, api.CompareRefs)
		return slices.Compact(out)
	default:
		return []api.Ref{o.Ref()}
	}
}

// targetsOf returns the objects that a policy targets, each once.
func targetsOf(v *snapshot.View, p *policykind.Policy) []api.Ref {
	var out []api.Ref
	seen := make(map[api.Ref]bool)
	for _, t := range v.Targets(p) {
		if t.Selector == nil && !seen[t.Ref] {
			seen[t.Ref] = true
			out = append(out, t.Ref)
		}
	}
	return out
}

// conditionsOn returns the conditions that policies have on an object, by place;
// nil for none.
func conditionsOn(v *snapshot.View, object api.Ref) map[attachPoint]conditionCount {
	var out map[attachPoint]conditionCount
	for p, t := range v.On(object) {
		n := countConditions(p)
		if n == 0 || t.Refused != "" || p.Invalid != nil {
			continue
		}
		at := attachPoint{object: object, kind: p.Kind.Ref(), section: t.Section, port: t.Port}
		if t.Consumer {
			at.client = p.Namespace
		}
		put(&out, at, conditionCount{out[at].conditions + n, append(out[at].policies, p.Ref())})
	}
	return out
}

// countConditions counts the blocks of a policy that have a condition.
func countConditions(p *policykind.Policy) int {
	n := 0
	for i := range p.Blocks {
		if p.Blocks[i].When != nil {
			n++
		}
	}
	return n
}

// denyTooMany denies a write with which something would have more of what writes of others
// are compared with than allowed.
func (ev maximumCheck) denyTooMany(what, since, advice string) {
	ev.report(api.ReasonTooMuch, api.Deny, Finding{What: what + ", since " + since, Short: what, Advice: advice})
}

// checkRuleLimit denies a policy with which the policies of its kind and namespace have more
// rules than allowed. One that adds none is not denied for existing ones.
func (ev maximumCheck) checkRuleLimit() {
	if ev.policy == nil || countRules(ev.policy) <= fewRules || ev.old != nil && countRules(ev.old) >= countRules(ev.policy) {
		return
	}
	ref, n := ev.policy.Ref(), 0
	for o := range ev.after.In(ref.PolicyKind(), ref.Namespace) {
		if p, ok := o.(*policykind.Policy); ok {
			n += countRules(p)
		}
	}
	if n <= maxRules {
		return
	}
	ev.denyTooMany(fmt.Sprintf("the policies of kind %s in namespace %s would have %d rules: must have at most %d", ref.Kind, ref.Namespace, n, maxRules),
		"every write above them is compared with each", "remove rules that are not needed")
}

// countRules counts the rules of a policy.
func countRules(p *policykind.Policy) int {
	n := 0
	for _, b := range slices.Concat(p.Blocks, slices.Concat(p.Parts...)) {
		n += len(b.Rules)
	}
	return n
}

// DefaultMatchLimit is the default of Guard.MatchLimit: fifteen routes with as many
// matches as Gateway API allows.
const DefaultMatchLimit = 2000

// matchPoint is where the matches of a namespace's routes are counted.
type matchPoint struct {
	parent   api.Ref
	hostname string // "" for routes without hostnames, and at Services
}

// checkMatchLimit denies the write of a route with which the routes of its namespace have
// more matches on a hostname of a Gateway, ListenerSet or Service than allowed: writes of
// others there are compared with all of them, and with their regular expressions. One that
// adds none there is not denied for existing ones.
func (ev maximumCheck) checkMatchLimit() {
	route, ok := ev.change.After.(*gateway.Route)
	if !ok || ev.guard.MatchLimit == 0 {
		return
	}
	added := make(map[matchPoint]int) // with how many the namespace has there
	for at := range matchPoints(route) {
		added[at] = 0
	}
	if was, ok := ev.before.Get(route.Ref()).(*gateway.Route); ok && was.MatchWeight() >= route.MatchWeight() {
		for at := range matchPoints(was) {
			delete(added, at)
		}
	}
	if len(added) == 0 {
		return
	}
	for r := range routesOfNamespace(ev.after, route.Namespace) {
		for at := range matchPoints(r) {
			if n, ok := added[at]; ok {
				added[at] = n + r.MatchWeight()
			}
		}
	}
	var most matchPoint
	for at := range added {
		if c := cmp.Or(cmp.Compare(added[at], added[most]), -api.CompareRefs(at.parent, most.parent), -strings.Compare(at.hostname, most.hostname)); c > 0 {
			most = at
		}
	}
	if added[most] <= ev.guard.MatchLimit {
		return
	}
	where, counted := most.parent.String(), ""
	if most.hostname != "" {
		where = fmt.Sprintf("hostname %s of %s", most.hostname, most.parent)
	}
	if route.MatchWeight() > route.MatchCount() {
		counted = ", with large regular expressions counted several times"
	}
	ev.denyTooMany(fmt.Sprintf("the routes of namespace %s would have %d matches on %s%s: must have at most %d", route.Namespace, added[most], where, counted, ev.guard.MatchLimit),
		"writes of others there are compared with each of them",
		"use prefixes or hostnames of their own in place of many matches, or ask the cluster administrator to raise --max-matches")
}

// matchPoints yields where a route has its matches, each once.
func matchPoints(r *gateway.Route) iter.Seq[matchPoint] {
	return func(yield func(matchPoint) bool) {
		for i, p := range r.Parents {
			if slices.ContainsFunc(r.Parents[:i], func(o gateway.Parent) bool { return o.Is(p.Kind, p.Namespace, p.Name) }) {
				continue // another section or port of it
			}
			hostnames := r.Hostnames
			if len(hostnames) == 0 || p.Kind == gateway.KindService {
				hostnames = []string{""}
			}
			for _, h := range hostnames {
				if !yield(matchPoint{p.Ref(), h}) {
					return
				}
			}
		}
	}
}

// pathsPerMatch is how many paths the routes of one namespace may have at a gateway for each
// match that they may have on a hostname: by default 20,000, of which an edit of the gateway
// is compared in less than half a second.
const pathsPerMatch = 10

// checkPathLimit denies the write of a route or ListenerSet with which the routes of its
// namespace have more paths at a gateway than allowed: one for each rule and listener.
// Writes of what is above are compared on all of them. One that adds none is not denied for
// existing ones.
func (ev maximumCheck) checkPathLimit() {
	limit := ev.guard.MatchLimit * pathsPerMatch
	if limit == 0 {
		return
	}
	var entries []api.Ref
	switch o := ev.change.After.(type) {
	case *gateway.Route:
		if was, ok := ev.before.Get(o.Ref()).(*gateway.Route); !ok || !was.SameRequests(o) {
			entries = ev.reroutedRoutes(nil, nonNil(o)).entries
		}
	case *gateway.ListenerSet:
		if g := ev.after.Gateway(o.GatewayNamespace, o.GatewayName); g != nil {
			entries = []api.Ref{g.Ref()}
		}
	}
	namespace := ev.change.Object().Ref().Namespace
	for _, entry := range entries {
		at := ev.routersOf(entry)
		if at.mesh {
			continue
		}
		n := countPaths(ev.after, at.after, namespace)
		if n <= limit || n <= countPaths(ev.before, at.before, namespace) {
			continue
		}
		ev.denyTooMany(fmt.Sprintf("the routes of namespace %s would have %d paths by rules and listeners on %s: must have at most %d", namespace, n, entry, limit),
			"writes of what is above are compared on each of them",
			"name single listeners in parentRefs, or ask the cluster administrator to raise --max-matches")
	}
}

// countPaths returns the number of paths of a namespace's routes at a gateway, 0 for none.
func countPaths(v *snapshot.View, router *gateway.Router, namespace string) int {
	n := 0
	if router != nil {
		for r := range routesOfNamespace(v, namespace) {
			n += router.CountPaths(r)
		}
	}
	return n
}
