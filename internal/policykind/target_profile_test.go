package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func service(namespace, name string) api.Ref {
	return api.Ref{Kind: "Service", Namespace: namespace, Name: name}
}

// selecting returns a target with a label selector in the syntax of kubectl.
func selecting(ref api.Ref, text string, edit ...func(*policykind.Selector)) policykind.Target {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	out := policykind.Target{Ref: ref, Selector: &policykind.Selector{Labels: selector}}
	for _, e := range edit {
		e(out.Selector)
	}
	return out
}

func anyNamespace(s *policykind.Selector) { s.AnyNamespace = true }

func inNamespaces(text string) func(*policykind.Selector) {
	return func(s *policykind.Selector) { s.Namespaces, _ = labels.Parse(text) }
}

// assertTargets compares targets with Target.Same, since equal selectors may differ in
// memory. Of the message of a refused target, want has a part.
func assertTargets(t *testing.T, want, got []policykind.Target) {
	t.Helper()
	require.Len(t, got, len(want), "%v", got)
	for i := range want {
		if text := got[i].Refused; text != "" && want[i].Refused != "" {
			assert.Contains(t, text, want[i].Refused)
			messages.Golden(t, text)
			want[i].Refused = text
		}
		assert.True(t, want[i].Same(got[i]), "%v instead of %v\n%+v", got[i], want[i], got[i])
	}
}

