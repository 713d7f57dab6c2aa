package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/worlds"
)

// SEMANTICS section 6: the outcome of each policy over two paths, r1 and r2.
func TestStates(t *testing.T) {
	base := docs(gatewayDoc("g", "istio", "http"), routeDoc("r1", "[{}]", "g"), routeDoc("r2", "[{}]", "g"))
	gw := func(spec string) string {
		return policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\n"+spec)
	}
	route := func(name, spec string) string {
		return policyDoc("Paint", "app", "of-"+name, "targetRefs: [{kind: HTTPRoute, name: "+name+"}]\n"+spec)
	}
	tests := map[string]struct {
		policies []string // the first is asked for
		want     api.State
		paths    api.PathCounts
	}{
		"every rule survives on every path": {
			[]string{gw("overrides: {a: 1}"), route("r1", "a: 2")}, api.Enforced, api.PathCounts{Total: 2, Enforced: 2},
		},
		"not every rule on every path": {
			[]string{gw("defaults: {a: 1}"), route("r1", "a: 2")}, api.PartiallyEnforced, api.PathCounts{Total: 2, Enforced: 1, Overridden: 1},
		},
		"some rules on one path, none on the other": {
			[]string{gw("defaults: {strategy: patch, a: 1, b: 1}"), route("r1", "a: 2"), route("r2", "a: 2\nb: 2")},
			api.PartiallyEnforced, api.PathCounts{Total: 2, PartiallyEnforced: 1, Overridden: 1},
		},
		"no rule on any path": {
			[]string{gw("defaults: {a: 1}"), route("r1", "a: 2"), route("r2", "b: 2")}, api.Overridden, api.PathCounts{Total: 2, Overridden: 2},
		},
		"no block took part anywhere": {
			[]string{gw("overrides: {when: 'has(spec.x)', a: 1}"), route("r1", "a: 2")}, api.Inactive, api.PathCounts{Total: 2, Inactive: 2},
		},
		"a condition that is met on one path: enforced": {
			[]string{gw("overrides: {when: 'has(spec.x)', a: 1}"), route("r1", "x: 2")}, api.Enforced, api.PathCounts{Total: 2, Enforced: 1, Inactive: 1},
		},
		"inactive here and overridden there": {
			[]string{gw("defaults: {when: 'has(spec.x)', a: 1}"), route("r1", "x: 2")}, api.Overridden, api.PathCounts{Total: 2, Overridden: 1, Inactive: 1},
		},
		"a silent block beside one that took part": {
			[]string{gw("defaults: {a: 1}\noverrides: {when: 'has(spec.x)', b: 1}")}, api.Enforced, api.PathCounts{Total: 2, Enforced: 2},
		},
		"a policy without a rule": {
			[]string{gw("strategy: patch"), route("r1", "a: 2")}, api.Enforced, api.PathCounts{Total: 2, Enforced: 2},
		},
		"equal values are lost": {
			[]string{gw("defaults: {a: 1}"), route("r1", "a: 1"), route("r2", "a: 1.0")}, api.Overridden, api.PathCounts{Total: 2, Overridden: 2},
		},
		"a lost default that the same policy's override wins back": {
			[]string{gw("defaults: {a: 1}\noverrides: {strategy: patch, a: 2}"), route("r1", "a: 3")}, api.Enforced, api.PathCounts{Total: 2, Enforced: 2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := outcomeOf(t, world(t, docs(append([]string{base}, test.policies...)...)), paintRef("infra", "p"))
			assert.Equal(t, test.want, out.State)
			assert.Equal(t, test.paths, out.Paths)
			assert.Equal(t, []api.Target{{Target: gatewayRef("g"), Accepted: true}}, out.Targets)
		})
	}
}

