package policykind

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// Coerce edits an object as the API server does when it reads one from its storage:
// it prunes fields that the schema of the kind does not have and nulls that it does
// not allow, and sets defaults. A schema that is nil or not structural changes nothing.
func (s *Schema) Coerce(object map[string]any) {
	if s == nil {
		return
	}
	schema, err := s.Structural()
	if err != nil {
		return
	}
	pruning.Prune(object, schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, schema)
	defaulting.Default(object, schema)
}
