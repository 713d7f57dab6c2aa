package customresource

import (
	"encoding/json"
	"errors"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// coerce edits an object as the API server does when it decodes one: it prunes fields
// that the schema does not have and nulls that it does not allow, and sets defaults. It
// returns the paths of the fields that it pruned.
//
// stored is set for an object of the storage, whose invalid metadata is dropped. The
// error is that of an object that cannot be decoded.
func (v *version) coerce(object map[string]any, stored bool) (unknown []string, err error) {
	kind, apiVersion := object["kind"], object["apiVersion"]
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: stored, ReturnUnknownFieldPaths: true,
	})
	if err != nil {
		return nil, err
	}
	if v.prunes {
		unknown = append(unknown, pruning.PruneWithOptions(object, v.schema, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(object, v.schema)
	}
	invalid, paths := objectmeta.CoerceWithOptions(nil, object, v.schema, false, objectmeta.CoerceOptions{
		DropInvalidFields: stored, ReturnUnknownFieldPaths: true,
	})
	if invalid != nil {
		return nil, invalid
	}
	object["kind"], object["apiVersion"] = kind, apiVersion
	if hasMeta {
		if err := objectmeta.SetObjectMeta(object, meta); err != nil {
			return nil, err
		}
	}
	defaulting.Default(object, v.schema)
	return append(unknown, paths...), nil
}

// decodingProblem returns the problem of an object that cannot be decoded, as kubectl
// reports it.
func decodingProblem(err error) Problem {
	var wrongType *json.UnmarshalTypeError
	if !errors.As(err, &wrongType) {
		return Problem{Message: err.Error()}
	}
	inObject := *wrongType
	inObject.Field = "metadata." + wrongType.Field
	return Problem{Field: inObject.Field, Message: inObject.Error()}
}