// SEMANTICS sections 3 and 6: what replaces the policies above it replaces those without
// rules, too. The gateway's policy of each row has none.
func TestStatesWithoutRules(t *testing.T) {
	base := docs(worlds.ProfileDoc("Swap", "strategy: {allowed: [atomic, patch], bareField: mergeType, by: lower}\njoinedLevels: [[Route, Rule]]"),
		gatewayDoc("g", "istio", "http"), routeDoc("r1", "[{name: x}]", "g"), routeDoc("r2", "[{}]", "g"),
		policyDoc("Swap", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]"))
	on := func(name, target, spec string) string {
		return policyDoc("Swap", "app", name, "targetRefs: ["+target+"]\n"+spec)
	}
	const r1, r2, x = "{kind: HTTPRoute, name: r1}", "{kind: HTTPRoute, name: r2}", "{kind: HTTPRoute, name: r1, sectionName: x}"
	of := func(name string) api.Ref {
		return api.Ref{Group: "example.com", Kind: "Swap", Namespace: "app", Name: name}
	}
	tests := map[string]struct {
		below []string
		want  api.State
		by    []api.PolicyCount
	}{
		"alone":                              {nil, api.Enforced, nil},
		"replaced on one path":               {[]string{on("a", r1, "a: 1")}, api.PartiallyEnforced, []api.PolicyCount{{Policy: of("a"), Paths: 1}}},
		"replaced on all":                    {[]string{on("a", r1+", "+r2, "a: 1")}, api.Overridden, []api.PolicyCount{{Policy: of("a"), Paths: 2}}},
		"by one without rules":               {[]string{on("a", r1, "")}, api.PartiallyEnforced, []api.PolicyCount{{Policy: of("a"), Paths: 1}}},
		"below one that is merged":           {[]string{on("a", r1, "mergeType: patch\na: 1")}, api.Enforced, nil},
		"by the one that does the same":      {[]string{on("a", r1, "a: 1"), on("b", x, "a: 2")}, api.PartiallyEnforced, []api.PolicyCount{{Policy: of("b"), Paths: 1}}},
		"past one of a level that is joined": {[]string{on("a", r1, "a: 1"), on("b", x, "mergeType: patch\na: 2")}, api.Enforced, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := outcomeOf(t, world(t, docs(append([]string{base}, test.below...)...)), api.Ref{Group: "example.com", Kind: "Swap", Namespace: "infra", Name: "p"})
			assert.Equal(t, test.want, out.State)
			assert.Equal(t, test.by, out.ReplacedBy)
		})
	}
}

func TestOutcomeCountsLossesByWinner(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r1", "[{}]", "g"), routeDoc("r2", "[{}, {}]", "g"),
		policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\ndefaults: {strategy: patch, a: 1, b: 1}"),
		policyDoc("Paint", "app", "one", "targetRefs: [{kind: HTTPRoute, name: r1}]\na: 2"),
		policyDoc("Paint", "app", "two", "targetRefs: [{kind: HTTPRoute, name: r2}]\na: 2\nunset: [b]"),
	))
	assert.Equal(t, api.Outcome{
		Policy: paintRef("infra", "p"), State: api.PartiallyEnforced,
		Paths:   api.PathCounts{Total: 3, PartiallyEnforced: 1, Overridden: 2},
		Targets: []api.Target{{Target: gatewayRef("g"), Accepted: true}},
		Lost: []api.LostCount{
			{Rule: "a", To: paintRef("app", "one"), Paths: 1}, {Rule: "a", To: paintRef("app", "two"), Paths: 2},
			{Rule: "b", To: paintRef("app", "two"), Paths: 2},
		},
	}, outcomeOf(t, v, paintRef("infra", "p")))
}

