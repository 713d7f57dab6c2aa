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

// tableTarget is a target of a table, and the labels of its selector, in the syntax of kubectl.
type tableTarget struct {
	policykind.Target
	Labels, Namespaces *string
	Name               string
	AnyNamespace       bool
}

func targetsOf(all []tableTarget) []policykind.Target {
	var out []policykind.Target
	for _, w := range all {
		target := w.Target
		if w.Labels != nil {
			target.Selector = selecting(w.Ref, *w.Labels).Selector
			target.Selector.AnyNamespace, target.Selector.Name = w.AnyNamespace, w.Name
		}
		if w.Namespaces != nil {
			inNamespaces(*w.Namespaces)(target.Selector)
		}
		out = append(out, target)
	}
	return out
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
	tests := tables.Read[map[string]struct {
		Profile, Spec string
		Want          []tableTarget
	}](t, "testdata/tables/targets.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, mustCompile(t, test.Profile), test.Spec)
			require.NoError(t, p.Invalid)
			assertTargets(t, targetsOf(test.Want), p.Targets)
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
	tests := tables.Read[map[string]struct {
		Profile, Namespace, Spec string
		Want                     []tableTarget
		Unread                   string
	}](t, "testdata/tables/implicit-targets.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := map[string]any{"metadata": map[string]any{"namespace": test.Namespace, "name": "p"}, "spec": object(t, test.Spec)}
			p := mustCompile(t, test.Profile).Read(o, created)
			require.NoError(t, p.Invalid)
			assertTargets(t, targetsOf(test.Want), p.Targets)
			assert.Equal(t, test.Unread != "", p.Unread != "")
			assert.Contains(t, p.Unread, test.Unread)
			if p.Unread != "" {
				messages.Golden(t, p.Unread)
			}
			assert.Empty(t, blocksOf(p), "target fields are not content")
		})
	}
	t.Run("a target that cannot be read is no reason for the whole namespace", func(t *testing.T) {
		p := spec(t, mustCompile(t, "targets: {fields: [targetRefs], workloads: [selector], implicit: {meshNamespace: istio-system}}"), "targetRefs: [{kind: Service}]")
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
