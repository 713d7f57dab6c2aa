package worlds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// Heavy is a write that is expensive because of its size: a webhook must evaluate it in
// time, or deny it with a reason.
type Heavy struct {
	// What is the name in benchmarks; Name is a sentence.
	What, Name string
	// Full is the size at which the write must be evaluated in time, or denied;
	// Small one at which it is evaluated at once.
	Full, Small Shape
	// Representative cases run where there is no time for all.
	Representative bool
	// BlastRadius of the guard.
	BlastRadius int
	// Want is the result of an evaluation with enough time and memory.
	Want func(s Shape) Want

	route func(s Shape, i int) Object // in place of those of the shape
	put   []func(s Shape) []Object    // beside the objects of the shape
	alike func(s Shape) Object        // the policy that each route has
	write func(s Shape) Write
}

// Want is the expected result of an evaluation.
type Want struct {
	// Denied is the first reason code of a denial, "" if the write is allowed.
	Denied api.ReasonCode
	// Says is part of the denial's message, or of the warnings.
	Says string
}

// Build returns the cluster and the write of a case.
func (h *Heavy) Build(tb testing.TB, s Shape) (*Cluster, Write) {
	tb.Helper()
	c := Empty(tb)
	c.addKind(listKind(tb))
	route := Shape.Route
	if h.route != nil {
		route = h.route
	}
	objects := s.objects(route)
	for _, more := range h.put {
		objects = append(objects, more(s)...)
	}
	c.Put(tb, objects...)
	if h.alike != nil {
		c.putAlike(tb, h.alike(s), s.Routes)
	}
	return c, h.write(s)
}

// HeavyCases returns all cases.
func HeavyCases() []Heavy {
	return slices.Concat(pathCases(), routeCases(), ruleCases(), conditionCases(), pairCases(), optionCases(), bindingCases())
}

// Trivial returns a write that any server evaluates at once.
func Trivial() Write {
	return Write{After: named(routeKind, app, "trifle", Object{"rules": []any{Shape{}.rule(0, 0)}})}
}

// create, update and remove are writes of objects of a shape.
func create(after func(Shape) Object) func(Shape) Write {
	return func(s Shape) Write { return Write{After: after(s)} }
}

func update(before, after func(Shape) Object) func(Shape) Write {
	return func(s Shape) Write { return Write{Before: before(s), After: after(s)} }
}

func remove(before func(Shape) Object) func(Shape) Write {
	return func(s Shape) Write { return Write{Before: before(s)} }
}

func fixed(o Object) func(Shape) Object { return func(Shape) Object { return o } }

// one and eachRoute are objects that a case puts.
func one(o func(Shape) Object) func(Shape) []Object {
	return func(s Shape) []Object { return []Object{o(s)} }
}

func eachRoute(o func(i int) Object) func(Shape) []Object {
	return func(s Shape) []Object {
		out := make([]Object, s.Routes)
		for i := range out {
			out[i] = o(i)
		}
		return out
	}
}

// own are different policies of the routes.
var own = eachRoute(func(i int) Object { return ownLimits(i, limits(Object{"login": rates(20 + i%30), "own": rates(i)})) })

// edge returns overrides of the first gateway.
func edge(login int) func(Shape) Object {
	return func(Shape) Object {
		return gatewayLimits(0, "edge", "overrides", merged(limits(Object{"login": rates(login)}), ""))
	}
}

// huge returns a gateway's policy with very many rules in one block.
func huge(block string, limit int) func(Shape) Object {
	return func(s Shape) Object {
		all := many(s.Rules, "l", rates(limit))
		all["login"] = rates(limit)
		return gatewayLimits(0, "huge", block, merged(limits(all), ""))
	}
}

