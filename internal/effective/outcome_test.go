package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/tables"
	"overrule.dev/overrule/test/worlds"
)

// SEMANTICS section 6: the outcome of each policy over two paths, r1 and r2.
func TestStates(t *testing.T) {
	base := docs(gatewayDoc("g", "istio", "http"), routeDoc("r1", "[{}]", "g"), routeDoc("r2", "[{}]", "g"))
	tests := tables.Read[map[string]struct {
		Gateway, R1, R2 string // specs of policies on these
		Want            api.State
		Paths           api.PathCounts
	}](t, "testdata/tables/states.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			policies := policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\n"+test.Gateway)
			for name, spec := range map[string]string{"r1": test.R1, "r2": test.R2} {
				if spec != "" {
					policies = docs(policies, policyDoc("Paint", "app", "of-"+name, "targetRefs: [{kind: HTTPRoute, name: "+name+"}]\n"+spec))
				}
			}
			out := outcomeOf(t, world(t, docs(base, policies)), paintRef("infra", "p"))
			assert.Equal(t, test.Want, out.State)
			assert.Equal(t, test.Paths, out.Paths)
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
	tests := tables.Read[map[string]struct {
		Spec    string
		Want    api.State
		Message string
		Reasons []api.State // by target
	}](t, "testdata/tables/states-without-a-path.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(class, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), routeDoc("lonely", "[{}]"),
				policyDoc("Paint", "app", "p", test.Spec+"\na: 1")))
			out := outcomeOf(t, v, paintRef("app", "p"))
			assert.Equal(t, test.Want, out.State)
			assert.Equal(t, test.Message, out.Message)
			var reasons []api.State
			for _, target := range out.Targets {
				reasons = append(reasons, target.Reason)
				assert.Equal(t, target.Reason == "", target.Accepted)
			}
			assert.Equal(t, test.Reasons, reasons)
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

func TestAPI(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\noverrides: {strategy: patch, a: {b: 1}, c: null}"),
		policyDoc("Paint", "app", "q", "targetRefs: [{kind: HTTPRoute, name: r}]\na: {b: 2, d: 3}\nc: 4"),
	))
	all := walked(t, v, effective.Scope{All: true})
	assert.Len(t, all, 1)
	got := explain.Item(all[0])
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
