package main

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// mention is an object that others name, and that is not read itself: the
// class of a gateway, the backend of a route, a target that exists nowhere, a
// namespace.
type mention api.Ref

// Ref names the object.
func (m mention) Ref() api.Ref { return api.Ref(m) }

// find returns the objects of a kind and name: the one in the namespace, or
// with everywhere those in all. What is no object of the store may be one that
// a route or a policy names.
func (s *scene) find(word, name string, everywhere bool) ([]store.Object, error) {
	kind, err := s.kind(word)
	if err != nil && !errors.Is(err, errKind) {
		return nil, err
	}
	candidates := s.mentioned(word, name)
	if err == nil {
		for o := range s.view.Objects(kind) {
			if o.Ref().Name == name {
				candidates = append(candidates, o)
			}
		}
	}
	found, others := s.chosen(candidates, everywhere)
	switch {
	case len(found) > 0:
		return found, nil
	case err != nil:
		return nil, err
	case len(others) > 0:
		return nil, fmt.Errorf("%s %s/%s %w; there is one in namespace %s: name it with -n, or all with -A", kind.Kind, s.namespace, name, errNotFound, strings.Join(others, ", "))
	default:
		ref := api.Ref{Kind: kind.Kind, Namespace: s.namespace, Name: name}
		if everywhere || s.kinds.ClusterScoped(kind) {
			ref.Namespace = ""
		}
		return nil, fmt.Errorf("%s %w", ref, errNotFound)
	}
}

// chosen returns those of the candidates that are meant, each once, the
// objects before what only bears their name, and the namespaces of the others.
func (s *scene) chosen(candidates []store.Object, everywhere bool) (found []store.Object, others []string) {
	seen := make(map[api.Ref]bool)
	for _, o := range slices.Backward(candidates) {
		ref := o.Ref()
		switch {
		case seen[ref]:
		case everywhere || ref.Namespace == "" || ref.Namespace == s.namespace:
			found = append(found, o)
		default:
			others = append(others, ref.Namespace)
		}
		seen[ref] = true
	}
	slices.SortFunc(found, func(a, b store.Object) int { return api.CompareRefs(a.Ref(), b.Ref()) })
	slices.Sort(others)
	return found, others
}

// mentioned returns what gateways, routes and policies name by that name,
// whether it is there or not.
func (s *scene) mentioned(word, name string) []store.Object {
	var out []store.Object
	for ref := range s.mentions() {
		if ref.Name == name && len(s.kindsNamed(word, []api.PolicyKind{ref.PolicyKind()})) > 0 {
			out = append(out, mention(ref))
		}
	}
	return out
}

// mentions yields the namespaces of all objects, the classes of gateways, the
// backends of routes, and the targets of policies that exist nowhere.
func (s *scene) mentions() iter.Seq[api.Ref] {
	return func(yield func(api.Ref) bool) {
		for o := range s.objects() {
			if ns := o.Ref().Namespace; ns != "" && !yield((&hierarchy.Namespace{Name: ns}).Ref()) {
				return
			}
			for ref := range named(o) {
				if !yield(ref) {
					return
				}
			}
		}
	}
}

// objects yields all that is read.
func (s *scene) objects() iter.Seq[store.Object] {
	return func(yield func(store.Object) bool) {
		kinds := hierarchyKinds()
		for _, k := range s.view.Kinds() {
			kinds = append(kinds, k.Ref())
		}
		for _, kind := range kinds {
			for o := range s.view.Objects(kind) {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// named yields what an object names that need not be an object of the store.
func named(o store.Object) iter.Seq[api.Ref] {
	return func(yield func(api.Ref) bool) {
		switch o := o.(type) {
		case *hierarchy.Gateway:
			yield((&hierarchy.Class{Name: o.Class}).Ref())
		case *hierarchy.Route:
			for _, rule := range o.Rules {
				for _, b := range rule.Backends {
					if !yield(b.Object) {
						return
					}
				}
			}
		case *policykind.Policy:
			for _, t := range o.Targets {
				if t.Virtual && !yield(t.Ref) {
					return
				}
			}
		}
	}
}