// crowded are many policies of the first gateway; prefix is a format of their limits' names.
func crowded(prefix, when string) func(Shape) []Object {
	return func(s Shape) []Object {
		out := make([]Object, s.Policies)
		for p := range out {
			named := many(s.Rules, strings.ReplaceAll(prefix, "N", fmt.Sprintf("%03d", p)), rates(10))
			out[p] = gatewayLimits(0, fmt.Sprintf("p%03d", p), "overrides", merged(limits(named), when))
		}
		return out
	}
}

var (
	classEdit = update(fixed(crowdClass("before")), fixed(crowdClass("after")))
	nothing   = says("")
)

func says(text string) func(Shape) Want { return func(Shape) Want { return Want{Says: text} } }

func denies(code api.ReasonCode, text string) func(Shape) Want {
	return func(Shape) Want { return Want{Denied: code, Says: text} }
}

// changes is the warning about the number of changed paths.
func changes(kind string, paths int) Want {
	return Want{Says: fmt.Sprintf("changes the effective %s on %d paths in 1 namespace", kind, paths)}
}

// reaches expects that all paths of the routes have another effective policy.
func reaches(kind string) func(Shape) Want {
	return func(s Shape) Want { return changes(kind, s.Paths()) }
}

// removed expects that the login limit, an override, is removed from all paths.
func removed(s Shape) Want {
	return Want{Denied: api.ReasonOverrideRemoved, Says: fmt.Sprintf(" %d paths", s.Paths())}
}

// pathCases are writes that affect very many paths.
func pathCases() []Heavy {
	full, small := Shape{Gateways: 1, Listeners: 64, Routes: 5000, RouteRules: 1}, Shape{Gateways: 1, Listeners: 3, Routes: 7, RouteRules: 2}
	five := full
	five.RouteRules = 5
	busy := []func(Shape) []Object{own, one(edge(10))}
	gateway := func(s Shape) Object { return s.Gateway(0) }
	all := []Heavy{
		{
			What: "listeners/policy", Representative: true, Name: "a policy is put on a gateway of 64 listeners and 5,000 routes",
			Want: reaches("RateLimitPolicy"), put: busy[:1], write: create(edge(10)),
		},
		{
			What: "listeners/policy-5-rules", Name: "a policy of a gateway of 64 listeners and 5,000 routes of five rules is edited",
			Full: five, Want: removed, write: update(edge(10), edge(11)),
		},
		{
			What: "listeners/policy-deleted", Name: "overrides of a gateway of 64 listeners and 5,000 routes are deleted",
			Want: removed, write: remove(edge(10)),
		},
		{
			What: "listeners/policy-deleted-alike", Name: "overrides of a gateway of 64 listeners are deleted, of which one of 5,000 routes serves all requests",
			Want: removed, write: remove(edge(10)), route: func(s Shape, i int) Object {
				alike := s.Route(i)
				Spec(alike)["rules"] = Spec(s.Route(0))["rules"]
				return alike
			},
		},
		{
			What: "listeners/gateway", Name: "a gateway of 64 listeners and 5,000 routes loses a listener",
			Want:  func(s Shape) Want { return changes("RateLimitPolicy", s.Routes*s.RouteRules) },
			write: update(gateway, func(s Shape) Object { s.Listeners--; return s.Gateway(0) }),
		},
		{
			What: "listeners/gateway-deleted", Name: "a gateway of 64 listeners and 5,000 routes of five rules is deleted",
			Full: five, Want: reaches("RateLimitPolicy"), write: remove(gateway),
		},
		{
			What: "listeners/class", Name: "the class of a gateway of 64 listeners and 5,000 routes of five rules is edited",
			Full: five, Want: nothing, write: classEdit,
		},
		{
			What: "listeners/namespace-label", Name: "a namespace of 5,000 routes loses the label that 64 listeners ask for",
			Want: says("no request would reach"), write: update(fixed(crowdNamespace("ours")), fixed(crowdNamespace("theirs"))),
		},
		{
			What: "listeners/namespace-deleted", Name: "a namespace of 5,000 routes on 64 listeners is deleted",
			Want: nothing, write: remove(fixed(crowdNamespace("ours"))),
		},
	}
	return sized(all, full, small, busy...)
}

