package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// mention is an object that others name, and that is not read itself: the
// backend of a route, a target that exists nowhere, a namespace.
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

// mentioned returns what routes send traffic to and what policies target under
// a name, whether it is there or not.
func (s *scene) mentioned(word, name string) []store.Object {
	var out []store.Object
	add := func(ref api.Ref) {
		if ref.Name == name && len(s.kindsNamed(word, []api.PolicyKind{ref.PolicyKind()})) > 0 {
			out = append(out, mention(ref))
		}
	}
	for _, kind := range hierarchy.RouteKinds {
		for o := range s.view.Objects(api.PolicyKind{Group: api.GatewayGroup, Kind: kind}) {
			if r, ok := o.(*hierarchy.Route); ok {
				for i := range r.Rules {
					for _, b := range r.Rules[i].Backends {
						add(b.Object)
					}
				}
			}
		}
	}
	for _, k := range s.view.Kinds() {
		for p := range s.view.Policies(k.Ref()) {
			for _, t := range p.Targets {
				if t.Selector == nil && exists(t) {
					add(t.Ref)
				}
			}
		}
	}
	return out
}

// exists reports whether a target need not be an object of the store: it is
// virtual, or a namespace.
func exists(t policykind.Target) bool {
	return t.Virtual || t.Ref.PolicyKind() == api.PolicyKind{Kind: hierarchy.KindNamespace}
}