// SEMANTICS section 5, and the targets of a profile.
func TestReadTargetsByProfile(t *testing.T) {
	const (
		selectors  = "targets: {selectors: [targetSelectors], namespaces: free}"
		gateways   = "kind: Gateway, "
		elsewhere  = "own namespace"
		infraClass = "targets: {classFrom: [infra, ops]}"
		service80  = "targetRef: {kind: Service, name: s"
	)
	route, gw, class := ref("HTTPRoute", "app", "r"), ref("Gateway", "app", "g"), ref("GatewayClass", "", "istio")
	tests := map[string]struct {
		profile, spec string
		want          []policykind.Target
	}{
		"a group that is left out is Gateway API's": {
			"{}", "targetRef: {kind: HTTPRoute, name: r}", []policykind.Target{{Ref: route}},
		},
		"its own namespace, written out": {
			"{}", "targetRefs: [{kind: HTTPRoute, name: r, namespace: app}, {kind: HTTPRoute, name: r}]", []policykind.Target{{Ref: route}},
		},
		"none, where other objects attach policies": {
			"attachment: {extensionRef: true}", "a: 1", nil,
		},
		"a kind that is left out is the only one": {
			"targets: {fields: [targetRef], kinds: [{group: '', kind: Service}]}", "targetRef: {name: s}", []policykind.Target{{Ref: service("app", "s")}},
		},
		"or null": {
			"{}", "targetRef: {group: null, kind: HTTPRoute, name: r}", []policykind.Target{{Ref: route}},
		},
		"a Service's is the core": {
			"{}", "targetRef: {kind: Service, name: s}", []policykind.Target{{Ref: service("app", "s")}},
		},
		"the core, written out": {
			"{}", "targetRef: {group: core, kind: Service, name: s}", []policykind.Target{{Ref: service("app", "s")}},
		},
		"a Service of Gateway API is another kind": {
			"{}", "targetRef: {group: gateway.networking.k8s.io, kind: Service, name: s}", []policykind.Target{{Ref: ref("Service", "app", "s")}},
		},
		"a version behind the group, as the GEP has it": {
			"{}", "targetRef: {group: gateway.networking.k8s.io/v1, kind: Gateway, name: g}", []policykind.Target{{Ref: gw}},
		},
		"fields that lie deeper": {
			"targets: {fields: [policy.targetRef]}", "policy: {targetRef: {kind: Gateway, name: g}}\ntargetRef: {kind: HTTPRoute, name: r}", []policykind.Target{{Ref: gw}},
		},
		"both fields at once": {
			"{}", "targetRef: {kind: HTTPRoute, name: r}\ntargetRefs: [{kind: Gateway, name: g}, {kind: HTTPRoute, name: r}]", []policykind.Target{{Ref: route}, {Ref: gw}},
		},
		"one object and a section of it are two": {
			"{}", "targetRefs: [{kind: Gateway, name: g}, {kind: Gateway, name: g, sectionName: http}, {kind: Gateway, name: g, port: 80}]",
			[]policykind.Target{{Ref: gw}, {Ref: gw, Section: "http"}, {Ref: gw, Port: 80}},
		},
		"several sections at once": {
			"{}", "targetRef: {kind: Gateway, name: g, sectionNames: [http, https]}", []policykind.Target{{Ref: gw, Section: "http"}, {Ref: gw, Section: "https"}},
		},
		"none of them is the whole object": {
			"{}", "targetRef: {kind: Gateway, name: g, sectionNames: []}", []policykind.Target{{Ref: gw}},
		},

		"a selector inside a targetRef, as the GEP has it": {
			"{}", "targetRefs: [{group: gateway.networking.k8s.io/v1, kind: Gateway, selector: {matchLabels: {env: production}}}]",
			[]policykind.Target{selecting(ref("Gateway", "app", ""), "env=production")},
		},
		"its expressions": {
			"{}", "targetRefs: [{kind: Gateway, selector: {matchExpressions: [{key: env, operator: In, values: [a, b]}]}}]",
			[]policykind.Target{selecting(ref("Gateway", "app", ""), "env in (a,b)")},
		},
		"an empty one selects all": {
			"{}", "targetRefs: [{kind: Gateway, selector: {}}]", []policykind.Target{selecting(ref("Gateway", "app", ""), "")},
		},
		"a name goes before a selector": {
			"{}", "targetRefs: [{kind: Gateway, name: g, selector: {matchLabels: {a: b}}}]", []policykind.Target{{Ref: gw}},
		},
		"a selector in a field of its own": {
			selectors, "targetSelectors: [{" + gateways + "matchLabels: {env: a}, matchExpressions: [{key: old, operator: DoesNotExist}]}]",
			[]policykind.Target{selecting(ref("Gateway", "app", ""), "env=a,!old")},
		},
		"one that says nothing of labels selects all": {
			selectors, "targetSelectors: [{kind: HTTPRoute}]", []policykind.Target{selecting(ref("HTTPRoute", "app", ""), "")},
		},
		"two selectors are two targets, the same one is one": {
			selectors, "targetSelectors: [{" + gateways + "matchLabels: {a: b}}, {" + gateways + "matchLabels: {a: c}}, {" + gateways + "matchLabels: {a: b}}]",
			[]policykind.Target{selecting(ref("Gateway", "app", ""), "a=b"), selecting(ref("Gateway", "app", ""), "a=c")},
		},
		"beside a reference": {
			selectors, "targetRef: {kind: HTTPRoute, name: r}\ntargetSelectors: [{" + gateways + "matchLabels: {a: b}, sectionName: http}]",
			[]policykind.Target{{Ref: route}, func() policykind.Target {
				out := selecting(ref("Gateway", "app", ""), "a=b")
				out.Section = "http"
				return out
			}()},
		},
		"namespaces from Same": {
			selectors, "targetSelectors: [{" + gateways + "matchLabels: {a: b}, namespaces: {from: Same}}]",
			[]policykind.Target{selecting(ref("Gateway", "app", ""), "a=b")},
		},
		"namespaces from All": {
			selectors, "targetSelectors: [{" + gateways + "matchLabels: {a: b}, namespaces: {from: All}}]",
			[]policykind.Target{selecting(ref("Gateway", "", ""), "a=b", anyNamespace)},
		},
		"namespaces from a selector": {
			selectors, "targetSelectors: [{" + gateways + "matchLabels: {a: b}, namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}]",
			[]policykind.Target{selecting(ref("Gateway", "", ""), "a=b", inNamespaces("team=red"))},
		},
		"namespaces from an empty selector are all": {
			selectors, "targetSelectors: [{" + gateways + "matchLabels: {a: b}, namespaces: {from: Selector, selector: {}}}]",
			[]policykind.Target{selecting(ref("Gateway", "", ""), "a=b", inNamespaces(""))},
		},
		"a selector does not ask where All is": {
			selectors, "targetSelectors: [{" + gateways + "matchLabels: {a: b}, namespaces: {from: All, selector: {matchLabels: {team: red}}}}]",
			[]policykind.Target{selecting(ref("Gateway", "", ""), "a=b", anyNamespace)},
		},
		"all namespaces without leave are refused": {
			"targets: {selectors: [targetSelectors]}", "targetSelectors: [{" + gateways + "matchLabels: {a: b}, namespaces: {from: All}}]",
			[]policykind.Target{func() policykind.Target {
				out := selecting(ref("Gateway", "", ""), "a=b", anyNamespace)
				out.Refused = elsewhere
				return out
			}()},
		},
		"and wait for grants where a grant allows": {
			"targets: {selectors: [targetSelectors], namespaces: referenceGrant}", "targetSelectors: [{" + gateways + "matchLabels: {a: b}, namespaces: {from: All}}]",
			[]policykind.Target{func() policykind.Target {
				out := selecting(ref("Gateway", "", ""), "a=b", anyNamespace)
				out.Grant = true
				return out
			}()},
		},

		"another namespace by grant": {
			"targets: {namespaces: referenceGrant}", service80 + ", namespace: shop}", []policykind.Target{{Ref: service("shop", "s"), Grant: true}},
		},
		"one's own needs none": {
			"targets: {namespaces: referenceGrant}", service80 + ", namespace: app}", []policykind.Target{{Ref: service("app", "s")}},
		},
		"another namespace for its own clients": {
			"targets: {namespaces: consumer}", service80 + ", namespace: shop}", []policykind.Target{{Ref: service("shop", "s"), Consumer: true}},
		},
		"one's own is no consumer": {
			"targets: {namespaces: consumer}", service80 + "}", []policykind.Target{{Ref: service("app", "s")}},
		},
		"another namespace freely": {
			"targets: {namespaces: free}", service80 + ", namespace: shop}", []policykind.Target{{Ref: service("shop", "s")}},
		},
		"another namespace not at all": {
			"targets: {namespaces: own}", service80 + ", namespace: shop}", []policykind.Target{{Ref: service("shop", "s"), Refused: elsewhere}},
		},

		"the policy's namespace, in lower case as the 2023 text has it": {
			"{}", "targetRef: {group: '', kind: namespace, name: app}", []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "app"}}},
		},
		"its group left out": {
			"{}", "targetRef: {kind: namespace, name: app}", []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "app"}}},
		},
		"its kind allowed": {
			"targets: {kinds: [{group: '', kind: Namespace}]}", "targetRef: {kind: namespace, name: app}", []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "app"}}},
		},
		"a Namespace of another group is no namespace": {
			"{}", "targetRef: {group: example.com, kind: Namespace, name: infra}", []policykind.Target{{Ref: api.Ref{Group: "example.com", Kind: "Namespace", Namespace: "app", Name: "infra"}}},
		},
		"another namespace as a target is refused": {
			"{}", "targetRef: {kind: Namespace, name: infra}", []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "infra"}, Refused: elsewhere}},
		},
		"no grant is for a namespace": {
			"targets: {namespaces: referenceGrant}", "targetRef: {kind: Namespace, name: infra}", []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "infra"}, Refused: elsewhere}},
		},
		"nor are its clients": {
			"targets: {namespaces: consumer}", "targetRef: {kind: Namespace, name: infra}", []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "infra"}, Refused: elsewhere}},
		},
		"unless the profile says free": {
			"targets: {namespaces: free}", "targetRef: {kind: Namespace, name: infra}", []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "infra"}}},
		},

		"a GatewayClass from a namespace that may": {
			"targets: {classFrom: [infra, app]}", "targetRef: {kind: GatewayClass, name: istio}", []policykind.Target{{Ref: class}},
		},
		"from any": {
			"targets: {classFrom: ['*']}", "targetRef: {kind: GatewayClass, name: istio, namespace: app}", []policykind.Target{{Ref: class}},
		},
		"from none, as by default": {
			"{}", "targetRef: {kind: GatewayClass, name: istio}", []policykind.Target{{Ref: class, Refused: "GatewayClass"}},
		},
		"from one that may not": {
			infraClass, "targetRef: {kind: GatewayClass, name: istio}",
			[]policykind.Target{{Ref: class, Refused: "infra, ops"}},
		},
		"the leave for namespaces is none for a class": {
			"targets: {namespaces: free}", "targetRef: {kind: GatewayClass, name: istio}",
			[]policykind.Target{{Ref: class, Refused: "GatewayClass"}},
		},

		"a port": {
			"{}", service80 + ", port: 80}", []policykind.Target{{Ref: service("app", "s"), Port: 80}},
		},
		"the largest port": {
			"{}", service80 + ", port: 65535}", []policykind.Target{{Ref: service("app", "s"), Port: 65535}},
		},
		"a section that is a port's name": {
			"targets: {kinds: [{group: '', kind: Service, section: PortName}]}", service80 + ", sectionName: http}", []policykind.Target{{Ref: service("app", "s"), Section: "http"}},
		},
		"a section that is a port's number": {
			"targets: {kinds: [{group: '', kind: Service, section: PortNumber}]}", service80 + ", sectionName: '8080'}", []policykind.Target{{Ref: service("app", "s"), Port: 8080}},
		},
		"a virtual kind": {
			"targets: {kinds: [{group: example.com, kind: Database, virtual: true}]}", "targetRef: {group: example.com, kind: Database, name: d}",
			[]policykind.Target{{Ref: api.Ref{Group: "example.com", Kind: "Database", Namespace: "app", Name: "d"}, Virtual: true}},
		},
		"what is said of a kind goes before what is said of all": {
			"targets: {kinds: [{group: '*', kind: '*', section: None}, {group: example.com, kind: '*', section: None}, {group: example.com, kind: Database, virtual: true}]}",
			"targetRef: {group: example.com, kind: Database, name: d, sectionName: x}",
			[]policykind.Target{{Ref: api.Ref{Group: "example.com", Kind: "Database", Namespace: "app", Name: "d"}, Section: "x", Virtual: true}},
		},
		"wherever it stands": {
			"targets: {kinds: [{group: example.com, kind: Database}, {group: '*', kind: '*', section: None}]}",
			"targetRef: {group: example.com, kind: Database, name: d, sectionName: x}",
			[]policykind.Target{{Ref: api.Ref{Group: "example.com", Kind: "Database", Namespace: "app", Name: "d"}, Section: "x"}},
		},
		"of two that are for all, the first": {
			"targets: {kinds: [{group: example.com, kind: '*'}, {group: '*', kind: '*', section: None}]}",
			"targetRef: {group: example.com, kind: Database, name: d, sectionName: x}",
			[]policykind.Target{{Ref: api.Ref{Group: "example.com", Kind: "Database", Namespace: "app", Name: "d"}, Section: "x"}},
		},
		"any kind of a group": {
			"targets: {kinds: [{group: gateway.networking.k8s.io, kind: '*'}]}", "targetRef: {kind: TCPRoute, name: r}", []policykind.Target{{Ref: ref("TCPRoute", "app", "r")}},
		},
		"a kind of any group": {
			"targets: {kinds: [{group: '*', kind: Backend}]}", "targetRef: {group: example.com, kind: Backend, name: b}",
			[]policykind.Target{{Ref: api.Ref{Group: "example.com", Kind: "Backend", Namespace: "app", Name: "b"}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, mustCompile(t, test.profile), test.spec)
			require.NoError(t, p.Invalid)
			assertTargets(t, test.want, p.Targets)
		})
	}
}

