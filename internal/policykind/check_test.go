package policykind_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
)

// paintSchema is the schema of a kind with blocks, named rules, lists, and fields of any
// type.
const paintSchema = `
type: object
properties:
  spec:
    type: object
    properties:
      targetRef: {type: object, properties: {name: {type: string}}}
      targetRefs: {type: array, items: {type: object, properties: {name: {type: string}}}}
      priority: {type: integer}
      mode: {type: string}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      embedded: {type: object, x-kubernetes-embedded-resource: true}
      open: {type: object, additionalProperties: true}
      closed: {type: object, additionalProperties: false}
      bare: {type: object, properties: {only: {type: string}}}
      limits:
        type: object
        additionalProperties: {type: object, properties: {rates: {type: array, items: {type: object, properties: {name: {type: string}, limit: {type: integer}}}}}}
      defaults: &block
        type: object
        properties:
          when: {type: string}
          strategy: {type: string}
          rules: {type: object, properties: {a: {type: object, additionalProperties: {type: string}}, b: {type: object, properties: {x: {type: string}}}}}
      overrides: *block
      default: {type: object, properties: {colors: {type: object, properties: {red: {type: string}}}}}
`

func schema(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := new(apiextensionsv1.JSONSchemaProps)
	unmarshalStrict(t, text, out)
	return out
}

