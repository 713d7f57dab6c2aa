package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// Newest is the creation time of an object that has none: it is newer than any other.
const Newest int64 = math.MaxInt64

// Undated is the creation time of an object that exists and has none: all such were created
// together, after those that have a time and before any write.
const Undated = Newest - 1

// Dated reports whether the route has a creation time.
func (r *Route) Dated() bool { return r.Created != Newest && r.Created != Undated }

// Route has the fields of a route that paths depend on.
type Route struct {
	Kind            string
	Namespace, Name string
	// Created is in seconds since 1970, or Newest. Of two routes that match a request
	// equally, the older one serves it.
	Created int64
	Labels  labels.Set
	// Annotations without those that only tools read.
	Annotations map[string]string
	// Hostnames are in lower case, empty for any.
	Hostnames []string
	Parents   []Parent
	// Unread are the parents of unsupported kinds, each once. The paths of their
	// traffic are unknown. DefaultGateways is one of them if the route uses these.
	Unread []api.Ref
	Rules  []Rule
	// Awaited is set if the route does not exist: see AwaitedRoute.
	Awaited bool

	spec       json.RawMessage
	decodeOnce sync.Once
	decoded    any // spec, decoded on first use
	memo       sync.Map
	matches    atomic.Pointer[matchSet]
}

// DefaultGateways stands for the default gateways, by which a route comes in if its
// useDefaultGateways says so. They are experimental and not supported.
var DefaultGateways = api.Ref{Kind: "default gateways"}

// UsesDefaultGateways reports whether the route comes in by default gateways.
func (r *Route) UsesDefaultGateways() bool { return slices.Contains(r.Unread, DefaultGateways) }

// Ref names the route.
func (r *Route) Ref() api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Parent is a parentRef to a Gateway, a ListenerSet, an XListenerSet or a Service.
// The group follows from the kind.
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
		r.Group = KindOf(p.Kind).Group
	}
	return r
}

// Is reports whether the parent refers to an object, whatever the section and port.
func (p Parent) Is(kind, namespace, name string) bool {
	return p.Kind == kind && p.Namespace == namespace && p.Name == name
}

// Rule is a rule of a route. Its identity is its position.
type Rule struct {
	Name string
	// Backends that it refers to, each once.
	Backends []Backend
	// Extensions are the objects of its filters of type ExtensionRef, each once.
	Extensions []api.Ref

	zeroWeight []Backend
	matches    json.RawMessage
}

// Serves reports whether the rule sends requests to a backend: it has a backendRef to
// it with a weight other than 0.
func (r *Rule) Serves(b Backend) bool {
	return slices.Contains(r.Backends, b) && !slices.Contains(r.zeroWeight, b)
}

// Backend is a backend of a rule: a Service, or an object of any other kind.
type Backend struct {
	Object api.Ref
	// Port number, 0 where the kind has none.
	Port int32
}

// Spec returns the route's spec as decoded JSON, its rules defaulted as by the API
// server. It is shared: do not edit.
func (r *Route) Spec() any {
	r.decodeOnce.Do(func() {
		spec, _ := decode.Object(r.spec) // it was valid before; it may be empty
		r.decoded = defaultRules(r.Kind, spec)
	})
	return r.decoded
}

// Same reports whether two routes have the same reference, JSON of the spec, labels and
// annotations.
func (r *Route) Same(o *Route) bool {
	return r.Ref() == o.Ref() && bytes.Equal(r.spec, o.spec) &&
		maps.Equal(r.Labels, o.Labels) && maps.Equal(r.Annotations, o.Annotations)
}

// RuleName returns the name of a rule in output: its own, or rule-N counted from 1.
func (r *Route) RuleName(i int) string {
	if r.Rules[i].Name != "" {
		return r.Rules[i].Name
	}
	return fmt.Sprintf("rule-%d", i+1)
}

// RuleAt reports whether a target's sectionName selects the i-th rule: by its name, or
// as rule-N if it has no name and no rule is named so (SEMANTICS section 5).
func (r *Route) RuleAt(section string, i int) bool {
	if r.Rules[i].Name != "" {
		return r.Rules[i].Name == section
	}
	return r.RuleName(i) == section && !slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.Name == section })
}

// HasSection reports whether a section selects some rule of the route.
func (r *Route) HasSection(section string) bool {
	for i := range r.Rules {
		if r.RuleAt(section, i) {
			return true
		}
	}
	return false
}

// PortsOf returns the ports of a service that the route has as parents, each once, or
// only 0 for all ports. It ignores a reference to a port that the service does not
// have, by number or by sectionName.
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

// SameRequests reports whether two versions of a route attach to the same listeners, and
// have rules of the same names that match the same requests.
func (r *Route) SameRequests(o *Route) bool {
	return slices.Equal(r.Parents, o.Parents) && slices.Equal(r.Hostnames, o.Hostnames) && sameRules(r, o)
}

func sameMatchesJSON(r, o *Route) bool {
	return slices.EqualFunc(r.Rules, o.Rules, func(a, b Rule) bool { return bytes.Equal(a.matches, b.matches) })
}

// Memoize returns the value that is stored with the route under a key, and computes it
// the first time.
func (r *Route) Memoize(key any, make func() any) any {
	if v, ok := r.memo.Load(key); ok {
		return v
	}
	v, _ := r.memo.LoadOrStore(key, make())
	return v
}

// sameRules reports whether the rules have the same names and the same JSON of their
// matches, as after most updates of a route.
func sameRules(before, after *Route) bool {
	return sameMatchesJSON(before, after) && slices.EqualFunc(before.Rules, after.Rules, func(a, b Rule) bool { return a.Name == b.Name })
}

// readsRequests reports whether the rules of the route select requests, and not
// connections.
func (r *Route) readsRequests() bool { return r.Kind == KindHTTPRoute || r.Kind == KindGRPCRoute }

// onPort reports whether the route has a port of a service as a parent.
func (r *Route) onPort(s *Service, port int32) bool {
	ports := r.PortsOf(s)
	return slices.Contains(ports, 0) || slices.Contains(ports, port)
}

// compareAge orders routes: the oldest one first, then by name.
func compareAge(a, b *Route) int {
	if a == b {
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.Created, b.Created),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.Kind, b.Kind),
	)
}

// Precedes reports whether a route comes before another one whose matches are the same: it
// is older, or as old and first by name.
func (r *Route) Precedes(o *Route) bool { return compareAge(r, o) < 0 }

// counts reports whether the route takes part where only those of one kind of routes that
// read requests do, "" for all.
func counts(r *Route, kind string) bool {
	return kind == "" || r.Kind == kind || !r.readsRequests()
}
