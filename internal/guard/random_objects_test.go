package guard_test

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/worlds"
)

// The objects of a random world, as the second implementation sees them. They
// are data alone: their JSON is their copy.
type (
	plainName struct{ Kind, Namespace, Name string }

	plainClass struct{ plainName }

	plainNamespace struct {
		plainName
		Team, Zone string
	}

	plainListener struct {
		Name, Host string
		Port       int
		TCP        bool // else HTTP
		// From is All, Same, or the team of the namespaces that it takes.
		From string
	}

	plainGateway struct {
		plainName
		Team, Class, Sets string
		Listeners         []plainListener
	}

	plainSet struct {
		plainName
		Team, GatewayNamespace, Gateway string
		Created                         int // day of a month
		Listeners                       []plainListener
	}

	plainParent struct{ Kind, Namespace, Name, Section string }

	plainRule struct {
		Name     string
		Matches  []string // "[GET ]PATH[ h]" or "[GET ]~EXPRESSION[ h]", the last for a header
		Backends []string // Services of the route's namespace
		Off      []string // those of them with a weight of 0
	}

	plainRoute struct {
		plainName
		Team    string
		Created int // day of a month
		Hosts   []string
		Parents []plainParent
		Rules   []plainRule
	}

	plainService struct {
		plainName
		Ports []int
	}

	plainGrant struct {
		plainName
		From, To string // a namespace, the name of a gateway or "" for all
	}

	plainTarget struct {
		Kind, Namespace, Name, Section string
		// Team selects by label in the policy's namespace, and in all others if From is
		// All, or in those of the zone that it names.
		Team, From string
	}

	plainBlock struct {
		Atomic bool
		When   string
		Rules  map[string]int
	}

	plainPolicy struct {
		plainName
		Created                   int // day of a month
		Targets                   []plainTarget
		Defaults, Bare, Overrides plainBlock
	}
)

// plainObject is one of these.
type plainObject interface {
	key() plainName
	doc() yamlObject
}

type yamlObject = map[string]any

func (n plainName) key() plainName { return n }

func (n plainName) String() string {
	return strings.TrimSpace(n.Kind + " " + n.Namespace + "/" + n.Name)
}

// object is the object with its metadata and a spec.
func (n plainName) object(team string, spec yamlObject) yamlObject {
	meta := yamlObject{"name": n.Name}
	if n.Namespace != "" {
		meta["namespace"] = n.Namespace
	}
	if team != "" {
		meta["labels"] = yamlObject{"team": team}
	}
	return yamlObject{"kind": n.Kind, "metadata": meta, "spec": spec}
}

// doc is a class of which d is that of an implementation that needs all backends.
func (c plainClass) doc() yamlObject {
	controllers := map[string]string{"d": "traefik.io/gateway-controller"}
	return c.object("", yamlObject{"controllerName": controllers[c.Name]})
}

func (n plainNamespace) doc() yamlObject {
	labels := yamlObject{}
	for key, value := range map[string]string{"team": n.Team, "zone": n.Zone} {
		if value != "" {
			labels[key] = value
		}
	}
	out := n.object("", nil)
	out["metadata"].(yamlObject)["labels"] = labels
	return out
}

func listenersOf(all []plainListener) []any {
	var out []any
	for _, l := range all {
		doc := yamlObject{"name": l.Name, "port": l.Port, "protocol": l.protocol(), "allowedRoutes": yamlObject{"namespaces": fromOf(l.From)}}
		if l.Host != "" {
			doc["hostname"] = l.Host
		}
		out = append(out, doc)
	}
	return out
}

func (l plainListener) protocol() string {
	if l.TCP {
		return "TCP"
	}
	return "HTTP"
}

func fromOf(from string) yamlObject {
	if slices.Contains([]string{"All", "Same", "None"}, from) {
		return yamlObject{"from": from}
	}
	return yamlObject{"from": "Selector", "selector": yamlObject{"matchLabels": yamlObject{"team": from}}}
}

func (g plainGateway) doc() yamlObject {
	return g.object(g.Team, yamlObject{
		"gatewayClassName": g.Class, "listeners": listenersOf(g.Listeners),
		"allowedListeners": yamlObject{"namespaces": fromOf(g.Sets)},
	})
}

func (s plainSet) doc() yamlObject {
	out := s.object(s.Team, yamlObject{"parentRef": yamlObject{"namespace": s.GatewayNamespace, "name": s.Gateway}, "listeners": listenersOf(s.Listeners)})
	out["metadata"].(yamlObject)["creationTimestamp"] = fmt.Sprintf("2026-01-%02dT00:00:00Z", s.Created)
	return out
}

