package constraint

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Shape describes the effective specs of a kind.
type Shape struct {
	// Schema of the whole object; nil if the kind has none.
	Schema *apiextensionsv1.JSONSchemaProps
	// Content has the field paths in the object of the content of a policy and of its
	// blocks. Those that the schema does not have are ignored.
	Content [][]string
	// List is set if the kind collects: the effective spec is a list.
	List bool
}

// Check validates the constraint against the schema of its kind. It returns all errors
// with their field paths, and nil if the schema is not known.
func (c *Constraint) Check(s Shape) error {
	effective := s.effective()
	if effective == nil {
		return nil
	}
	at := field.NewPath("spec")
	var errs field.ErrorList
	for i := range c.validations {
		errs = append(errs, c.validations[i].check(effective, at.Child("validations").Index(i))...)
	}
	for i := range c.rules {
		errs = append(errs, c.rules[i].check(effective, at.Child("rules").Index(i))...)
	}
	if err := errs.ToAggregate(); err != nil {
		return err
	}
	return nil
}

func (v *validation) check(effective *apiextensionsv1.JSONSchemaProps, at *field.Path) (errs field.ErrorList) {
	if v.expression != nil {
		if err := v.expression.CheckTypes(effective); err != nil {
			errs = append(errs, problems(err, at.Child("expression"), v.expression.String())...)
		}
	}
	if v.messageExpression != nil {
		if err := v.messageExpression.CheckTypes(effective); err != nil {
			errs = append(errs, problems(err, at.Child("messageExpression"), v.messageExpression.String())...)
		}
	}
	return errs
}

// effective returns the schema of effective specs, with the fields at any of the paths of
// Content; nil if it is not known.
func (s Shape) effective() *apiextensionsv1.JSONSchemaProps {
	if s.Schema == nil {
		return nil
	}
	var out *apiextensionsv1.JSONSchemaProps
	for _, at := range s.Content {
		node := below(s.Schema, at)
		switch {
		case node == nil:
		case isOpen(node) || node.Type != "object" || node.AdditionalProperties != nil:
			return nil
		case out == nil:
			out = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: maps.Clone(node.Properties)}
		default:
			for name, p := range node.Properties {
				if _, has := out.Properties[name]; !has {
					out.Properties[name] = p
				}
			}
		}
	}
	if out != nil && s.List {
		return &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: out}}
	}
	return out
}

// below returns the schema at a field path, nil if there is none.
func below(s *apiextensionsv1.JSONSchemaProps, at []string) *apiextensionsv1.JSONSchemaProps {
	for _, name := range at {
		if isOpen(s) {
			return s
		}
		next, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = &next
	}
	return s
}

// isOpen reports whether a schema allows fields that it does not specify.
func isOpen(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.XEmbeddedResource ||
		s.Type == "" && s.Properties == nil && s.Items == nil && !s.XIntOrString
}

func (r *rule) check(effective *apiextensionsv1.JSONSchemaProps, at *field.Path) field.ErrorList {
	ends, unresolved := resolve(effective, r.path)
	if len(ends) == 0 {
		return field.ErrorList{field.Invalid(at.Child("path"), r.text, fmt.Sprintf("%s does not exist in the schema", r.path[:unresolved+1]))}
	}
	var errs field.ErrorList
	fits := func(name string, types ...string) {
		if !slices.ContainsFunc(ends, func(s *apiextensionsv1.JSONSchemaProps) bool {
			return s.Type == "" || slices.Contains(types, s.Type)
		}) {
			errs = append(errs, field.Invalid(at.Child(name), r.text, fmt.Sprintf("has type %s in the schema", ends[0].Type)))
		}
	}
	if r.bounds != nil && r.bounds.min != nil {
		fits("min", "integer", "number", "string")
	}
	if r.bounds != nil && r.bounds.max != nil {
		fits("max", "integer", "number", "string")
	}
	if r.pattern != nil {
		fits("pattern", "string")
	}
	return errs
}

// anySchema is the schema of a value that is not specified.
var anySchema = &apiextensionsv1.JSONSchemaProps{}

// resolve returns the schemas of the values at an address, or the index of the first step
// that does not exist.
func resolve(from *apiextensionsv1.JSONSchemaProps, a address) (ends []*apiextensionsv1.JSONSchemaProps, unresolved int) {
	ends = []*apiextensionsv1.JSONSchemaProps{from}
	for i, s := range a {
		var next []*apiextensionsv1.JSONSchemaProps
		for _, e := range ends {
			next = append(next, stepInto(e, s)...)
		}
		if len(next) == 0 {
			return nil, i
		}
		ends = next
	}
	return ends, 0
}

func stepInto(e *apiextensionsv1.JSONSchemaProps, s step) []*apiextensionsv1.JSONSchemaProps {
	switch {
	case isOpen(e):
		return []*apiextensionsv1.JSONSchemaProps{anySchema}
	case s.kind == anyItem:
		if e.Items == nil {
			return nil
		}
		if e.Items.Schema == nil {
			return []*apiextensionsv1.JSONSchemaProps{anySchema}
		}
		return []*apiextensionsv1.JSONSchemaProps{e.Items.Schema}
	}
	var out []*apiextensionsv1.JSONSchemaProps
	for _, name := range slices.Sorted(maps.Keys(e.Properties)) {
		if s.kind == anyName || s.name == name {
			p := e.Properties[name]
			out = append(out, &p)
		}
	}
	switch others := e.AdditionalProperties; {
	case others == nil || s.kind == byName && len(out) > 0:
	case others.Schema != nil:
		out = append(out, others.Schema)
	case others.Allows:
		out = append(out, anySchema)
	}
	return out
}
