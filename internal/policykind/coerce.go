package policykind

import (
	"reflect"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// Coerce edits an object as the API server does when it reads one from its storage:
// it prunes fields that the schema of the kind does not have and nulls that it does
// not allow, and sets defaults. old is the schema with which the object was read
// before, nil if unknown: a value that is a default of old and not of this schema
// may not be stored at all, and is removed.
//
// A schema that is nil or not structural changes nothing.
func (s *Schema) Coerce(object map[string]any, old *Schema) {
	schema := s.structure()
	if schema == nil {
		return
	}
	if oldStructural := old.structure(); oldStructural != nil && !old.Same(s) {
		removeOldDefaults(object, oldStructural, schema)
	}
	pruning.Prune(object, schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, schema)
	defaulting.Default(object, schema)
}

// structure returns the structural schema, nil if there is none.
func (s *Schema) structure() *structuralschema.Structural {
	if s == nil {
		return nil
	}
	out, err := s.Structural()
	if err != nil {
		return nil
	}
	return out
}

// removeOldDefaults removes values that are defaults of the old schema and not of the
// new one. newSchema is nil for fields that it does not have.
func removeOldDefaults(value any, oldSchema, newSchema *structuralschema.Structural) {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			before, after := fieldSchema(oldSchema, name), fieldSchema(newSchema, name)
			switch {
			case before == nil:
			case isDefault(before, child) && !isDefault(after, child):
				delete(v, name)
			default:
				removeOldDefaults(child, before, after)
			}
		}
	case []any:
		if oldSchema.Items == nil {
			return
		}
		for _, child := range v {
			removeOldDefaults(child, oldSchema.Items, itemSchema(newSchema))
		}
	}
}

func isDefault(s *structuralschema.Structural, value any) bool {
	return s != nil && s.Default.Object != nil && reflect.DeepEqual(s.Default.Object, value)
}

// fieldSchema returns the schema of a field, nil if there is none.
func fieldSchema(s *structuralschema.Structural, name string) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	if f, ok := s.Properties[name]; ok {
		return &f
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// itemSchema returns the schema of the items of a list, nil if there is none.
func itemSchema(s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	return s.Items
}