// States of policies that are on no path.
func TestStatesWithoutAPath(t *testing.T) {
	const class = "kind: GatewayClass\nmetadata: {name: istio}"
	const lonely = "HTTPRoute app/lonely is not attached to any Gateway: it has no parentRefs"
	tests := map[string]struct {
		spec    string
		want    api.State
		message string
		reasons []api.State // by target
	}{
		"it cannot be read":                      {"targetRefs: [{kind: HTTPRoute, name: r}]\noverrides: 1", api.Invalid, `spec.overrides: Invalid value: "number": must be an object`, []api.State{api.Invalid}},
		"no such target":                         {"targetRefs: [{kind: HTTPRoute, name: none}]", api.TargetNotFound, "HTTPRoute app/none does not exist", []api.State{api.TargetNotFound}},
		"no such section":                        {"targetRefs: [{kind: HTTPRoute, name: r, sectionName: none}]", api.TargetNotFound, "HTTPRoute app/r section none does not exist", []api.State{api.TargetNotFound}},
		"another namespace":                      {"targetRefs: [{kind: Gateway, name: g, namespace: infra}]", api.TargetNotFound, "a Paint can only target its own namespace", []api.State{api.TargetNotFound}},
		"a class":                                {"targetRefs: [{kind: GatewayClass, name: istio}]", api.TargetNotFound, "a namespaced Paint cannot target a GatewayClass", []api.State{api.TargetNotFound}},
		"no path goes through it":                {"targetRefs: [{kind: HTTPRoute, name: lonely}]", api.NoPath, lonely, []api.State{""}},
		"one of two targets exists":              {"targetRefs: [{kind: HTTPRoute, name: none}, {kind: HTTPRoute, name: r}]", api.Enforced, "", []api.State{api.TargetNotFound, ""}},
		"one target without a path, one missing": {"targetRefs: [{kind: HTTPRoute, name: none}, {kind: HTTPRoute, name: lonely}]", api.NoPath, lonely, []api.State{"", api.TargetNotFound}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(class, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), routeDoc("lonely", "[{}]"),
				policyDoc("Paint", "app", "p", test.spec+"\na: 1")))
			out := outcomeOf(t, v, paintRef("app", "p"))
			assert.Equal(t, test.want, out.State)
			assert.Equal(t, test.message, out.Message)
			var reasons []api.State
			for _, target := range out.Targets {
				reasons = append(reasons, target.Reason)
				assert.Equal(t, target.Reason == "", target.Accepted)
			}
			assert.Equal(t, test.reasons, reasons)
		})
	}
}

func TestTargetNotFoundGoesBeforeConflicted(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Label", "app", "a", "targetRefs: [{kind: HTTPRoute, name: r}]\nx: 1"),
		policyDoc("Label", "app", "b", "targetRefs: [{kind: HTTPRoute, name: r}, {kind: HTTPRoute, name: none}]\nx: 1")))
	out := outcomeOf(t, v, api.Ref{Group: "example.com", Kind: "Label", Namespace: "app", Name: "b"})
	assert.Equal(t, api.TargetNotFound, out.State)
	assert.Equal(t, "HTTPRoute app/none does not exist", out.Message)
}