// sized sets the sizes and objects of cases that have none.
func sized(all []Heavy, full, small Shape, put ...func(Shape) []Object) []Heavy {
	for i := range all {
		if all[i].Full == (Shape{}) {
			all[i].Full = full
		}
		if all[i].Small == (Shape{}) {
			all[i].Small = small
		}
		if all[i].put == nil {
			all[i].put = put
		}
	}
	return all
}

// routeCases are writes of one route that is on very many listeners.
func routeCases() []Heavy {
	overrides := func(s Shape) []Object {
		out := make([]Object, s.Gateways)
		for g := range out {
			out[g] = gatewayLimits(g, crowdGateway(g), "overrides", merged(limits(Object{"login": rates(10 + g)}), ""))
		}
		return out
	}
	return sized([]Heavy{
		{
			What: "gateways/route", Representative: true, Name: "a route of 16 rules and 1,024 matches on 32 gateways of 64 listeners gets a rule in front",
			Want: nothing,
			write: func(s Shape) Write {
				w := Write{Before: s.Route(0), After: s.Route(0)}
				spec := Spec(w.After)
				spec["rules"] = append([]any{s.rule(0, 99)}, spec["rules"].([]any)...)
				spec["hostnames"] = hostnames(16, "")
				return w
			},
		},
		{
			What: "gateways/route-policy", Name: "a route of 16 rules on 32 gateways of 64 listeners gets a policy",
			Want: says("limits.login has no effect"), write: create(fixed(ownLimits(0, limits(Object{"login": rates(20)})))),
		},
	}, Shape{Gateways: 32, Listeners: 64, Routes: 1, RouteRules: 16, Matches: 64}, Shape{Gateways: 3, Listeners: 2, Routes: 1, RouteRules: 3, Matches: 2}, overrides)
}

// ruleCases are policies with very many rules.
func ruleCases() []Heavy {
	full := Shape{Gateways: 1, Listeners: 2, Routes: 5000, RouteRules: 1, Rules: 2000}
	lost, hundred := full, full
	lost.Listeners = 1
	hundred.Listeners, hundred.Policies, hundred.Rules = 1, 100, 100
	equal := hundred
	equal.Routes = 500
	few := Shape{Gateways: 1, Listeners: 2, Routes: 3, RouteRules: 1, Policies: 4, Rules: 5}
	lose := func(s Shape) Object { return ownLimits(0, limits(many(s.Rules, "l", rates(5)))) }
	none := []func(Shape) []Object{}
	return sized([]Heavy{
		{
			What: "rules/all-lost", Name: "5,000 routes lose 2,000 rules each to a policy of their gateway",
			Full: lost, Want: reaches("RateLimitPolicy"), put: none, alike: lose, write: create(huge("overrides", 10)),
		},
		{
			What: "rules/class-over-all-lost", Name: "the class of a gateway is edited whose routes have lost 2,000 rules each",
			Full: lost, Want: nothing, put: []func(Shape) []Object{one(huge("overrides", 10))}, alike: lose, write: classEdit,
		},
		{
			What: "rules/overrides", Representative: true, Name: "a policy of 2,000 overrides is put on a gateway of 5,000 routes",
			Want: reaches("RateLimitPolicy"), write: create(huge("overrides", 10)),
		},
		{
			What: "rules/overrides-edited", Name: "a policy of 2,000 overrides of a gateway of 5,000 routes is edited in all of them",
			Want: removed, put: []func(Shape) []Object{own, one(huge("overrides", 10))}, write: update(huge("overrides", 10), huge("overrides", 11)),
		},
		{
			What: "rules/defaults-edited", Name: "a policy of 2,000 defaults of a gateway of 5,000 routes is edited in all of them",
			Want: reaches("RateLimitPolicy"), put: []func(Shape) []Object{own, one(huge("defaults", 10))}, write: update(huge("defaults", 10), huge("defaults", 11)),
		},
		{
			What: "rules/hundred-policies", Representative: true, Name: "a hundred policies of 100 rules are on a gateway of 5,000 routes, and another one comes",
			Full: hundred, Small: few, Want: reaches("RateLimitPolicy"), put: []func(Shape) []Object{own, crowded("pN-", "")}, write: create(huge("overrides", 10)),
		},
		{
			What: "rules/equal-policies", Name: "a hundred policies on one gateway say the same in 100 rules",
			Full: equal, Small: few, Want: reaches("RateLimitPolicy"), put: []func(Shape) []Object{own, crowded("same", "")}, write: create(huge("overrides", 10)),
		},
	}, full, Shape{Gateways: 1, Listeners: 2, Routes: 5, RouteRules: 2, Rules: 30}, own)
}