func TestCheck(t *testing.T) {
	patch := api.ProfileStrategy{Allowed: []api.StrategyName{"patch"}}
	for sentence, c := range map[string]struct {
		edit func(*api.PolicyProfileSpec)
		want []string
	}{
		"targets": {func(p *api.PolicyProfileSpec) {
			p.Targets.Fields, p.Targets.Selectors, p.Targets.Workloads = []string{"targetRef", "targetRfs"}, []string{"selectors"}, []string{"workload"}
		}, []string{
			"spec.targets.fields[1]: spec.targetRfs",
			"spec.targets.selectors[0]: spec.selectors",
			"spec.targets.workloads[0]: spec.workload",
		}},
		"a target below a list": {func(p *api.PolicyProfileSpec) { p.Targets.Fields = []string{"targetRefs.name"} },
			[]string{"spec.targets.fields[0]: spec.targetRefs.name"}},
		"blocks": {func(p *api.PolicyProfileSpec) {
			p.Blocks = api.ProfileBlocks{
				Defaults: []string{"defaults", "defalts"}, Overrides: []string{"overides"}, When: "iff",
				Bare: &api.BareBlock{Field: "override", Overrides: []string{"yes"}},
			}
		}, []string{
			"spec.blocks.defaults[1]: spec.defalts",
			"spec.blocks.overrides[0]: spec.overides",
			"spec.blocks.when: spec.iff",
			"spec.blocks.bare.field: spec.override",
		}},
		"blocks that are all there": {func(p *api.PolicyProfileSpec) {
			p.Blocks = api.ProfileBlocks{
				Defaults: []string{"defaults"}, Overrides: []string{"overrides"}, When: "when",
				Bare: &api.BareBlock{Field: "mode", Overrides: []string{"override"}},
			}
			p.Strategy = api.ProfileStrategy{Field: "strategy", BareField: "mode"}
		}, nil},
		"a condition beside the bare rules": {func(p *api.PolicyProfileSpec) { p.Blocks = api.ProfileBlocks{When: "mode"} }, nil},
		"a strategy that is in no block, and one that is only there": {func(p *api.PolicyProfileSpec) {
			p.Blocks = api.ProfileBlocks{Defaults: []string{"defaults"}}
			p.Strategy = api.ProfileStrategy{Field: "mode", BareField: "strategy"}
		}, []string{
			"spec.strategy.field: spec.defaults.mode",
			"spec.strategy.bareField: spec.strategy",
		}},
		"rules below any block, or bare": {func(p *api.PolicyProfileSpec) {
			p.Blocks = api.ProfileBlocks{Defaults: []string{"default", "defaults"}}
			p.Rules = []string{"limits.*", "rules.a.*", "colors.*", "rules.*.x", "limitz.*", "rules.c", "limits.*.burst", "rules.a.b.c"}
			p.Gates, p.Alternatives = []string{"when", "whem"}, []string{"rules.a", "rules.z"}
		}, []string{
			"spec.rules[4]: spec.limitz.*",
			"spec.rules[5]: spec.rules.c",
			"spec.rules[6]: spec.limits.*.burst",
			"spec.rules[7]: spec.rules.a.b.c",
			"spec.gates[1]: spec.whem",
			"spec.alternatives[1]: spec.rules.z",
		}},
		"content and what is relative to it": {func(p *api.PolicyProfileSpec) {
			p.Content, p.Ignore, p.Unset, p.Rules = "bare", []string{"only", "mode"}, []string{"mode", "unset"}, []string{"only", "limits.*"}
		}, []string{
			"spec.ignore[1]: spec.bare.mode",
			"spec.unset[1]: spec.unset",
			"spec.rules[1]: spec.bare.limits.*",
		}},
		"content that is not there": {func(p *api.PolicyProfileSpec) { p.Content = "default.conf" },
			[]string{"spec.content: spec.default.conf"}},
		"where anything goes": {func(p *api.PolicyProfileSpec) {
			p.Rules = []string{"free.a.b.c", "embedded.kind.*", "open.a.b", "closed.a"}
		}, []string{"spec.rules[3]: spec.closed.a"}},
		"lists that are taken apart, and others": {func(p *api.PolicyProfileSpec) {
			p.Strategy = patch
			p.Lists = []api.KeyedList{{Path: "limits.*.rates", Key: "name"}, {Path: "targetRefs", Key: "key"}, {Path: "rates", Key: "name"}}
			p.Whole = []string{"limits.a.rates.*.limit", "limits.a.rates.first.window"}
		}, []string{
			"spec.whole[1]: spec.limits.a.rates.first.window",
			"spec.lists[1].key: spec.targetRefs.*.key",
			"spec.lists[2].path: spec.rates",
			"spec.lists[2].key: spec.rates.*.name",
		}},
		"an order by a field": {func(p *api.PolicyProfileSpec) {
			p.Order = &api.ProfileOrder{OrderKey: api.OrderKey{Field: "prio"}, Then: &api.OrderKey{Field: "priorities"}}
		}, []string{
			"spec.order.field: spec.prio",
			"spec.order.then.field: spec.priorities",
		}},
		"an order by an annotation": {func(p *api.PolicyProfileSpec) {
			p.Order = &api.ProfileOrder{OrderKey: api.OrderKey{Annotation: "example.com/p"}}
		}, nil},
		"fields of a route": {func(p *api.PolicyProfileSpec) {
			p.Fields = []api.RouteField{
				{Rule: "mode", Route: "spec.rules[*].timeouts.request"}, {Rule: "timeout", Route: "spec.rules[*].timeouts.backendRequest"},
			}
		}, []string{"spec.fields[1].rule: spec.timeout"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			k := compiled(t, func(p *api.PolicyProfileSpec) {
				p.Blocks = api.ProfileBlocks{}
				c.edit(p)
			})
			assert.Equal(t, c.want, paths(t, k.Check(schema(t, paintSchema))))
		})
	}
}

// paths returns the starts of messages: the field of the profile and the path that the
// schema does not have.
func paths(t *testing.T, all []string) []string {
	t.Helper()
	messages.Golden(t, all...)
	var out []string
	for _, text := range all {
		words := strings.Fields(text)
		require.Greater(t, len(words), 2, text)
		assert.Contains(t, words, "Paint.example.com")
		out = append(out, strings.Join(words[:2], " "))
	}
	return out
}

func TestCheckWithoutSchema(t *testing.T) {
	assert.Nil(t, compiled(t, nil).Check(nil))
}

func TestCheckSchemaWithoutSpec(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) { p.Blocks = api.ProfileBlocks{} })
	assert.Equal(t, []string{
		"spec.targets.fields[0]: spec.targetRef",
		"spec.targets.fields[1]: spec.targetRefs",
	}, paths(t, k.Check(schema(t, "type: object"))))
}
