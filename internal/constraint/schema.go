package constraint

import (
	"cmp"
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
	// Named is set if the effective spec is a map of contents.
	Named bool
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
		node := s.Schema
		for _, name := range at {
			if node = below(node, step{name: name}); node == nil {
				break
			}
		}
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
	if out != nil && s.Named {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: out}}
	}
	return out
}

// isOpen reports whether a schema allows fields that it does not specify.
func isOpen(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.XEmbeddedResource ||
		s.Type == "" && s.Properties == nil && s.Items == nil && !s.XIntOrString
}

func (r *rule) check(effective *apiextensionsv1.JSONSchemaProps, at *field.Path) (errs field.ErrorList) {
	schema := effective
	for i := range r.path {
		if schema = below(schema, r.path[i]); schema == nil {
			return field.ErrorList{field.Invalid(at.Child("path"), r.path.String(), fmt.Sprintf("%s does not exist in the schema", r.path[:i+1]))}
		}
	}
	for _, q := range r.requirements {
		if q.types != nil && schema.Type != "" && !slices.Contains(q.types, schema.Type) {
			errs = append(errs, field.Invalid(at.Child(q.name), r.path.String(), fmt.Sprintf("has type %s in the schema", schema.Type)))
		}
	}
	return errs
}

// anySchema is the schema of a value that is not specified.
var anySchema = &apiextensionsv1.JSONSchemaProps{}

// below returns the schema one step below a schema, nil if there is none. That of any
// name is not known where names have schemas of their own.
func below(s *apiextensionsv1.JSONSchemaProps, to step) *apiextensionsv1.JSONSchemaProps {
	p, ok := s.Properties[to.name]
	others, items := s.AdditionalProperties, s.Items
	switch {
	case isOpen(s):
		return anySchema
	case to.kind == anyItem && items != nil:
		return cmp.Or(items.Schema, anySchema)
	case to.kind == anyItem:
		return nil
	case to.kind == byName && ok:
		return &p
	case to.kind == anyName && len(s.Properties) > 0, others != nil && others.Schema == nil && others.Allows:
		return anySchema
	case others != nil:
		return others.Schema
	default:
		return nil
	}
}
