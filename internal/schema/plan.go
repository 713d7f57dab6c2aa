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
	// callLimit is the cost limit of one CEL rule, about 15 ms.
	callLimit = 20_000
	// checkLimit is the cost limit of all CEL rules of a check.
	checkLimit = 100_000
)

// plan is a schema, compiled to validate the effective specs of its kind.
type plan struct {
	kind   *policykind.Kind
	schema *structuralschema.Structural
	target target
	// showValues has messages quote values.
	showValues bool
	// defaults reports whether the schema has defaults.
	defaults bool
	// locations of an effective spec in an object, the preferred one first.
	locations []*location
	// unchecked is why nothing can be checked, empty if it can.
	unchecked string
	// full is the whole schema, compiled when a policy is first checked by itself.
	fullOnce sync.Once
	full     validation.SchemaCreateValidator
}

// location is where an effective spec can be put in an object: where the bare rules
// are, or in a kind without them, where a block is.
type location struct {
	at     []string // from the top
	schema *structuralschema.Structural
	// excluded are the paths, from the top, of fields that are no content.
	excluded [][]string
	// structural has the structural cross-rule validations, nil for none; validator
	// is compiled from it. celRules are those in CEL, nil for none. requirements are
	// the scopes of both.
	structural   *structuralschema.Structural
	validator    validation.SchemaCreateValidator
	celRules     *structuralcel.Validator
	requirements []requirement
}

// openAPIValidator validates against an OpenAPI schema.
type openAPIValidator struct{ *validate.SchemaValidator }

// Validate implements validation.SchemaCreateValidator.
func (v openAPIValidator) Validate(value any, _ ...validation.ValidationOption) *validate.Result {
	return v.SchemaValidator.Validate(value)
}

func newPlan(k *policykind.Kind, showValues bool) *plan {
	p := &plan{kind: k, showValues: showValues}
	var err error
	if p.schema, err = k.Schema().Structural(); err != nil {
		p.unchecked = fmt.Sprintf("effective policies of %s are not validated against its CRD: %v", k.Ref(), err)
		return p
	}
	p.target, p.defaults = targetOf(k, p.schema), hasDefault(p.schema)
	p.addLocation()
	for _, block := range slices.Concat(k.Blocks.Defaults, k.Blocks.Overrides) {
		p.addLocation(block)
	}
	return p
}

// addLocation adds the location of the bare rules or of a block, if the schema has
// it.
func (p *plan) addLocation(block ...string) {
	l := p.kind.Layout()
	at := slices.Concat(l.Content, block)
	schema := nodeAt(p.schema, at)
	if schema == nil {
		return
	}
	out := &location{at: at, schema: schema, excluded: slices.Concat(l.NotContent, prefixed(l.Content, l.NotRules))}
	if len(block) > 0 {
		out.excluded = append(out.excluded, prefixed(at, l.NotRules)...)
	}
	out.excluded = slices.DeleteFunc(out.excluded, func(a []string) bool { return slices.Equal(a, at) })
	j := reducer{layout: l, location: at, excluded: out.excluded, showValues: p.showValues}
	if structural, ok := j.structural(p.schema); ok {
		out.structural = structural
		out.validator = openAPIValidator{validate.NewSchemaValidator(structural.ToKubeOpenAPI(), nil, "", strfmt.Default)}
	}
	out.celRules = structuralcel.NewValidator(j.celRules(p.schema), true, callLimit)
	out.requirements = j.requirements
	p.locations = append(p.locations, out)
}

// prefixed returns paths below another path.
func prefixed(at []string, paths [][]string) [][]string {
	var out [][]string
	for _, a := range paths {
		out = append(out, slices.Concat(at, a))
	}
	return out
}

// nodeAt returns the schema at a path without any *, nil if there is none.
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

// isEmpty reports whether there is nothing to check, whatever the rules.
func (p *plan) isEmpty() bool {
	return !slices.ContainsFunc(p.locations, func(pl *location) bool { return !pl.separable() })
}

// locationOf returns the location that accepts all fields of an effective spec, nil
// if none does.
func (p *plan) locationOf(spec map[string]any) *location {
	i := slices.IndexFunc(p.locations, func(pl *location) bool { return pl.accepts(spec) })
	if i < 0 {
		return nil
	}
	return p.locations[i]
}

// separable reports whether there are no cross-rule validations.
func (l *location) separable() bool { return l.structural == nil && l.celRules == nil }

// isExcluded reports whether the field of an error is excluded.
func (l *location) isExcluded(field string) bool {
	return slices.ContainsFunc(l.excluded, func(a []string) bool {
		rest, ok := strings.CutPrefix(field, strings.Join(a, "."))
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (l *location) accepts(spec map[string]any) bool {
	for name := range spec {
		if !l.acceptsField(name) {
			return false
		}
	}
	return true
}

func (l *location) acceptsField(name string) bool {
	_, ok := l.schema.Properties[name]
	others := l.schema.AdditionalProperties
	return ok || l.schema.XPreserveUnknownFields || others != nil && (others.Bool || others.Structural != nil)
}