// atLimit is a condition whose cost is just below the limit (cel.Limit) with the
// rates of atLimitRates, and that is true.
const atLimit = "spec.limits.login.rates.all(a, spec.limits.login.rates.all(b, a.limit + b.limit >= 0))"

// atLimitRates is the number of rates for that.
const atLimitRates = 30

func manyRates() Object {
	return Object{"rates": list(atLimitRates, func(i int) Object { return Object{"limit": 100 + i, "window": "10s"} })}
}

// conditionCases are policies with expensive conditions.
func conditionCases() []Heavy {
	dear := func(route, own int) Object {
		return ownLimits(route, limits(Object{"login": manyRates(), "own": rates(own)}))
	}
	allDear := eachRoute(func(i int) Object { return dear(i, i) })
	with := func(name, when string) func(Shape) Object {
		return func(s Shape) Object {
			return gatewayLimits(0, name, "overrides", merged(limits(many(s.Rules, name, rates(10))), when))
		}
	}
	return sized([]Heavy{
		{
			What: "conditions/one", Name: "a condition at the cost limit is put on a gateway of 5,000 routes",
			Want: reaches("RateLimitPolicy"), write: create(with("dear", atLimit)),
		},
		{
			What: "conditions/hundred", Name: "a hundred conditions at the cost limit are on a gateway, and a route's policy is edited",
			Want: nothing, put: []func(Shape) []Object{allDear, crowded("pN-", atLimit)}, write: update(fixed(dear(0, 0)), fixed(dear(0, 1))),
		},
		{
			What: "conditions/hundred-class", Representative: true, Name: "a hundred conditions at the cost limit are on a gateway of 5,000 routes, and its class is edited",
			Want: nothing, put: []func(Shape) []Object{allDear, crowded("pN-", atLimit)}, write: classEdit,
		},
		{
			What: "conditions/failing", Name: "no condition of a hundred policies can be evaluated on 5,000 routes",
			Want: says("RateLimitPolicy infra/huge overrides it"),
			put: []func(Shape) []Object{
				eachRoute(func(i int) Object {
					return ownLimits(i, limits(Object{"login": Object{"rates": "none"}, "own": rates(i)}))
				}),
				crowded("pN-", "spec.limits.login.rates.exists(r, r.limit > 50)"),
			},
			write: create(huge("overrides", 10)),
		},
		{
			What: "conditions/long", Name: "a condition as long as a policy may be is put on a gateway of 5,000 routes",
			Want: denies(api.ReasonInvalid, "infra/long"), write: create(with("long", "true"+strings.Repeat(" && (spec.a == 1 || true)", 40_000))),
		},
	}, Shape{Gateways: 1, Listeners: 1, Routes: 5000, RouteRules: 1, Policies: 100, Rules: 100},
		Shape{Gateways: 1, Listeners: 2, Routes: 2, RouteRules: 1, Policies: 3, Rules: 2}, allDear)
}

