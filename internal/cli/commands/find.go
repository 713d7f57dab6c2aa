package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// mention is an object that others name, and that is not read itself: the
// class of a gateway, the backend of a route, a target that exists nowhere, a
// namespace.
type reference api.Ref

// Ref names the object.
func (m reference) Ref() api.Ref { return api.Ref(m) }

// find returns the objects of a kind and name: the one in the namespace, or
// with everywhere those in all. What is no object of the store may be one that
// a route or a policy names.
func (s *source) find(word, name string, everywhere bool) ([]snapshot.Object, error) {
	kind, err := s.kind(word)
	if err != nil && !errors.Is(err, errUnknownKind) {
		return nil, err
	}
	candidates := s.referenced(word, name)
	if err == nil {
		for o := range s.view.Objects(kind) {
			if o.Ref().Name == name {
				candidates = append(candidates, o)
			}
		}
	}
	found, others := s.selectByNamespace(candidates, everywhere)
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
func (s *source) selectByNamespace(candidates []snapshot.Object, everywhere bool) (found []snapshot.Object, others []string) {
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
	slices.SortFunc(found, func(a, b snapshot.Object) int { return api.CompareRefs(a.Ref(), b.Ref()) })
	slices.Sort(others)
	return found, others
}

// mentioned returns what objects name by that name, whether it is there or not.
func (s *source) referenced(word, name string) []snapshot.Object {
	var out []snapshot.Object
	kinds := hierarchyKinds()
	for _, k := range s.view.Kinds() {
		kinds = append(kinds, k.Ref())
	}
	for _, kind := range kinds {
		for o := range s.view.Objects(kind) {
			for _, ref := range referencesOf(o) {
				if ref.Name == name && len(s.kindsNamed(word, []api.PolicyKind{ref.PolicyKind()})) > 0 {
					out = append(out, reference(ref))
				}
			}
		}
	}
	return out
}

// mentions returns what an object names that need not be an object of the
// store: its namespace, the class of a gateway, the backends of a route, the
// targets of a policy that exist nowhere.
func referencesOf(o snapshot.Object) []api.Ref {
	out := []api.Ref{(&gateway.Namespace{Name: o.Ref().Namespace}).Ref()}
	switch o := o.(type) {
	case *gateway.Gateway:
		out = append(out, (&gateway.Class{Name: o.Class}).Ref())
	case *gateway.Route:
		for _, rule := range o.Rules {
			for _, b := range rule.Backends {
				out = append(out, b.Object)
			}
		}
	case *policykind.Policy:
		for _, t := range o.Targets {
			if t.Virtual {
				out = append(out, t.Ref)
			}
		}
	}
	return out
}
