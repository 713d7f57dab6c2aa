package manifest

import (
	"context"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
)

// Problem is what is wrong with an object by the definition of its kind.
type Problem struct {
	Object *Object
	customresource.Problem
	// Unknown is set for a field that the definition does not have. The API server drops
	// it; an object with any other problem is rejected.
	Unknown bool
}

// Location returns the position of the problem.
func (p Problem) Location() Location { return p.Object.Locate(p.Field) }

// Stored is an object as the API server would store it, and what is wrong with it.
type Stored struct {
	*Object
	Problems []Problem
}

// Rejected reports whether the API server rejects the object.
func (s Stored) Rejected() bool {
	return slices.ContainsFunc(s.Problems, func(p Problem) bool { return !p.Unknown })
}

// Store returns the object as the API server would store it by the definition of its
// kind, pruned and with defaults, when it is created, or with old, updated. Without a
// definition, or if it cannot be decoded, it is as it was read; without one, its version is
// compared with those that are known.
//
// The error wraps customresource.ErrDefinition: the kind cannot be validated.
func (o *Object) Store(ctx context.Context, definition *customresource.Kind, old *Object, namespace string) (Stored, error) {
	out := Stored{Object: o}
	if o.Name == "" {
		return out, nil // Decode reports that the name is required
	}
	if definition == nil {
		out.Problems = o.unknownVersion()
		return out, nil
	}
	if o.Namespace != "" {
		namespace = o.Namespace
	}
	var oldContent map[string]any
	if old != nil {
		oldContent = old.content
	}
	result, err := definition.Validate(ctx, o.content, oldContent, namespace)
	if err != nil {
		return out, err
	}
	for _, p := range result.Unknown {
		out.Problems = append(out.Problems, Problem{Object: o, Problem: p, Unknown: true})
	}
	for _, p := range result.Invalid {
		out.Problems = append(out.Problems, Problem{Object: o, Problem: p})
	}
	if result.Object != nil {
		stored := *o
		stored.content = result.Object
		out.Object = &stored
	}
	return out, nil
}

// CRD returns what validates the objects of a kind: its definition in the manifests, or a
// built-in one; nil if there is none or it serves no version.
func (k *Kinds) CRD(ref api.PolicyKind) *customresource.Kind {
	switch d := k.definitionOf(ref); {
	case d.Definition != nil && slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served }):
		return d.validator
	case d.Definition != nil || k.notServed(ref):
		return nil
	default:
		return customresource.Builtin(ref.Group, ref.Kind)
	}
}

// Validates reports whether the objects of a kind are validated: there is a definition of it.
func (k *Kinds) Validates(ref api.PolicyKind) bool { return k.Defined(ref) || k.CRD(ref) != nil }

// Store returns the objects of the set as the API server would store them. The
// definitions of the set are added to kinds; an object without a definition, or with an
// invalid one, is as it was read.
//
// The errors are those of definitions that cannot be decoded, and wrap customresource.ErrDefinition
// for those by which objects cannot be validated.
func (s *Set) Store(ctx context.Context, kinds *Kinds, namespace string) (*Set, []Problem, []error) {
	errs := s.addDefinitions(kinds)
	stored, failed := make([]Stored, len(s.Objects)), make([]error, len(s.Objects))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, o := range s.Objects {
		workers.Go(func() error {
			stored[i], failed[i] = o.Store(ctx, kinds.CRD(o.Kind), nil, namespace)
			return nil
		})
	}
	_ = workers.Wait() // the errors are in failed
	out := &Set{}
	var problems []Problem
	for i, o := range stored {
		out.Objects = append(out.Objects, o.Object)
		problems = append(problems, o.Problems...)
		if err := failed[i]; err != nil && !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }) { // all objects of a kind have the same
			errs = append(errs, err)
		}
	}
	return out, problems, errs
}