func (r plainRoute) doc() yamlObject {
	var parents, rules, hosts []any
	for _, p := range r.Parents {
		doc := yamlObject{"kind": p.Kind, "namespace": p.Namespace, "name": p.Name}
		if p.Kind == "Service" {
			doc["group"] = ""
		}
		if p.Section != "" {
			doc["sectionName"] = p.Section
		}
		parents = append(parents, doc)
	}
	for _, rule := range r.Rules {
		var matches, backends []any
		for _, m := range rule.Matches {
			matches = append(matches, matchDoc(m))
		}
		for _, b := range rule.Backends {
			ref := yamlObject{"name": b, "port": 80}
			if slices.Contains(rule.Off, b) {
				ref["weight"] = 0
			}
			backends = append(backends, ref)
		}
		doc := yamlObject{"backendRefs": backends}
		if r.Kind != tcpRoute {
			doc["matches"] = matches
		}
		if rule.Name != "" {
			doc["name"] = rule.Name
		}
		rules = append(rules, doc)
	}
	for _, h := range r.Hosts {
		hosts = append(hosts, h)
	}
	spec := yamlObject{"parentRefs": parents, "rules": rules}
	if r.Kind != tcpRoute {
		spec["hostnames"] = hosts
	}
	out := r.object(r.Team, spec)
	out["metadata"].(yamlObject)["creationTimestamp"] = fmt.Sprintf("2026-01-%02dT00:00:00Z", r.Created)
	return out
}

// tcpRoute is the kind of routes that take whole connections. They are here as routes of one
// rule for all paths, without hostnames.
const tcpRoute = "TCPRoute"

// normal is an object without what its protocol does not have.
func normal(o plainObject) plainObject {
	switch o := o.(type) {
	case plainRoute:
		if o.Kind == tcpRoute {
			o.Hosts, o.Rules = nil, slices.Clone(o.Rules[:1])
			o.Rules[0].Matches = []string{"/"}
		}
		return o
	case plainGateway:
		o.Listeners = normalListeners(o.Listeners)
		return o
	case plainSet:
		o.Listeners = normalListeners(o.Listeners)
		return o
	default:
		return o
	}
}

func normalListeners(all []plainListener) []plainListener {
	out := slices.Clone(all)
	for i := range out {
		if out[i].TCP {
			out[i].Host = ""
		}
	}
	return out
}

func matchDoc(text string) yamlObject {
	m := readMatch(text)
	doc := yamlObject{"path": yamlObject{"value": m.path}}
	if m.regex != nil {
		doc["path"] = yamlObject{"type": "RegularExpression", "value": m.path}
	}
	if m.method != "" {
		doc["method"] = m.method
	}
	switch m.header {
	case "h":
		doc["headers"] = []any{yamlObject{"name": "h", "value": "1"}}
	case "~h":
		doc["headers"] = []any{yamlObject{"name": "h", "type": "RegularExpression", "value": "1+"}}
	}
	return doc
}

func (s plainService) doc() yamlObject {
	var ports []any
	for _, p := range s.Ports {
		ports = append(ports, yamlObject{"name": fmt.Sprint("p", p), "port": p})
	}
	return s.object("", yamlObject{"ports": ports})
}

func (g plainGrant) doc() yamlObject {
	to := yamlObject{"group": api.GatewayGroup, "kind": "Gateway"}
	if g.To != "" {
		to["name"] = g.To
	}
	return g.object("", yamlObject{
		"from": []any{yamlObject{"group": worlds.Group, "kind": "AtRule", "namespace": g.From}}, "to": []any{to},
	})
}

func (b plainBlock) doc() yamlObject {
	out := yamlObject{"strategy": "merge"}
	if b.Atomic {
		out["strategy"] = "atomic"
	}
	if b.When != "" {
		out["when"] = b.When
	}
	for key, value := range b.Rules {
		out[key] = value
	}
	return out
}

func (p plainPolicy) doc() yamlObject {
	spec := yamlObject{}
	if len(p.Bare.Rules) > 0 {
		spec = p.Bare.doc()
	}
	if len(p.Defaults.Rules) > 0 {
		spec["defaults"] = p.Defaults.doc()
	}
	if len(p.Overrides.Rules) > 0 {
		spec["overrides"] = p.Overrides.doc()
	}
	var targets []any
	for _, t := range p.Targets {
		targets = append(targets, t.doc())
	}
	spec["targetRefs"] = targets
	out := p.object("", spec)
	out["metadata"].(yamlObject)["creationTimestamp"] = fmt.Sprintf("2026-01-%02dT00:00:00Z", p.Created)
	return out
}

// rules are what a policy sets, whatever its name and targets.
func (p plainPolicy) rules() string {
	return textOf(plainPolicy{Defaults: p.Defaults, Bare: p.Bare, Overrides: p.Overrides})
}

func (t plainTarget) doc() yamlObject {
	out := yamlObject{"kind": t.Kind}
	if t.Kind == "Service" || t.Kind == "Namespace" {
		out["group"] = ""
	}
	if t.Section != "" {
		out["sectionName"] = t.Section
	}
	if t.Team == "" {
		out["name"] = t.Name
		if t.Namespace != "" {
			out["namespace"] = t.Namespace
		}
		return out
	}
	out["selector"] = yamlObject{"matchLabels": yamlObject{"team": t.Team}}
	switch t.From {
	case "":
	case "All":
		out["namespaces"] = yamlObject{"from": "All"}
	default:
		out["namespaces"] = yamlObject{"from": "Selector", "selector": yamlObject{"matchLabels": yamlObject{"zone": t.From}}}
	}
	return out
}
