package commands

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// shortNames are the short names of Kubernetes and Gateway API kinds.
var shortNames = map[api.PolicyKind][]string{
	{Kind: gateway.KindNamespace}:                               {"ns"},
	{Kind: gateway.KindService}:                                 {"svc"},
	{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass}:   {"gc"},
	{Group: api.GatewayGroup, Kind: gateway.KindGateway}:        {"gtw", "gw"},
	{Group: api.GatewayGroup, Kind: gateway.KindListenerSet}:    {"lset"},
	gateway.KindOf(gateway.KindXListenerSet):                    {"lset"},
	{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant}: {"refgrant"},
}

// plural guesses the resource name of a kind. The guess of apimachinery turns
// Gateway into gatewaies.
func plural(k api.PolicyKind) string {
	name := strings.ToLower(k.Kind)
	if before, ok := strings.CutSuffix(name, "y"); ok && strings.ContainsAny(before[max(0, len(before)-1):], "aeiou") {
		return name + "s"
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: k.Group, Kind: k.Kind})
	return resource.Resource
}

// kindAliases returns the names of a kind: its own, plural and short names, and
// those of its definition, each also with the group appended.
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

// kind returns the kind of a name. If several kinds have the name, it is the only
// one of them that is present.
func (s *source) kind(word string) (api.PolicyKind, error) {
	known := s.kinds.Objects()
	found := s.kindsNamed(word, known)
	present := slices.DeleteFunc(slices.Clone(found), func(k api.PolicyKind) bool { return !s.isPresent(k) })
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(present) == 1:
		return present[0], nil
	case len(found) == 0:
		hint := ""
		if meant := cmp.Or(editdistance.Closest(strings.ToLower(word), s.kindWords(known)), s.kindEnding(word, known)); meant != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", meant)
		}
		present = slices.DeleteFunc(known, func(k api.PolicyKind) bool { return !s.isPresent(k) })
		return api.PolicyKind{}, fmt.Errorf("%w%s: must be one of %s, or a kind listed by kubectl overrule profiles --all", unknownKind(word), hint, kindList(present))
	default:
		return api.PolicyKind{}, fmt.Errorf("kind %q is ambiguous: specify one of %s", word, kindList(found))
	}
}

// kindEnding returns the name of the kind with the most objects of those that end in a word, such
// as httproute for route; "" for none.
func (s *source) kindEnding(word string, known []api.PolicyKind) string {
	var out api.PolicyKind
	for _, k := range known {
		if len(word) > 2 && strings.HasSuffix(strings.ToLower(k.Kind), strings.ToLower(word)) && (out.Kind == "" || s.view.Count(k) > s.view.Count(out)) {
			out = k
		}
	}
	return strings.ToLower(out.Kind)
}

var errUnknownKind = errors.New("unknown kind")

func unknownKind(word string) error { return fmt.Errorf("%w %q", errUnknownKind, word) }

// kindWords returns the names of kinds, those that are present first.
func (s *source) kindWords(known []api.PolicyKind) []string {
	var out []string
	for _, present := range []bool{true, false} {
		for _, k := range known {
			if s.isPresent(k) == present {
				out = append(out, kindAliases(k, s.kinds.Names(k))...)
			}
		}
	}
	return out
}

// kindsNamed returns the known kinds of a name.
func (s *source) kindsNamed(word string, known []api.PolicyKind) []api.PolicyKind {
	var found []api.PolicyKind
	for _, k := range known {
		if slices.Contains(kindAliases(k, s.kinds.Names(k)), strings.ToLower(word)) {
			found = append(found, k)
		}
	}
	return found
}

// policyKind returns the policy kind of a name.
func (s *source) policyKind(word string) (*policykind.Kind, error) {
	ref, err := s.kind(word)
	if err != nil {
		return nil, err
	}
	k := s.kinds.Of(ref)
	if k == nil {
		return nil, fmt.Errorf("kind %q is not a policy kind; see kubectl overrule profiles", word)
	}
	return k, nil
}

// isPresent reports whether a kind is installed on the cluster, or occurs in the
// manifests. Kinds of the hierarchy are always present, except that of ListenerSet
// and XListenerSet, which share a short name, one without objects is not if the
// other has some.
func (s *source) isPresent(ref api.PolicyKind) bool {
	k, x := s.kinds.Of(ref), gateway.KindOf(gateway.KindXListenerSet)
	switch {
	case ref == gateway.KindOf(gateway.KindListenerSet):
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
	return strings.Join(printers.Texts(kinds, api.PolicyKind.String), ", ")
}