// A policy without a namespace needs no permission for other namespaces.
func TestTargetsOfClusterScopedPolicies(t *testing.T) {
	k := mustCompile(t, "targets: {selectors: [targetSelectors]}")
	p := k.Read(object(t, `
metadata: {name: p}
spec:
  targetRefs: [{kind: GatewayClass, name: istio}, {kind: Gateway, namespace: infra, name: g}, {kind: Namespace, name: app}]
  targetSelectors: [{kind: HTTPRoute, matchLabels: {a: b}, namespaces: {from: All}}]
`), created)
	require.NoError(t, p.Invalid)
	assertTargets(t, []policykind.Target{
		{Ref: ref("GatewayClass", "", "istio")}, {Ref: ref("Gateway", "infra", "g")}, {Ref: api.Ref{Kind: "Namespace", Name: "app"}},
		selecting(ref("HTTPRoute", "", ""), "a=b", anyNamespace),
	}, p.Targets)
}

func TestReadInvalidTargetsByProfile(t *testing.T) {
	tests := tables.Read[map[string]struct{ Profile, Spec, Want string }](t, "testdata/tables/read-invalid-targets-by-profile.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{test.Want}, messages.Fields(t, spec(t, mustCompile(t, test.Profile), test.Spec).Invalid))
		})
	}
}