func TestExists(t *testing.T) {
	v := world(t, docs("kind: GatewayClass\nmetadata: {name: istio}", gatewayDoc("g", "istio", "http"), routeDoc("r", "[{name: x}, {}]", "g"),
		worlds.ServiceDoc("app", "s", 80), worlds.SetDoc("infra", "s", "g", "http")))
	service := api.Ref{Kind: "Service", Namespace: "app", Name: "s"}
	set := api.Ref{Group: api.GatewayGroup, Kind: "ListenerSet", Namespace: "infra", Name: "s"}
	class := api.Ref{Group: api.GatewayGroup, Kind: "GatewayClass", Name: "istio"}
	for target, want := range map[policykind.Target]bool{
		{Ref: class}:                                                    true,
		{Ref: class, Section: "x"}:                                      false,
		{Ref: gatewayRef("g")}:                                          true,
		{Ref: gatewayRef("g"), Section: "http"}:                         true,
		{Ref: gatewayRef("g"), Section: "none"}:                         false,
		{Ref: gatewayRef("none")}:                                       false,
		{Ref: routeRef("r"), Section: "x"}:                              true,
		{Ref: routeRef("r"), Section: "y"}:                              false,
		{Ref: api.Ref{Kind: "Service", Namespace: "app", Name: "none"}}: false,
		{Ref: service}:                                                  true,
		{Ref: service, Section: "p80"}:                                  true,
		{Ref: service, Section: "p81"}:                                  false,
		{Ref: service, Port: 80}:                                        true,
		{Ref: service, Port: 81}:                                        false,
		{Ref: set}:                                                      true,
		{Ref: set, Section: "http"}:                                     true,
		{Ref: set, Section: "http", Port: 8080}:                         true,
		{Ref: set, Section: "http", Port: 81}:                           false,
		{Ref: set, Port: 8080}:                                          true,
		{Ref: set, Port: 81}:                                            false,
		{Ref: api.Ref{Kind: "Namespace", Name: "app"}}:                  true, // it need not be known
		{Ref: api.Ref{Kind: "Namespace", Name: "app"}, Section: "x"}:    false,
		{Ref: api.Ref{Group: "example.com", Kind: "Bucket", Name: "b"}}: true, // nothing is known against it
		{Ref: api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Name: "v"}, Virtual: true}: true,
		{Ref: gatewayRef(""), Selector: &policykind.Selector{}}:                            false, // it selected nothing
	} {
		assert.Equal(t, want, effective.Exists(v, new(policykind.Kind), target), "%s", target)
	}
}

// SEMANTICS section 5: rule-N is the name of an unnamed rule only where the profile says so.
func TestExistsUnnamedRule(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{name: x}, {}, {}, {name: rule-3}]", "g")))
	reads := policykind.Kind{PolicyProfileSpec: api.PolicyProfileSpec{Targets: api.ProfileTargets{UnnamedRules: true}}}
	for section, want := range map[string]struct{ byPosition, byName bool }{
		"x":      {true, true},
		"rule-1": {false, false}, // it has a name
		"rule-2": {true, false},
		"rule-3": {true, true}, // the name of the fourth
		"rule-4": {false, false},
		"rule-9": {false, false},
	} {
		target := policykind.Target{Ref: routeRef("r"), Section: section}
		assert.Equal(t, want.byPosition, effective.Exists(v, &reads, target), "%s, unnamed rules", section)
		assert.Equal(t, want.byName, effective.Exists(v, new(policykind.Kind), target), "%s", section)
	}
}