// pairCases are policies of very many rules, which a naive implementation would
// compare in pairs.
func pairCases() []Heavy {
	auth := func(group, prefix string, value int) func(Shape) Object {
		return func(s Shape) Object {
			return Object{"rules": Object{group: many(s.Rules, prefix, Object{"priority": value})}}
		}
	}
	alternatives := func(value int) func(Shape) Object {
		return func(s Shape) Object { return ownPolicy(0, authKind, auth("authentication", "more", value)(s)) }
	}
	groups := func(group string) func(Shape) Object {
		return func(s Shape) Object {
			content := auth(group, "r", 1)(s)
			content["rules"].(Object)["callbacks"] = many(s.Rules, "c", Object{"a": 1})
			return policyOf(0, authKind, "groups", "defaults", merged(content, ""))
		}
	}
	items := func(s Shape, prefix string) Object {
		return Object{"items": list(s.Rules, func(i int) Object { return Object{"name": fmt.Sprintf("%s%04d", prefix, i), "value": i} })}
	}
	return sized([]Heavy{
		{
			What: "pairs/alternatives", Representative: true, Name: "2,000 alternatives of a route stand beside 2,000 overrides of its gateway, and are edited",
			Full:  Shape{Gateways: 1, Listeners: 2, Routes: 1, RouteRules: 1, Rules: 2000},
			Small: Shape{Gateways: 1, Listeners: 2, Routes: 1, RouteRules: 1, Rules: 10},
			Want:  says("rules.authentication.held0000"), write: update(alternatives(1), alternatives(2)),
			put: []func(Shape) []Object{one(alternatives(1)), one(func(s Shape) Object {
				return policyOf(0, authKind, "held", "overrides", merged(auth("authentication", "held", 1)(s), ""))
			})},
		},
		{
			What: "pairs/gate", Name: "a gate of a route's policy decides about 2,000 overrides of its gateway on 500 routes",
			Want: says("decides whether limits.l0000"), write: create(huge("overrides", 10)),
			put: []func(Shape) []Object{eachRoute(func(i int) Object {
				return ownLimits(i, parse(`{"limits":{"own":{"rates":[{"limit":%d,"window":"10s"}]}},"when":[{"predicate":"request.path == '/%d'"}]}`, i, i))
			})},
		},
		{
			What: "pairs/groups", Name: "2,000 rules of one group become those of another on 500 routes",
			Want: func(s Shape) Want {
				return Want{Says: fmt.Sprintf("changes the effective AuthPolicy on %d paths in 1 namespace (%d lose authentication)", s.Paths(), s.Paths())}
			},
			put: []func(Shape) []Object{one(groups("authentication")), eachRoute(func(i int) Object {
				return ownPolicy(i, authKind, parse(`{"rules":{"metadata":{"own%d":{"a":%d}}}}`, i, i))
			})},
			write: update(groups("authentication"), groups("authorization")),
		},
		{
			What: "pairs/lists", Name: "lists of 1,000 items of 500 routes are merged with one of 1,000 items of their gateway",
			Full:  Shape{Gateways: 1, Listeners: 1, Routes: 500, RouteRules: 1, Rules: 1000},
			Small: Shape{Gateways: 1, Listeners: 2, Routes: 2, RouteRules: 1, Rules: 800},
			Want:  says("spec.items: "), // by lists of another namespace below: a warning
			alike: func(s Shape) Object {
				return ownPolicy(0, listsKind, items(s, "route"))
			},
			write: create(func(s Shape) Object {
				content := items(s, "gateway")
				content["strategy"] = "patch"
				return policyOf(0, listsKind, "lists", "defaults", content)
			}),
		},
	}, Shape{Gateways: 1, Listeners: 1, Routes: 500, RouteRules: 1, Rules: 2000}, Shape{Gateways: 1, Listeners: 2, Routes: 2, RouteRules: 1, Rules: 10})
}

