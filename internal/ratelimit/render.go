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

// Rendering collects which limits are bound to which rules at a gateway, and renders the
// RFC's two documents: the actions of the gateway, and the limits of the rate limit
// service. Use NewRendering to create one.
type Rendering struct {
	namespace string
	limits    map[string][]*rendered // by policy and name; a policy may have several of the same name
}

// NewRendering returns an empty Rendering. namespace is that of the counters.
func NewRendering(namespace string) *Rendering {
	return &Rendering{namespace: namespace, limits: make(map[string][]*rendered)}
}

// Source is where a limit comes from.
type Source struct {
	// Policy is the namespace/name of the policy.
	Policy string
	// Block of the policy.
	Block string
}

// rendered is a limit and the rules that it is bound to, each with the hostnames of its
// requests.
type rendered struct {
	id     string // identifies the limit in descriptors
	source Source
	limit  *Limit
	bound  map[ruleRef][]string
}

// ruleRef identifies a rule of a route.
type ruleRef struct {
	route *gateway.Route
	rule  int
}

func compareRuleRefs(a, b ruleRef) int {
	return cmp.Or(
		strings.Compare(a.route.Namespace, b.route.Namespace), strings.Compare(a.route.Name, b.route.Name),
		strings.Compare(a.route.Kind, b.route.Kind), cmp.Compare(a.rule, b.rule),
	)
}

// Add adds the binding of a limit to the i-th rule of a route. hosts are the hostnames of
// the requests that reach it, "" for any (gateway.Path.Hosts). If a rule is added more
// than once, such as for each listener, the hostnames are merged.
func (r *Rendering) Add(from Source, b *Bound, route *gateway.Route, i int, hosts []string) {
	if b.commonHostnames() == nil {
		hosts = gateway.CommonHostnames(b.Hostnames(i), hosts)
	}
	if len(hosts) == 0 {
		return // no request reaches the rule
	}
	at, l := ruleRef{route, i}, r.entryFor(from, b.Limit)
	l.bound[at] = append(l.bound[at], hosts...)
}

// entryFor returns the entry of a limit. A policy may have a limit of the same name in two
// blocks, each in force on other paths.
func (r *Rendering) entryFor(from Source, limit *Limit) *rendered {
	id := from.Policy + "/" + limit.Name
	for _, l := range r.limits[id] {
		if l.limit == limit || reflect.DeepEqual(l.limit, limit) {
			if from.Block < l.source.Block {
				l.source = from // independent of the order of Add
			}
			return l
		}
	}
	l := &rendered{source: from, limit: limit, bound: make(map[ruleRef][]string)}
	r.limits[id] = append(r.limits[id], l)
	return l
}

// Documents returns both documents, ordered by route, rule and name of the limit. Neither
// is nil.
func (r *Rendering) Documents() ([]api.GatewayAction, []api.RenderedLimit) {
	actions, limits := []api.GatewayAction{}, []api.RenderedLimit{}
	for _, l := range r.sorted() {
		actions = append(actions, api.GatewayAction{Rules: l.rules(), Configurations: r.configurations(l)})
		limits = append(limits, r.rates(l)...)
	}
	return actions, limits
}

// sorted returns the limits in order and sets their ids: the names of the policy and of
// the limit, and the block if the policy has another limit of that name.
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

// ruleRefs returns the rules that the limit is bound to, in order. There is at least one.
func (l *rendered) ruleRefs() []ruleRef {
	return slices.SortedFunc(maps.Keys(l.bound), compareRuleRefs)
}

// rules returns an item for each match of each rule.
func (l *rendered) rules() []api.GatewayRule {
	var out []api.GatewayRule
	for _, at := range l.ruleRefs() {
		matches := at.route.Matches(at.rule)
		if len(matches) == 0 { // every request
			matches = []gateway.Match{{}}
		}
		for i := range matches {
			out = append(out, gatewayRule(&matches[i], mostGeneral(l.bound[at])))
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
