package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/manifest"
	"overrule.dev/overrule/internal/store"
)

var errName = errors.New("name an object as KIND/NAME")

// object takes KIND/NAME or KIND NAME off the arguments.
func object(args []string) (kind, name string, rest []string, err error) {
	kind, name, found := strings.Cut(args[0], "/")
	rest = args[1:]
	if !found && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	if kind == "" || name == "" || found && strings.Contains(name, "/") {
		return "", "", nil, fmt.Errorf("%w, not %q", errName, strings.Join(args, " "))
	}
	return kind, name, rest, nil
}

// objectArgs checks that the arguments name an object, with up to that many
// arguments behind it.
func objectArgs(more int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errName
		}
		_, _, rest, err := object(args)
		if err == nil && len(rest) > more {
			err = fmt.Errorf("unexpected argument %q", rest[more])
		}
		return err
	}
}

// shortNames are those of Gateway API's definitions.
var shortNames = map[string][]string{
	hierarchy.KindGatewayClass: {"gc"},
	hierarchy.KindGateway:      {"gtw", "gw"},
}

// words are the ways to name a kind: its name, singular, plural and short
// names, each also with the group behind it.
func words(kinds *manifest.Kinds, k api.PolicyKind) []string {
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: k.Group, Kind: k.Kind})
	out := append([]string{plural.Resource, singular.Resource, strings.ToLower(k.Kind)}, kinds.Names(k)...)
	if k.Group == api.GatewayGroup {
		out = append(out, shortNames[k.Kind]...)
	}
	for _, word := range slices.Clone(out) {
		out = append(out, word+"."+k.Group)
	}
	return out
}

// kind returns the kind that a word names.
func (s *scene) kind(word string) (api.PolicyKind, error) {
	known := hierarchyKinds()
	for _, k := range s.kinds.All() {
		known = append(known, k.Ref())
	}
	var found []api.PolicyKind
	for _, k := range known {
		if slices.Contains(words(s.kinds, k), strings.ToLower(word)) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return api.PolicyKind{}, fmt.Errorf("kind %q is not known; known are %s", word, kindList(known))
	default:
		return api.PolicyKind{}, fmt.Errorf("kind %q may be any of %s; write it with its group", word, kindList(found))
	}
}

func kindList(kinds []api.PolicyKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}

// find returns the objects of a kind and name: the one in the namespace, or
// with everywhere those in all.
func (s *scene) find(word, name string, everywhere bool) ([]store.Object, error) {
	kind, err := s.kind(word)
	if err != nil {
		return nil, err
	}
	var found []store.Object
	var others []string
	for o := range s.view.Objects(kind) {
		ref := o.Ref()
		switch {
		case ref.Name != name:
		case everywhere || ref.Namespace == "" || ref.Namespace == s.namespace:
			found = append(found, o)
		default:
			others = append(others, ref.Namespace)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
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

// hierarchyKinds are the kinds of objects that paths are made of, and those
// that decide on them.
func hierarchyKinds() []api.PolicyKind {
	out := []api.PolicyKind{{Kind: hierarchy.KindNamespace}, {Kind: hierarchy.KindService}}
	for _, kind := range hierarchy.GatewayKinds {
		out = append(out, api.PolicyKind{Group: api.GatewayGroup, Kind: kind})
	}
	return out
}
