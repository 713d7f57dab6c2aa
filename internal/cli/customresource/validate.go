package customresource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Problem is what is wrong with an object.
type Problem struct {
	// Field is the path of the field in the object, "" for the object as a whole.
	Field string
	// Message names the field and what is wrong with it, in the words of the API server.
	Message string
}

// Result is an object as the API server would store it, and what is wrong with it.
type Result struct {
	// Object is pruned and has its defaults; it is nil for an object that cannot be decoded.
	Object map[string]any
	// Unknown are the fields that were pruned since the schema does not have them.
	Unknown []Problem
	// Invalid is why the API server rejects the object. It is sorted by field.
	Invalid []Problem
}

// Validate returns an object as the API server would store it when it is created, or,
// with old, updated. The namespace is that of the request. Neither object is edited. An
// update is not rejected for what old has as well, as far as the API server tolerates it.
//
// The error wraps ErrDefinition: the kind cannot be validated.
func (k *Kind) Validate(ctx context.Context, object, old map[string]any, namespace string) (Result, error) {
	v, invalid := k.version(object)
	if invalid != nil {
		return Result{Invalid: []Problem{*invalid}}, nil
	}
	if err := v.compile(); err != nil {
		return Result{}, fmt.Errorf("%s: %w", k.Name(), err)
	}
	written := object
	object = runtime.DeepCopyJSON(object)
	unknown, err := v.coerce(object, false)
	if err != nil {
		return Result{Invalid: []Problem{decodingProblem(err)}}, nil
	}
	out := Result{Object: object, Unknown: v.unknownProblems(unknown, written)}
	if old != nil {
		old = runtime.DeepCopyJSON(old)
		old["apiVersion"] = object["apiVersion"] // as with the conversion strategy None
		if _, err := v.coerce(old, true); err != nil {
			old = nil
		}
	}
	v.prepare(object, old)
	errs, err := k.validate(ctx, v, object, old, namespace)
	out.Invalid = problems(errs)
	return out, err
}

// version returns the version of an object, or the problem that it is not served.
func (k *Kind) version(object map[string]any) (*version, *Problem) {
	apiVersion, _ := object["apiVersion"].(string)
	group, name, found := strings.Cut(apiVersion, "/")
	if v := k.versions[name]; found && group == k.crd.Spec.Group && v != nil && v.Served {
		return v, nil
	}
	return nil, &Problem{
		Field: "apiVersion",
		Message: fmt.Sprintf("no matches for kind %q in version %q; served versions: %s",
			k.crd.Spec.Names.Kind, apiVersion, strings.Join(k.served(), ", ")),
	}
}

// prepare sets the status to that of the stored object: only the subresource changes it.
func (v *version) prepare(object, old map[string]any) {
	if v.Subresources == nil || v.Subresources.Status == nil {
		return
	}
	delete(object, "status")
	if status, ok := old["status"]; ok {
		object["status"] = status
	}
}

// validate validates an object that was coerced, in the order of the API server's
// strategy of custom resources.
func (k *Kind) validate(ctx context.Context, v *version, object, old map[string]any, namespace string) (field.ErrorList, error) {
	meta := newMetadata(object, old, namespace, k.Namespaced())
	// unchanged says which values an update leaves as they are: the API server does not reject it
	// for most of what is wrong with them. It is nil for an object that is created.
	var unchanged *common.CorrelatedObject
	errs := meta.validate(ctx)
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, object, v.validator)...)
	} else {
		unchanged = common.NewCorrelatedObject(object, old, &model.Structural{Structural: v.schema})
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, object, old, v.validator, validation.WithRatcheting(unchanged))...)
	}
	errs = append(errs, v.validateScale(object)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, object, v.schema, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, v.schema, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.schema, object)...)
	}
	celErrs, err := k.validateRules(ctx, v, errs, object, old, unchanged)
	if err != nil {
		return nil, err
	}
	errs = append(errs, celErrs...)
	return append(errs, meta.validateCommon(len(errs) > 0)...), nil
}

// validateRules validates the CEL rules, unless other errors make that impossible: the API
// server says so in an error of its own.
func (k *Kind) validateRules(ctx context.Context, v *version, errs field.ErrorList, object, old map[string]any, unchanged *common.CorrelatedObject) (field.ErrorList, error) {
	rules := v.celRules()
	if rules == nil {
		return nil, nil
	}
	if slices.ContainsFunc(errs, preventsRules) {
		return nil, nil
	}
	var oldObject any
	if old != nil {
		oldObject = old
	}
	found, _ := rules.Validate(ctx, nil, v.schema, object, oldObject, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(unchanged))
	for _, err := range found {
		if strings.HasPrefix(err.Detail, "rule compile error: ") {
			return nil, fmt.Errorf("%s: %w: version %s: %s: %s", k.Name(), ErrDefinition, v.Name, err.Field, err.Detail)
		}
	}
	return found, nil
}

// preventsRules reports whether CEL rules cannot be evaluated because of an error.
func preventsRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

// problems returns errors as problems, each once, sorted by field. An error about no
// field comes last.
func problems(errs field.ErrorList) []Problem {
	var out []Problem
	for _, err := range errs {
		p := Problem{Field: err.Field, Message: err.Error()}
		if p.Field == "<nil>" {
			p.Field = ""
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Problem) int {
		if (a.Field == "") != (b.Field == "") {
			return strings.Compare(b.Field, a.Field)
		}
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(out)
}
