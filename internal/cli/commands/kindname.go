package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// shortNames are those of Kubernetes' and Gateway API's definitions.
var shortNames = map[api.PolicyKind][]string{
	{Kind: gateway.KindNamespace}:                               {"ns"},
	{Kind: gateway.KindService}:                                 {"svc"},
	{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}:   {"gc"},
	{Group: api.GatewayGroup, Kind: gateway.KindGateway}:        {"gtw", "gw"},
	{Group: api.GatewayGroup, Kind: gateway.KindListenerSet}:    {"lset"},
	gateway.GatewayKind(gateway.KindXListenerSet):               {"lset"},
	{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant}: {"refgrant"},
}

// plural guesses the name of a kind's resource. The usual guess makes gatewaies
// of gateways.
func plural(k api.PolicyKind) string {
	name := strings.ToLower(k.Kind)
	if before, ok := strings.CutSuffix(name, "y"); ok && strings.ContainsAny(before[max(0, len(before)-1):], "aeiou") {
		return name + "s"
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: k.Group, Kind: k.Kind})
	return resource.Resource
}

// words are the ways to name a kind: its name, plural and short names, and
// those that its definition gives, each also with the group behind it.
func kindAliases(k api.PolicyKind, defined []string) []string {
	out := append([]string{strings.ToLower(k.Kind), plural(k)}, defined...)
	out = append(out, shortNames[k]...)
	if k.Group == "" {
		return out
	}
	for _, word := range slices.Clone(out) {
		out = append(out, word+"."+k.Group)
	}
	return out
}

// kind returns the kind that a word names: of several, the one that there is.
func (s *source) kind(word string) (api.PolicyKind, error) {
	known := hierarchyKinds()
	for _, k := range s.kinds.All() {
		known = append(known, k.Ref())
	}
	found := s.kindsNamed(word, known)
	here := slices.DeleteFunc(slices.Clone(found), func(k api.PolicyKind) bool { return !s.isPresent(k) })
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(here) == 1:
		return here[0], nil
	case len(found) == 0:
		here = slices.DeleteFunc(known, func(k api.PolicyKind) bool { return !s.isPresent(k) })
		return api.PolicyKind{}, fmt.Errorf("%w; known are %s, and the kinds that kubectl overrule profiles --all shows", unknownKind(word), kindList(here))
	default:
		return api.PolicyKind{}, fmt.Errorf("kind %q may be any of %s; write it with its group", word, kindList(found))
	}
}

// errKind tells that a word names no kind.
var errUnknownKind = errors.New("is not known")

func unknownKind(word string) error { return fmt.Errorf("kind %q %w", word, errUnknownKind) }

// kindsNamed returns the kinds that a word names.
func (s *source) kindsNamed(word string, known []api.PolicyKind) []api.PolicyKind {
	var found []api.PolicyKind
	for _, k := range known {
		if slices.Contains(kindAliases(k, s.kinds.Names(k)), strings.ToLower(word)) {
			found = append(found, k)
		}
	}
	return found
}

// policyKind returns the policy kind that a word names.
func (s *source) policyKind(word string) (*policykind.Kind, error) {
	ref, err := s.kind(word)
	if err != nil {
		return nil, err
	}
	k := s.kinds.Of(ref)
	if k == nil {
		return nil, fmt.Errorf("kind %q is not one of policies; see kubectl overrule profiles", word)
	}
	return k, nil
}

// occurs reports whether there is anything of a kind where one looks: those of
// the hierarchy are everywhere, but that ListenerSets and XListenerSets, which
// share a short name, each give way to the other.
func (s *source) isPresent(ref api.PolicyKind) bool {
	k, x := s.kinds.Of(ref), gateway.GatewayKind(gateway.KindXListenerSet)
	switch {
	case ref == gateway.GatewayKind(gateway.KindListenerSet):
		return s.view.Count(ref) > 0 || s.view.Count(x) == 0
	case ref == x:
		return s.view.Count(ref) > 0
	case k == nil:
		return true
	case s.installed != nil:
		return s.installed[ref]
	}
	return s.view.Count(ref) > 0 || s.kinds.Defined(ref) || k.Source == policykind.Cluster
}

func kindList(kinds []api.PolicyKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}

// hierarchyKinds are the kinds of objects that paths are made of, and those
// that decide on them.
func hierarchyKinds() []api.PolicyKind {
	out := []api.PolicyKind{{Kind: gateway.KindNamespace}, {Kind: gateway.KindService}}
	for _, kind := range gateway.GatewayKinds {
		out = append(out, gateway.GatewayKind(kind))
	}
	return out
}
