package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

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

	spec       json.RawMessage // as it stands
	decodeOnce sync.Once
	decoded    any // spec, decoded when it is first asked for
	memo       sync.Map
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

	zeroWeight []Backend // those of weight 0
	matches    json.RawMessage
}

// Serves reports whether the rule sends requests to a backend: it names it with
// a weight other than 0.
func (r *Rule) Serves(b Backend) bool {
	return slices.Contains(r.Backends, b) && !slices.Contains(r.zeroWeight, b)
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
	r.decodeOnce.Do(func() {
		tree, _ := decode.Object(r.spec) // it was read before, unless there is none
		r.decoded = defaultRules(r.Kind, tree)
	})
	return r.decoded
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
	return r.RuleName(i) == section && !r.hasRuleNamed(section)
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

func (r *Route) hasRuleNamed(section string) bool {
	for i := range r.Rules {
		if r.Rules[i].Name == section {
			return true
		}
	}
	return false
}

// PortsOf returns the ports by which the route is under a service, each once; 0
// stands for all, and then for the others, too. A reference to a port that the
// service lacks, by number or by sectionName, leads nowhere.
func (r *Route) PortsOf(s *Service) []int32 {
	var out []int32
	for _, p := range r.Parents {
		port := p.Port
		if p.Section != "" {
			if port = s.Port(p.Section); port == 0 || p.Port != 0 && p.Port != port {
				continue
			}
		}
		switch {
		case !p.Is(KindService, s.Namespace, s.Name) || slices.Contains(out, port):
		case port == 0:
			return []int32{0}
		case s.HasPort(port):
			out = append(out, port)
		}
	}
	return out
}

// Memoize returns what was made of the route under a key, making it the first
// time.
func (r *Route) Memoize(key any, make func() any) any {
	if v, ok := r.memo.Load(key); ok {
		return v
	}
	v, _ := r.memo.LoadOrStore(key, make())
	return v
}
