package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// Route is what paths need of a route.
type Route struct {
	Kind            string
	Namespace, Name string
	Labels          labels.Set
	// Annotations but those that only tools read.
	Annotations map[string]string
	// Hostnames are in lower case, none for any.
	Hostnames []string
	Parents   []Parent
	// Unread are the parents of kinds that are not read, each once: by which
	// paths they bring traffic is unknown.
	Unread []api.Ref
	Rules  []Rule
	// WantsDefaultGateways tells that the route asks for default gateways,
	// which are experimental and not read.
	WantsDefaultGateways bool

	spec json.RawMessage // as it stands
	read sync.Once
	tree any // spec, decoded when it is first asked for
	made sync.Map
}

// Ref names the route.
func (r *Route) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Parent is a parentRef to a Gateway, a ListenerSet, an XListenerSet or a Service.
// The kind tells the group.
type Parent struct {
	Kind            string
	Namespace, Name string
	// Section is the listener's name, empty for all.
	Section string
	// Port is the listener's or the service's, 0 for all.
	Port int32
}

// Ref names the parent.
func (p Parent) Ref() api.Ref {
	r := api.Ref{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
	if p.Kind != KindService {
		r.Group = GatewayKind(p.Kind).Group
	}
	return r
}

// Is reports whether the parent is an object, whatever the section and port.
func (p Parent) Is(kind, namespace, name string) bool {
	return p.Kind == kind && p.Namespace == namespace && p.Name == name
}

// Rule is a rule of a route. Its identity is its position.
type Rule struct {
	Name string
	// Backends that it sends traffic to, each once.
	Backends []Backend

	idle    []Backend // those of weight 0
	matches json.RawMessage
}

// Serves reports whether the rule sends requests to a backend: it names it with
// a weight other than 0.
func (r *Rule) Serves(b Backend) bool {
	return slices.Contains(r.Backends, b) && !slices.Contains(r.idle, b)
}

// Backend is a backend of a rule: a Service, or an object of any other kind.
type Backend struct {
	Object api.Ref
	// Port number, 0 where the kind has none.
	Port int32
}

// Spec returns the route's spec as decoded JSON, its rules defaulted as the API
// server would. It is shared: do not edit.
func (r *Route) Spec() any {
	r.read.Do(func() {
		tree, _ := decode.Object(r.spec) // it was read before, unless there is none
		r.tree = defaultRules(r.Kind, tree)
	})
	return r.tree
}

// Same reports whether two routes read the same, letter by letter.
func (r *Route) Same(o *Route) bool {
	return r.Ref() == o.Ref() && bytes.Equal(r.spec, o.spec) &&
		maps.Equal(r.Labels, o.Labels) && maps.Equal(r.Annotations, o.Annotations)
}

// RuleName returns how a rule is shown: its name, or rule-N counted from 1.
func (r *Route) RuleName(i int) string {
	if r.Rules[i].Name != "" {
		return r.Rules[i].Name
	}
	return fmt.Sprintf("rule-%d", i+1)
}

// RuleAt reports whether a target's sectionName means the i-th rule: by its
// name, or as rule-N the unnamed N-th one, unless some rule is really named so
// (SEMANTICS section 5).
func (r *Route) RuleAt(section string, i int) bool {
	if r.Rules[i].Name != "" {
		return r.Rules[i].Name == section
	}
	return r.RuleName(i) == section && !r.named(section)
}

// HasSection reports whether some rule of the route is meant by section.
func (r *Route) HasSection(section string) bool {
	for i := range r.Rules {
		if r.RuleAt(section, i) {
			return true
		}
	}
	return false
}

func (r *Route) named(section string) bool {
	for i := range r.Rules {
		if r.Rules[i].Name == section {
			return true
		}
	}
	return false
}

// MatchRules pairs the rules of a route before and after an edit: by name,
// then by their matches in order, then, for what is left without a name, by
// position. It returns for each rule after its position before, or -1.
func MatchRules(before, after *Route) []int {
	out := make([]int, len(after.Rules))
	if sameRules(before, after) {
		for i := range out {
			out[i] = i
		}
		return out
	}
	taken := make([]bool, len(before.Rules))
	for i := range out {
		out[i] = -1
	}
	pair := func(same func(b, a int) bool) {
		for a := range after.Rules {
			for b := range before.Rules {
				if out[a] < 0 && !taken[b] && same(b, a) {
					out[a], taken[b] = b, true
				}
			}
		}
	}
	pair(func(b, a int) bool {
		return before.Rules[b].Name != "" && before.Rules[b].Name == after.Rules[a].Name
	})
	was, is := before.fingerprints(), after.fingerprints()
	pair(func(b, a int) bool { return was[b] == is[a] })
	pair(func(b, a int) bool {
		return a == b && before.Rules[b].Name == "" && after.Rules[a].Name == ""
	})
	return out
}

// TakesFrom reports whether the i-th rule of a route takes requests that were
// those of the k-th before an edit, and not its own: it has a match which that
// one had, and which it had not itself.
func TakesFrom(before *Route, k int, after *Route, i int) bool {
	theirs, own := before.matchesOf(k), []uint64(nil)
	if was := MatchRules(before, after)[i]; was >= 0 && was != k {
		own = before.matchesOf(was)
	}
	return slices.ContainsFunc(after.matchesOf(i), func(m uint64) bool {
		return slices.Contains(theirs, m) && !slices.Contains(own, m)
	})
}

// GivesMatches reports whether the i-th rule of a route lacks a match that the
// k-th had before an edit.
func GivesMatches(before *Route, k int, after *Route, i int) bool {
	kept := after.matchesOf(i)
	return slices.ContainsFunc(before.matchesOf(k), func(m uint64) bool { return !slices.Contains(kept, m) })
}

// TakesOver reports whether a backend of the i-th rule of a route gets the
// requests that the k-th rule sent to another one before an edit, if the i-th
// takes them. That backend goes on getting them itself where the rule names it;
// else those that the k-th rule had not before get them, or all if there is none.
func TakesOver(before *Route, k int, left Backend, after *Route, i int, b Backend) bool {
	was, is := &before.Rules[k], &after.Rules[i]
	isNew := func(b Backend) bool { return is.Serves(b) && !was.Serves(b) }
	switch {
	case !was.Serves(left) || !is.Serves(b):
		return false
	case is.Serves(left):
		return b == left
	default:
		return isNew(b) || !slices.ContainsFunc(is.Backends, isNew)
	}
}

// sameRules reports whether the rules have the same names and matches, letter
// by letter: the ordinary edit of a route leaves them.
func sameRules(before, after *Route) bool {
	if len(before.Rules) != len(after.Rules) {
		return false
	}
	for i := range before.Rules {
		if before.Rules[i].Name != after.Rules[i].Name || !bytes.Equal(before.Rules[i].matches, after.Rules[i].matches) {
			return false
		}
	}
	return true
}

// fingerprints tell rules without a name apart, before and after an edit.
func (r *Route) fingerprints() []uint64 {
	out := make([]uint64, len(r.Rules))
	for i := range r.Rules {
		out[i] = fingerprint(r.Kind, r.Rules[i].matches)
	}
	return out
}

// fingerprint hashes the matches of a rule, defaulted as the API server would;
// those that cannot be read, as they stand.
func fingerprint(kind string, matches json.RawMessage) uint64 {
	return hashOf(canonical(kind, matches))
}

// matchesOf hashes the matches of a rule one by one.
func (r *Route) matchesOf(rule int) []uint64 {
	var out []uint64
	switch all := canonical(r.Kind, r.Rules[rule].matches).(type) {
	case []gatewayv1.HTTPRouteMatch:
		for i := range all {
			out = append(out, hashOf(all[i]))
		}
	case []gatewayv1.GRPCRouteMatch:
		for i := range all {
			out = append(out, hashOf(all[i]))
		}
		if len(all) == 0 { // every request
			out = append(out, hashOf(gatewayv1.GRPCRouteMatch{}))
		}
	default:
		out = append(out, hashOf(all))
	}
	return out
}

// HTTPMatches returns the matches of the i-th rule of an HTTPRoute as the API
// server stores them, at least one; none for other routes, and where they cannot
// be read.
func (r *Route) HTTPMatches(i int) []gatewayv1.HTTPRouteMatch {
	all, _ := canonical(r.Kind, r.Rules[i].matches).([]gatewayv1.HTTPRouteMatch)
	return all
}

// GRPCMatches is HTTPMatches for a GRPCRoute; a rule without matches, which is for
// every request, has none.
func (r *Route) GRPCMatches(i int) []gatewayv1.GRPCRouteMatch {
	all, _ := canonical(r.Kind, r.Rules[i].matches).([]gatewayv1.GRPCRouteMatch)
	return all
}

// canonical returns the matches of a rule as the API server stores them.
func canonical(kind string, matches json.RawMessage) any {
	switch kind {
	case KindHTTPRoute:
		if m, err := readMatches[gatewayv1.HTTPRouteMatch](matches); err == nil {
			return httpMatches(m)
		}
	case KindGRPCRoute:
		if m, err := readMatches[gatewayv1.GRPCRouteMatch](matches); err == nil {
			return grpcMatches(m)
		}
	}
	return matches
}

// readMatches reads the matches of a rule, which may be left out.
func readMatches[T any](data json.RawMessage) ([]T, error) {
	if len(data) == 0 {
		return nil, nil
	}
	m, err := decode.As[[]T](data)
	return *m, err
}

func hashOf(plain any) uint64 {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(plain) // a hash takes every write, and matches are plain data
	return h.Sum64()
}