// optionCases use options of the administrator, and the maximum number of targets.
func optionCases() []Heavy {
	constraint := named(api.PolicyKind{Group: api.Group, Kind: "ClusterPolicyConstraint"}, "", "named", parse(
		`{"policyKind":{"group":"kuadrant.io","kind":"RateLimitPolicy"},"enforcement":"Deny","validations":[{"message":"limits stay below 1000",`+
			`"expression":"has(effective.limits) && effective.limits.all(name, l, l.rates.all(r, r.limit < 1000)) && path.size() > 0"}]}`))
	constraint["apiVersion"] = api.Group + "/v1alpha1"
	return []Heavy{
		{
			What: "options/blast-radius", Name: "a policy of 2,000 rules over 5,000 routes goes beyond what one write may change",
			Full:        Shape{Gateways: 1, Listeners: 2, Routes: 5000, RouteRules: 1, Rules: 2000},
			Small:       Shape{Gateways: 1, Listeners: 2, Routes: 5, RouteRules: 2, Rules: 30},
			BlastRadius: 10, Want: denies(api.ReasonBlastRadius, "more than the 10 allowed without acknowledgement"),
			put: []func(Shape) []Object{own}, write: create(huge("overrides", 10)),
		},
		{
			What: "options/constraint", Name: "a constraint is asked on 100,000 paths by a write that breaks it",
			Full:  Shape{Gateways: 1, Listeners: 20, Routes: 5000, RouteRules: 1},
			Small: Shape{Gateways: 1, Listeners: 3, Routes: 7, RouteRules: 2},
			Want:  denies(api.ReasonRequirementUnmet, "limits stay below 1000"),
			put: []func(Shape) []Object{one(fixed(constraint)), eachRoute(func(i int) Object {
				return ownLimits(i, limits(Object{"login": rates(20), "own": rates(i % 100)}))
			})},
			write: create(edge(5000)),
		},
		{
			What: "options/targets", Name: "a policy is put on 16 gateways of 64 listeners with 300 routes",
			Full:  Shape{Gateways: 16, Listeners: 64, Routes: 300, RouteRules: 1},
			Small: Shape{Gateways: 3, Listeners: 2, Routes: 4, RouteRules: 1},
			Want:  reaches("ListPolicy"),
			write: create(func(s Shape) Object {
				return named(listsKind, infra, "everywhere", Object{
					"targetRefs": list(s.Gateways, func(g int) Object { return reference(gatewayKind, crowdGateway(g)) }),
					"items":      list(10, func(i int) Object { return Object{"name": fmt.Sprintf("item%04d", i), "value": i} }),
				})
			}),
		},
	}
}

var listsKind = api.PolicyKind{Group: "policies.example.com", Kind: "ListPolicy"}

// listKind is a kind with a list that is merged by name, and whose schema allows
// at most 1,500 items.
func listKind(tb testing.TB) *policykind.Kind {
	tb.Helper()
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: listsKind.Group, Kind: listsKind.Kind, Class: api.Inherited,
		Targets:  api.ProfileTargets{Fields: []string{"targetRef", "targetRefs"}},
		Blocks:   api.ProfileBlocks{Defaults: []string{"defaults"}, Overrides: []string{"overrides"}},
		Strategy: api.ProfileStrategy{Allowed: []api.StrategyName{"patch"}, Field: "strategy"},
		Lists:    []api.KeyedList{{Path: "items", Key: "name"}},
	}, policykind.Label)
	require.NoError(tb, err)
	var schema apiextensionsv1.JSONSchemaProps
	require.NoError(tb, yaml.Unmarshal([]byte(`{type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {items: {
  type: array, maxItems: 1500, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name],
  items: {type: object, required: [name], properties: {name: {type: string}, value: {type: integer}}}}}}}}`), &schema))
	return k.WithSchema(policykind.PackSchema(&schema))
}
