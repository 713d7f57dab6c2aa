package ratelimit

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// Rendering gathers which limits are bound to which rules at one gateway, and
// makes the RFC's two documents of them: the actions of the gateway, and the
// limits of the service that counts. The zero Rendering is not ready: NewRendering
// makes one.
type Rendering struct {
	namespace string
	limits    map[string][]*rendered // by policy and name; several where a policy gives several
}

// NewRendering returns an empty one; namespace is that of the counters.
func NewRendering(namespace string) *Rendering {
	return &Rendering{namespace: namespace, limits: make(map[string][]*rendered)}
}

// Source tells where a limit is from.
type Source struct {
	// Policy is its namespace/name.
	Policy string
	// Block of the policy.
	Block string
}

// rendered is a limit and the rules that it is bound to.
type rendered struct {
	id     string // tells the limit apart, on the wire
	source Source
	limit  *Limit
	bound  map[ruleRef]*boundRule
}

// spot is a rule of a route.
type ruleRef struct {
	namespace, name, kind string
	rule                  int
}

func compareRuleRefs(a, b ruleRef) int {
	return cmp.Or(
		strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name),
		strings.Compare(a.kind, b.kind), cmp.Compare(a.rule, b.rule),
	)
}

// bound is a rule that a limit is bound to, and for which hostnames.
type boundRule struct {
	route *gateway.Route
	hosts map[string]bool
}

// Add books that a limit is bound to the i-th rule of a route, by which requests
// for some hostnames come, "" for any (hierarchy.Path.Hosts). A rule that is added
// more than once, as for each listener, is for the hostnames of all.
func (r *Rendering) Add(from Source, b *Bound, route *gateway.Route, i int, hosts []string) {
	if b.commonHostnames() == nil {
		hosts = intersectHostnames(b.Hostnames(i), hosts)
	}
	if len(hosts) == 0 {
		return // no request comes
	}
	at := ruleRef{namespace: route.Namespace, name: route.Name, kind: route.Kind, rule: i}
	l := r.entryFor(from, b.Limit)
	if l.bound[at] == nil {
		l.bound[at] = &boundRule{route: route, hosts: make(map[string]bool)}
	}
	for _, h := range hosts {
		l.bound[at].hosts[h] = true
	}
}

// of returns what is booked of a limit. A policy may have a limit of one name in
// two blocks, each in force on paths of its own.
func (r *Rendering) entryFor(from Source, limit *Limit) *rendered {
	id := from.Policy + "/" + limit.Name
	for _, l := range r.limits[id] {
		if l.limit == limit || reflect.DeepEqual(l.limit, limit) {
			if from.Block < l.source.Block {
				l.source = from // whatever the order in which they come
			}
			return l
		}
	}
	l := &rendered{source: from, limit: limit, bound: make(map[ruleRef]*boundRule)}
	r.limits[id] = append(r.limits[id], l)
	return l
}

// Documents returns both, in the order of the rules that limits are bound to: by
// route, rule and name of the limit. Neither is nil.
func (r *Rendering) Documents() ([]api.GatewayAction, []api.RenderedLimit) {
	actions, limits := []api.GatewayAction{}, []api.RenderedLimit{}
	for _, l := range r.sorted() {
		actions = append(actions, api.GatewayAction{Rules: l.rules(), Configurations: r.configurations(l)})
		limits = append(limits, r.rates(l)...)
	}
	return actions, limits
}

// sorted returns the limits in order, each with what tells it apart: the name of
// its policy and its own, and its block where the policy has another of that name.
func (r *Rendering) sorted() []*rendered {
	var out []*rendered
	for id, several := range r.limits {
		for _, l := range several {
			l.id = id
			if len(several) > 1 {
				l.id += "/" + l.source.Block
			}
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *rendered) int {
		return cmp.Or(compareRuleRefs(a.ruleRefs()[0], b.ruleRefs()[0]), strings.Compare(a.limit.Name, b.limit.Name), strings.Compare(a.id, b.id))
	})
	return out
}

// spots returns the rules that the limit is bound to, in order; there is one.
func (l *rendered) ruleRefs() []ruleRef {
	return slices.SortedFunc(maps.Keys(l.bound), compareRuleRefs)
}

// rules returns an item for each match of each rule.
func (l *rendered) rules() []api.GatewayRule {
	var out []api.GatewayRule
	for _, at := range l.ruleRefs() {
		b := l.bound[at]
		hosts := mostGeneral(b.hosts)
		for _, item := range gatewayRules(b.route, at.rule) {
			item.Hosts = hosts
			out = append(out, item)
		}
	}
	return out
}

// rates returns an item for each rate.
func (r *Rendering) rates(l *rendered) []api.RenderedLimit {
	conditions := conditionsOf(l.id, l.limit)
	var out []api.RenderedLimit
	for _, rate := range l.limit.Rates {
		out = append(out, api.RenderedLimit{
			Conditions: conditions, Variables: l.limit.Counters,
			MaxValue: rate.Limit, Seconds: rate.Seconds(), Namespace: r.namespace,
		})
	}
	return out
}