// Implicit targets, and policies that select workloads.
func TestPoliciesWithoutATarget(t *testing.T) {
	const (
		istio  = "targets: {fields: [targetRefs], workloads: [selector, deep.selector], implicit: {meshNamespace: istio-system}}"
		unread = "spec.selector"
	)
	mesh := []policykind.Target{{Ref: api.Ref{Kind: "Mesh"}}}
	app := []policykind.Target{{Ref: api.Ref{Kind: "Namespace", Name: "app"}}}
	tests := map[string]struct {
		profile, namespace, spec string
		want                     []policykind.Target
		unread                   string
	}{
		"in the root namespace it is the mesh's":       {istio, "istio-system", "{}", mesh, ""},
		"in any other the namespace's":                 {istio, "app", "{}", app, ""},
		"without a namespace it is the mesh's":         {istio, "", "{}", mesh, ""},
		"an empty list is no target":                   {istio, "app", "{targetRefs: []}", app, ""},
		"without a root namespace it is its own":       {"targets: {fields: [], implicit: {}}", "app", "{}", app, ""},
		"a target goes before the namespace":           {istio, "istio-system", "{targetRefs: [{kind: Service, name: s}]}", []policykind.Target{{Ref: service("istio-system", "s")}}, ""},
		"one for workloads is not for the namespace":   {istio, "app", "{selector: {matchLabels: {a: b}}}", nil, unread},
		"nor for the mesh":                             {istio, "istio-system", "{selector: {matchLabels: {a: b}}}", nil, unread},
		"a null selector is none":                      {istio, "app", "{selector: null}", app, ""},
		"a selector that lies deeper":                  {istio, "app", "{deep: {selector: {}}}", nil, "spec.deep.selector"},
		"workloads in a kind that needs a target":      {"targets: {workloads: [selector]}", "app", "{selector: {}}", nil, unread},
		"Pods by label are workloads":                  {istio, "app", "{targetRefs: [{group: '', kind: Pod, selector: {matchLabels: {a: b}}}]}", nil, "spec.targetRefs[0]"},
		"workloads beside a target do not hide either": {istio, "app", "{selector: {}, targetRefs: [{kind: Service, name: s}]}", []policykind.Target{{Ref: service("app", "s")}}, unread},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := map[string]any{"metadata": map[string]any{"namespace": test.namespace, "name": "p"}, "spec": object(t, test.spec)}
			p := mustCompile(t, test.profile).Read(o, created)
			require.NoError(t, p.Invalid)
			assertTargets(t, test.want, p.Targets)
			assert.Equal(t, test.unread != "", p.Unread != "")
			assert.Contains(t, p.Unread, test.unread)
			if p.Unread != "" {
				messages.Golden(t, p.Unread)
			}
			assert.Empty(t, blocksOf(p), "target fields are not content")
		})
	}
	t.Run("a target that cannot be read is no reason for the whole namespace", func(t *testing.T) {
		p := spec(t, mustCompile(t, istio), "targetRefs: [{kind: Service}]")
		require.Error(t, p.Invalid)
		assert.Empty(t, p.Targets)
	})
}

