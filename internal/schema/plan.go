package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"overrule.dev/overrule/internal/policykind"
)

const (
	// callLimit is what one rule in CEL may cost: about 15 ms.
	callLimit = 20_000
	// checkLimit is what all rules of a check may cost together.
	checkLimit = 100_000
)

// plan is how effective specs of a kind are checked.
type plan struct {
	kind   *policykind.Kind
	schema *structuralschema.Structural
	target target
	// showValues: messages quote values.
	showValues bool
	// defaults tells that the schema has some.
	defaults bool
	// places where an effective spec can stand, the best first.
	locations []*location
	// unchecked tells why nothing can be checked.
	unchecked string
	// full is the whole schema, made when a policy is first checked by itself.
	fullOnce sync.Once
	full     validation.SchemaCreateValidator
}

// place is where an effective spec can stand in an object: as the bare rules,
// or in a kind that has none, as a block.
type location struct {
	at     []string // from the top
	schema *structuralschema.Structural
	// beside are the addresses, from the top, of what is no content.
	excluded [][]string
	// What of the schema sees several rules at once: its structure, nil without
	// any and checked in two ways, and its rules in CEL, likewise.
	structural   *structuralschema.Structural
	validator    validation.SchemaCreateValidator
	celRules     *structuralcel.Validator
	requirements []requirement
}

// structure checks against an OpenAPI schema.
type openAPIValidator struct{ *validate.SchemaValidator }

// Validate implements validation.SchemaCreateValidator.
func (s openAPIValidator) Validate(value any, _ ...validation.ValidationOption) *validate.Result {
	return s.SchemaValidator.Validate(value)
}

func newPlan(k *policykind.Kind, showValues bool) *plan {
	p := &plan{kind: k, showValues: showValues}
	var err error
	if p.schema, err = k.Schema().Structural(); err != nil {
		p.unchecked = fmt.Sprintf("effective policies of %s are not checked against its definition: %v", k.Ref(), err)
		return p
	}
	p.target, p.defaults = targetOf(k, p.schema), hasDefault(p.schema)
	p.addLocation()
	for _, block := range slices.Concat(k.Blocks.Defaults, k.Blocks.Overrides) {
		p.addLocation(block)
	}
	return p
}

// place adds the place of the bare rules or of a block, if the schema has it.
func (p *plan) addLocation(block ...string) {
	l := p.kind.Layout()
	content := slices.Concat([]string{"spec"}, l.Content)
	at := slices.Concat(content, block)
	schema := nodeAt(p.schema, at)
	if schema == nil {
		return
	}
	out := &location{at: at, schema: schema, excluded: prefixed([]string{"spec"}, l.NotContent)}
	out.excluded = append(out.excluded, prefixed(content, l.NotRules)...)
	if len(block) > 0 {
		out.excluded = append(out.excluded, prefixed(at, l.NotRules)...)
	}
	out.excluded = slices.DeleteFunc(out.excluded, func(a []string) bool { return slices.Equal(a, at) })
	j := reducer{layout: l, location: at, excluded: out.excluded, showValues: p.showValues}
	if joints, joins := j.structural(p.schema); joins {
		out.structural = joints
		out.validator = openAPIValidator{validate.NewSchemaValidator(joints.ToKubeOpenAPI(), nil, "", strfmt.Default)}
	}
	out.celRules = structuralcel.NewValidator(j.celRules(p.schema), true, callLimit)
	out.requirements = j.requirements
	p.locations = append(p.locations, out)
}

func prefixed(at []string, all [][]string) [][]string {
	var out [][]string
	for _, a := range all {
		out = append(out, slices.Concat(at, a))
	}
	return out
}

// nodeAt returns the schema of an address without any *, nil if there is none.
func nodeAt(s *structuralschema.Structural, at []string) *structuralschema.Structural {
	for _, name := range at {
		next, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = &next
	}
	return s
}

// nothing reports whether there is nothing to check, whatever the rules.
func (p *plan) isEmpty() bool {
	return !slices.ContainsFunc(p.locations, func(pl *location) bool { return !pl.separable() })
}

// placeOf returns the place that has all the fields of an effective spec, nil
// if none does.
func (p *plan) locationOf(spec map[string]any) *location {
	i := slices.IndexFunc(p.locations, func(pl *location) bool { return pl.accepts(spec) })
	if i < 0 {
		return nil
	}
	return p.locations[i]
}

// separable reports whether nothing sees several rules at once.
func (p *location) separable() bool { return p.structural == nil && p.celRules == nil }

// isBeside reports whether a field, as errors spell it, is in what is no content.
func (p *location) isExcluded(field string) bool {
	return slices.ContainsFunc(p.excluded, func(a []string) bool {
		rest, ok := strings.CutPrefix(field, strings.Join(a, "."))
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (p *location) accepts(spec map[string]any) bool {
	for name := range spec {
		if !p.acceptsField(name) {
			return false
		}
	}
	return true
}

func (p *location) acceptsField(name string) bool {
	_, ok := p.schema.Properties[name]
	others := p.schema.AdditionalProperties
	return ok || p.schema.XPreserveUnknownFields || others != nil && (others.Bool || others.Structural != nil)
}
