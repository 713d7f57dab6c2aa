package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// find returns the objects of a kind and name in the namespace, or in all
// namespaces. An object that is not in the view is found if another one refers
// to it.
func (s *source) find(word, name string, everywhere bool) ([]snapshot.Object, error) {
	kind, err := s.kind(word)
	if err != nil && !errors.Is(err, errUnknownKind) {
		return nil, err
	}
	found, missing := s.named(kind, name, s.referenced(word, name), everywhere)
	if missing != nil && err != nil {
		return nil, err
	}
	return found, missing
}

// named returns the objects of a kind and name, and of some references of that name, in the
// namespace, or in all namespaces.
func (s *source) named(kind api.PolicyKind, name string, references []snapshot.Object, everywhere bool) ([]snapshot.Object, error) {
	candidates := references
	for o := range s.view.Objects(kind) {
		if o.Ref().Name == name {
			candidates = append(candidates, o)
		}
	}
	found, otherNamespaces := s.selectByNamespace(candidates, everywhere)
	switch {
	case len(found) > 0:
		return found, nil
	case len(otherNamespaces) > 0:
		return nil, fmt.Errorf("%s %s/%s %w, but exists in namespace %s: use -n to select a namespace or -A for all", kind.Kind, s.namespace, name, errNotFound, strings.Join(otherNamespaces, ", "))
	default:
		ref := api.Ref{Kind: kind.Kind, Namespace: s.namespace, Name: name}
		if everywhere || s.kinds.ClusterScoped(kind) {
			ref.Namespace = ""
		}
		return nil, fmt.Errorf("%s %w%s", ref, errNotFound, lookup.DidYouMean(name, s.namesOf(kind, everywhere)))
	}
}

// namesOf returns the names of the objects of a kind in the namespace, or in all.
func (s *source) namesOf(kind api.PolicyKind, everywhere bool) []string {
	var out []string
	for o := range s.view.Objects(kind) {
		if ref := o.Ref(); everywhere || ref.Namespace == "" || ref.Namespace == s.namespace {
			out = append(out, ref.Name)
		}
	}
	return out
}

// selectByNamespace returns the candidates in the namespace, or in all, each
// once, and the namespaces of the others. An object takes precedence over
// references to it.
func (s *source) selectByNamespace(candidates []snapshot.Object, everywhere bool) (found []snapshot.Object, otherNamespaces []string) {
	seen := make(map[api.Ref]bool)
	for _, o := range slices.Backward(candidates) {
		ref := o.Ref()
		switch {
		case seen[ref]:
		case everywhere || ref.Namespace == "" || ref.Namespace == s.namespace:
			found = append(found, o)
		default:
			otherNamespaces = append(otherNamespaces, ref.Namespace)
		}
		seen[ref] = true
	}
	slices.SortFunc(found, func(a, b snapshot.Object) int { return api.CompareRefs(a.Ref(), b.Ref()) })
	slices.Sort(otherNamespaces)
	return found, otherNamespaces
}

// referenced returns the objects of a name that other objects refer to, whether
// they exist or not, and those in the namespace of kinds that are read as targets.
func (s *source) referenced(word, name string) []snapshot.Object {
	var out []snapshot.Object
	for _, c := range s.view.AllIn(s.namespace) {
		if o, ok := s.view.Get(c.Ref).(*gateway.Labeled); ok && o.Name == name && len(s.kindsNamed(word, []api.PolicyKind{o.Kind})) > 0 {
			out = append(out, o)
		}
	}
	for _, kind := range s.kinds.Objects() {
		for o := range s.view.Objects(kind) {
			for _, ref := range referencesOf(o) {
				if ref.Name == name && len(s.kindsNamed(word, []api.PolicyKind{ref.PolicyKind()})) > 0 {
					out = append(out, lookup.Reference(ref))
				}
			}
		}
	}
	return out
}

// referencesOf returns the references of an object to objects that need not be in
// the view: its namespace, the class of a gateway, the backends of a route, the
// virtual targets of a policy.
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