func TestSelectorTargetString(t *testing.T) {
	gw := ref("Gateway", "app", "")
	tests := map[string]policykind.Target{
		"Gateway with a=b":                           selecting(gw, "a=b"),
		"Gateway with any labels":                    selecting(gw, ""),
		"Gateway with a=b in any namespace":          selecting(gw, "a=b", anyNamespace),
		"Gateway with a=b in namespaces with team=x": selecting(gw, "a=b", inNamespaces("team=x")),
		"HTTPRoute app/r":                            {Ref: ref("HTTPRoute", "app", "r")},
		"Service app/s port 80":                      {Ref: service("app", "s"), Port: 80},
		"Gateway app/g section http port 80":         {Ref: ref("Gateway", "app", "g"), Section: "http", Port: 80},
		"GatewayClass istio":                         {Ref: ref("GatewayClass", "", "istio")},
	}
	for want, target := range tests {
		assert.Equal(t, want, target.String())
	}
	assert.True(t, policykind.Target{}.Whole())
	assert.False(t, policykind.Target{Section: "a"}.Whole())
	assert.False(t, policykind.Target{Port: 80}.Whole())
}

// Targets differ in any field.
func TestTargetSame(t *testing.T) {
	same := func(edit func(*policykind.Target)) bool {
		a := selecting(ref("Gateway", "app", ""), "a=b")
		b := selecting(ref("Gateway", "app", ""), "a=b")
		edit(&b)
		assert.Equal(t, a.Same(b), b.Same(a))
		return a.Same(b)
	}
	assert.True(t, same(func(*policykind.Target) {}), "selectors are compared by what they say")
	for name, edit := range map[string]func(*policykind.Target){
		"name":          func(t *policykind.Target) { t.Ref.Name = "x" },
		"section":       func(t *policykind.Target) { t.Section = "x" },
		"port":          func(t *policykind.Target) { t.Port = 1 },
		"no selector":   func(t *policykind.Target) { t.Selector = nil },
		"selector":      func(t *policykind.Target) { *t = selecting(t.Ref, "a=c") },
		"any namespace": func(t *policykind.Target) { t.Selector.AnyNamespace = true },
		"namespaces":    func(t *policykind.Target) { t.Selector.Namespaces, _ = labels.Parse("a=b") },
		"virtual":       func(t *policykind.Target) { t.Virtual = true },
		"grant":         func(t *policykind.Target) { t.Grant = true },
		"consumer":      func(t *policykind.Target) { t.Consumer = true },
		"refused":       func(t *policykind.Target) { t.Refused = "x" },
	} {
		assert.False(t, same(edit), name)
	}
}