// The examples of GEP-713 as far as our paths go: to the routes.
func TestGEP713(t *testing.T) {
	gateways := []string{
		gatewayDoc("g1", "c", "http"), gatewayDoc("g2", "c", "http"),
		routeDoc("r1", "[{}]", "g1"), routeDoc("r2", "[{}]", "g1"), routeDoc("r3", "[{}]", "g2"), routeDoc("r4", "[{}]", "g2"),
	}
	onGateway := func(g, spec string) string { return "targetRefs: [{kind: Gateway, name: " + g + "}]\n" + spec }
	onRoute := func(r, spec string) string { return "targetRefs: [{kind: HTTPRoute, name: " + r + "}]\n" + spec }
	tests := map[string]struct {
		policies []string
		want     []string
		states   []api.State
	}{
		"example 2: defaults and overrides": {
			[]string{
				policyDoc("Paint", "infra", "p1", onGateway("g1", "color: red")), policyDoc("Paint", "app", "p2", onRoute("r1", "color: blue")),
				policyDoc("Paint", "infra", "p3", onGateway("g2", "overrides: {color: yellow}")), policyDoc("Paint", "app", "p4", onRoute("r4", "color: green")),
			},
			[]string{
				"Paint c g1/http r1#rule-1: color=blue p2/bare", "Paint c g1/http r2#rule-1: color=red p1/bare",
				"Paint c g2/http r3#rule-1: color=yellow p3/overrides", "Paint c g2/http r4#rule-1: color=yellow p3/overrides",
			},
			[]api.State{api.PartiallyEnforced, api.Enforced, api.Enforced, api.Overridden},
		},
		"example 3: merged specs": {
			[]string{
				policyDoc("Paint", "infra", "p1", onGateway("g1", "colors: {dark: brown, light: red}\nstrategy: atomic")),
				policyDoc("Paint", "app", "p2", onRoute("r1", "colors: {light: blue}")),
				policyDoc("Paint", "infra", "p3", onGateway("g2", "overrides: {colors: {light: yellow}, strategy: patch}")),
				policyDoc("Paint", "app", "p4", onRoute("r4", "colors: {dark: olive, light: green}")),
			},
			[]string{
				"Paint c g1/http r1#rule-1: colors.light=blue p2/bare",
				"Paint c g1/http r2#rule-1: colors.dark=brown p1/bare colors.light=red p1/bare",
				"Paint c g2/http r3#rule-1: colors.light=yellow p3/overrides",
				"Paint c g2/http r4#rule-1: colors.dark=olive p4/bare colors.light=yellow p3/overrides",
			},
			[]api.State{api.PartiallyEnforced, api.Enforced, api.Enforced, api.PartiallyEnforced},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(append(gateways, test.policies...)...))
			assert.Equal(t, test.want, rulesOf(walked(t, v, effective.Scope{All: true})))
			var states []api.State
			for _, ref := range []api.Ref{paintRef("infra", "p1"), paintRef("app", "p2"), paintRef("infra", "p3"), paintRef("app", "p4")} {
				states = append(states, outcomeOf(t, v, ref).State)
			}
			assert.Equal(t, test.states, states)
		})
	}
}

func TestAPI(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\noverrides: {strategy: patch, a: {b: 1}, c: null}"),
		policyDoc("Paint", "app", "q", "targetRefs: [{kind: HTTPRoute, name: r}]\na: {b: 2, d: 3}\nc: 4"),
	))
	all := walked(t, v, effective.Scope{All: true})
	assert.Len(t, all, 1)
	got := all[0].API()
	assert.Equal(t, all[0].Path.Elements(), got.Path)
	got.Path = nil
	assert.Equal(t, api.EffectivePolicy{
		PolicyKind: api.PolicyKind{Group: "example.com", Kind: "Paint"},
		Spec:       map[string]any{"a": map[string]any{"b": int64(1), "d": int64(3)}},
		Rules: []api.RuleOrigin{
			{Rule: "a.b", From: paintRef("infra", "p"), Block: "overrides"},
			{Rule: "a.d", From: paintRef("app", "q"), Block: "bare"},
			{Rule: "c", From: paintRef("infra", "p"), Block: "overrides"},
		},
		Policies: []api.PolicyOnPath{
			{Policy: paintRef("infra", "p"), State: api.Enforced},
			{Policy: paintRef("app", "q"), State: api.PartiallyEnforced, Lost: []api.LostRule{
				{Rule: "a.b", Block: "bare", To: paintRef("infra", "p"), ToBlock: "overrides"},
				{Rule: "c", Block: "bare", To: paintRef("infra", "p"), ToBlock: "overrides"},
			}},
		},
	}, got)
}

func TestTargetWithoutLevel(t *testing.T) {
	v := world(t, docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs]}\nlevels: [Gateway, Route]"),
		gatewayDoc("g", "c", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Probe", "infra", "p", "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\na: 1"),
		policyDoc("Probe", "infra", "q", "targetRefs: [{kind: Gateway, name: g}]\na: 1")))
	out := outcomeOf(t, v, probeRef("infra", "p"))
	assert.Equal(t, api.NoPath, out.State)
	assert.Equal(t, "policies of kind Probe are not supported at Gateway infra/g section http: supported levels: Gateway, Route", out.Message)
	assert.Equal(t, api.Enforced, outcomeOf(t, v, probeRef("infra", "q")).State)
}
