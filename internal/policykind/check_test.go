package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
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
			"spec.targets.fields[1]: spec.targetRfs is not in the schema of Paint.example.com",
			"spec.targets.selectors[0]: spec.selectors is not in the schema of Paint.example.com",
			"spec.targets.workloads[0]: spec.workload is not in the schema of Paint.example.com",
		}},
		"a target below a list": {func(p *api.PolicyProfileSpec) { p.Targets.Fields = []string{"targetRefs.name"} },
			[]string{"spec.targets.fields[0]: spec.targetRefs.name is not in the schema of Paint.example.com"}},
		"blocks": {func(p *api.PolicyProfileSpec) {
			p.Blocks = api.ProfileBlocks{
				Defaults: []string{"defaults", "defalts"}, Overrides: []string{"overides"}, When: "iff",
				Bare: &api.BareBlock{Field: "override", Overrides: []string{"yes"}},
			}
		}, []string{
			"spec.blocks.defaults[1]: spec.defalts is not in the schema of Paint.example.com",
			"spec.blocks.overrides[0]: spec.overides is not in the schema of Paint.example.com",
			"spec.blocks.when: spec.iff is not in the schema of Paint.example.com",
			"spec.blocks.bare.field: spec.override is not in the schema of Paint.example.com",
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
			"spec.strategy.field: spec.defaults.mode is not in the schema of Paint.example.com",
			"spec.strategy.bareField: spec.strategy is not in the schema of Paint.example.com",
		}},
		"rules below any block, or bare": {func(p *api.PolicyProfileSpec) {
			p.Blocks = api.ProfileBlocks{Defaults: []string{"default", "defaults"}}
			p.Rules = []string{"limits.*", "rules.a.*", "colors.*", "rules.*.x", "limitz.*", "rules.c", "limits.*.burst", "rules.a.b.c"}
			p.Gates, p.Alternatives = []string{"when", "whem"}, []string{"rules.a", "rules.z"}
		}, []string{
			"spec.rules[4]: spec.limitz.* is not in the schema of Paint.example.com",
			"spec.rules[5]: spec.rules.c is not in the schema of Paint.example.com",
			"spec.rules[6]: spec.limits.*.burst is not in the schema of Paint.example.com",
			"spec.rules[7]: spec.rules.a.b.c is not in the schema of Paint.example.com",
			"spec.gates[1]: spec.whem is not in the schema of Paint.example.com",
			"spec.alternatives[1]: spec.rules.z is not in the schema of Paint.example.com",
		}},
		"content and what is relative to it": {func(p *api.PolicyProfileSpec) {
			p.Content, p.Ignore, p.Unset, p.Rules = "bare", []string{"only", "mode"}, []string{"mode", "unset"}, []string{"only", "limits.*"}
		}, []string{
			"spec.ignore[1]: spec.bare.mode is not in the schema of Paint.example.com",
			"spec.unset[1]: spec.unset is not in the schema of Paint.example.com",
			"spec.rules[1]: spec.bare.limits.* is not in the schema of Paint.example.com",
		}},
		"content that is not there": {func(p *api.PolicyProfileSpec) { p.Content = "default.conf" },
			[]string{"spec.content: spec.default.conf is not in the schema of Paint.example.com"}},
		"where anything goes": {func(p *api.PolicyProfileSpec) {
			p.Rules = []string{"free.a.b.c", "embedded.kind.*", "open.a.b", "closed.a"}
		}, []string{"spec.rules[3]: spec.closed.a is not in the schema of Paint.example.com"}},
		"lists that are taken apart, and others": {func(p *api.PolicyProfileSpec) {
			p.Strategy = patch
			p.Lists = []api.KeyedList{{Path: "limits.*.rates", Key: "name"}, {Path: "targetRefs", Key: "key"}, {Path: "rates", Key: "name"}}
			p.Whole = []string{"limits.a.rates.*.limit", "limits.a.rates.first.window"}
		}, []string{
			"spec.whole[1]: spec.limits.a.rates.first.window is not in the schema of Paint.example.com",
			"spec.lists[1].key: spec.targetRefs.*.key is not in the schema of Paint.example.com",
			"spec.lists[2].path: spec.rates is not in the schema of Paint.example.com",
			"spec.lists[2].key: spec.rates.*.name is not in the schema of Paint.example.com",
		}},
		"an order by a field": {func(p *api.PolicyProfileSpec) {
			p.Order = &api.ProfileOrder{OrderKey: api.OrderKey{Field: "prio"}, Then: &api.OrderKey{Field: "priorities"}}
		}, []string{
			"spec.order.field: spec.prio is not in the schema of Paint.example.com",
			"spec.order.then.field: spec.priorities is not in the schema of Paint.example.com",
		}},
		"an order by an annotation": {func(p *api.PolicyProfileSpec) {
			p.Order = &api.ProfileOrder{OrderKey: api.OrderKey{Annotation: "example.com/p"}}
		}, nil},
		"fields of a route": {func(p *api.PolicyProfileSpec) {
			p.Fields = []api.RouteField{
				{Rule: "mode", Route: "spec.rules[*].timeouts.request"}, {Rule: "timeout", Route: "spec.rules[*].timeouts.backendRequest"},
			}
		}, []string{"spec.fields[1].rule: spec.timeout is not in the schema of Paint.example.com"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			k := compiled(t, func(p *api.PolicyProfileSpec) {
				p.Blocks = api.ProfileBlocks{}
				c.edit(p)
			})
			assert.Equal(t, c.want, k.Check(schema(t, paintSchema)))
		})
	}
}

func TestCheckWithoutSchema(t *testing.T) {
	assert.Nil(t, compiled(t, nil).Check(nil))
}

func TestCheckSchemaWithoutSpec(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) { p.Blocks = api.ProfileBlocks{} })
	assert.Equal(t, []string{
		"spec.targets.fields[0]: spec.targetRef is not in the schema of Paint.example.com",
		"spec.targets.fields[1]: spec.targetRefs is not in the schema of Paint.example.com",
	}, k.Check(schema(t, "type: object")))
}
