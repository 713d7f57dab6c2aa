package v1alpha1

import (
	"cmp"
	"strings"
)

// Ref identifies an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Key returns "namespace/name", or the name of a cluster-scoped object.
func (r Ref) Key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// String returns "Kind namespace/name", the form used in messages.
func (r Ref) String() string { return strings.TrimSpace(r.Kind + " " + r.Key()) }

// PolicyKind returns the group and kind of the object.
func (r Ref) PolicyKind() PolicyKind { return PolicyKind{Group: r.Group, Kind: r.Kind} }

// CompareRefs orders by group, kind, namespace and name.
func CompareRefs(a, b Ref) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group),
		strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}

// PolicyKind is the group and kind of policies, or of other objects.
type PolicyKind struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
}

// String returns "Kind.group".
func (k PolicyKind) String() string {
	if k.Group == "" {
		return k.Kind
	}
	return k.Kind + "." + k.Group
}

// ComparePolicyKinds orders by group, then kind.
func ComparePolicyKinds(a, b PolicyKind) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind))
}

// PathElement is one step of a path from a root to a leaf.
type PathElement struct {
	// Kind is GatewayClass, Namespace, Gateway, ListenerSet, Listener, a
	// route's kind, that followed by Rule, or a backend's kind. The path of a
	// mesh starts with the Service that is the route's parent.
	Kind string `json:"kind"`
	// Namespace and Name are those of the object. A listener has those of its
	// Gateway or ListenerSet, a rule those of its route.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Section is the name of the listener, the name of the rule or rule-N, or the
	// port number of a Service.
	Section string `json:"section,omitempty"`
	// Index is the index of a rule in spec.rules, from 0. It identifies the rule.
	Index *int `json:"index,omitempty"`
	// Client is the namespace of the clients, on paths of consumers in a mesh.
	Client string `json:"client,omitempty"`
	// Member is the item of a list of the rule, such as filters[1], if a policy kind
	// controls a field of each item.
	Member string `json:"member,omitempty"`
}

// String returns the element in the form used in messages.
func (e PathElement) String() string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + e.Name
	}
	if e.Section != "" {
		name += "#" + e.Section
	}
	if e.Member != "" {
		name += "." + e.Member
	}
	if e.Client != "" {
		name += " (clients in " + e.Client + ")"
	}
	return strings.TrimSpace(e.Kind + " " + name)
}

// PathText returns a path on one line, such as "Gateway infra/edge#http > HTTPRoute
// app/toystore#toys". Classes and namespaces are omitted unless they are the last element.
func PathText(path []PathElement) string {
	var parts []string
	for i, e := range path {
		switch {
		case (e.Kind == "GatewayClass" || e.Kind == "Namespace") && i < len(path)-1:
		case len(parts) > 0 && e.Section != "" && e.IsSection():
			parts[len(parts)-1] += "#" + e.SectionText()
		default:
			parts = append(parts, e.String())
		}
	}
	return strings.Join(parts, " > ")
}

// IsSection reports whether the element is a section of the one before it.
func (e PathElement) IsSection() bool {
	return e.Kind == "Listener" || strings.HasSuffix(e.Kind, "RouteRule")
}

// SectionText returns the name of a listener or a rule, or of an item of a list of the rule.
func (e PathElement) SectionText() string {
	if e.Member == "" {
		return e.Section
	}
	return e.Section + "." + e.Member
}

// ComparePaths orders paths element by element.
func ComparePaths(a, b []PathElement) int {
	for i := range min(len(a), len(b)) {
		if c := compareElements(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareElements(a, b PathElement) int {
	return cmp.Or(
		strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		cmp.Compare(index(a), index(b)),
		strings.Compare(a.Section, b.Section),
		strings.Compare(a.Client, b.Client),
		strings.Compare(a.Member, b.Member),
	)
}

func index(e PathElement) int {
	if e.Index == nil {
		return -1
	}
	return *e.Index
}
