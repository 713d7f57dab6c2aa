package guard_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The levels of the hierarchy, from the root.
const (
	atClass = iota
	atGatewayNamespace
	atGateway
	atSet
	atListener
	atRouteNamespace
	atRoute
	atRule
	atBackend
	atPort
)

// plainPath is a path of a kind. A kind whose paths end above routes has none.
type plainPath struct {
	kind     string
	gateway  plainGateway
	set      *plainSet // nil for a listener of the gateway's own
	listener plainListener
	route    *plainRoute
	rule     int
	backend  string
	unread   bool   // it comes in by a parent that is not read
	was      string // entry before the change, of one after it
}

// entry names what a path comes in by.
func (p plainPath) entry() string {
	set := ""
	if p.set != nil {
		set = p.set.key().String()
	}
	return strings.Join([]string{p.gateway.key().String(), set, p.listener.Name}, " ")
}

// name identifies a path; a rule is identified by its place before the change.
func (p plainPath) name(rule int) string { return p.nameAt(p.entry(), rule) }

func (p plainPath) nameAt(entry string, rule int) string {
	route := ""
	if p.route != nil {
		route = p.route.key().String()
	}
	return fmt.Sprint(p.kind, " ", entry, " ", route, " ", rule, " ", p.backend)
}

// owner is what a listener belongs to.
func (p plainPath) owner() plainName {
	if p.set != nil {
		return p.set.key()
	}
	return p.gateway.key()
}

func (w plainWorld) team(namespace string) string {
	n, _ := get[plainNamespace](w, plainName{Kind: "Namespace", Name: namespace})
	return n.Team
}

func (w plainWorld) zone(namespace string) string {
	n, _ := get[plainNamespace](w, plainName{Kind: "Namespace", Name: namespace})
	return n.Zone
}

// admits reports whether a rule of an object in a namespace lets in one from
// another.
func (w plainWorld) admits(from, own, other string) bool {
	switch from {
	case "All":
		return true
	case "Same":
		return own == other
	case "None":
		return false
	default:
		return w.team(other) == from
	}
}

// entries are the paths of a kind as far as their listeners, in the order of precedence.
func (w plainWorld) entries(kind string) []plainPath {
	var out []plainPath
	for _, g := range all[plainGateway](w) {
		for _, l := range g.Listeners {
			out = append(out, plainPath{kind: kind, gateway: g, listener: l, rule: -1})
		}
		sets := all[plainSet](w)
		slices.SortStableFunc(sets, func(a, b plainSet) int { return a.Created - b.Created })
		for _, s := range sets {
			if s.GatewayNamespace != g.Namespace || s.Gateway != g.Name || !w.admits(g.Sets, g.Namespace, s.Namespace) {
				continue
			}
			for _, l := range s.Listeners {
				out = append(out, plainPath{kind: kind, gateway: g, set: &s, listener: l, rule: -1})
			}
		}
	}
	return out
}

// pairEntries sets the entries before a change of paths after it: the listener of the same
// port and hostname, rather that of the same name, else of the same protocol; else that of
// the same name.
func pairEntries(before, after plainWorld, paths []plainPath) {
	pairs, taken := make(map[string]string), make(map[string]bool)
	same := func(x, y plainPath) bool {
		return x.listener.Port == y.listener.Port && x.listener.Host == y.listener.Host
	}
	sameProtocol := func(x, y plainPath) bool { return same(x, y) && x.listener.TCP == y.listener.TCP }
	for _, fits := range []func(x, y plainPath) bool{
		func(x, y plainPath) bool { return same(x, y) && x.entry() == y.entry() },
		sameProtocol,
		func(x, y plainPath) bool { return x.entry() == y.entry() },
	} {
		for _, y := range after.entries("AtRule") {
			for _, x := range before.entries("AtRule") {
				if _, paired := pairs[y.entry()]; !paired && !taken[x.entry()] && x.gateway.key() == y.gateway.key() && fits(x, y) {
					pairs[y.entry()], taken[x.entry()] = x.entry(), true
				}
			}
		}
	}
	for i := range paths {
		paths[i].was = paths[i].entry()
		if !paths[i].unread {
			paths[i].was = pairs[paths[i].was]
		}
	}
}

// takes reports whether a route is on the listener of a path.
func (w plainWorld) takes(p plainPath, r plainRoute) bool {
	named := slices.ContainsFunc(r.Parents, func(parent plainParent) bool {
		return plainName{parent.Kind, parent.Namespace, parent.Name} == p.owner() && (parent.Section == "" || parent.Section == p.listener.Name)
	})
	p.route = &r
	return named && p.listener.TCP == (r.Kind == tcpRoute) && w.admits(p.listener.From, p.owner().Namespace, r.Namespace) && p.hosts() != ""
}

// hosts shows which of some names reach a path; there are more, but none that
// these worlds distinguish from one of them.
func (p plainPath) hosts() string {
	var out string
	for _, name := range []string{"x.example", "y.example", "z.example", "none.example", "far.other", "none.at.all"} {
		listener := matches(p.listener.Host, name)
		route := p.route == nil || len(p.route.Hosts) == 0 ||
			slices.ContainsFunc(p.route.Hosts, func(h string) bool { return matches(h, name) })
		if listener && route {
			out += name + " "
		}
	}
	return out
}

func matches(pattern, name string) bool {
	return pattern == "" || pattern == name || strings.HasPrefix(pattern, "*") && strings.HasSuffix(name, pattern[1:])
}

func shareHosts(p, q plainPath) bool {
	return slices.ContainsFunc(strings.Fields(p.hosts()), func(h string) bool { return slices.Contains(strings.Fields(q.hosts()), h) })
}

// covered reports whether all names that reach a path reach one of the others.
func (p plainPath) covered(others []plainPath) bool {
	return !slices.ContainsFunc(strings.Fields(p.hosts()), func(h string) bool {
		return !slices.ContainsFunc(others, func(o plainPath) bool { return slices.Contains(strings.Fields(o.hosts()), h) })
	})
}

// paths are all paths of a kind.
func (w plainWorld) paths(kind string) []plainPath {
	entries := w.entries(kind)
	if kind == "AtListener" {
		return entries
	}
	var out []plainPath
	for _, p := range entries {
		for _, r := range all[plainRoute](w) {
			if !w.takes(p, r) {
				continue
			}
			p.route = &r
			for i, rule := range r.Rules {
				p.rule = i
				if kind != "AtBackend" {
					p.backend = ""
					out = append(out, p)
					continue
				}
				for _, p.backend = range rule.Backends {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// unreadPaths are those of a kind by a parent that is not read.
func (w plainWorld) unreadPaths(kind string) []plainPath {
	var out []plainPath
	for _, r := range all[plainRoute](w) {
		if kind == "AtListener" || !slices.ContainsFunc(r.Parents, func(p plainParent) bool { return p.Kind == unreadKind }) {
			continue
		}
		for i, rule := range r.Rules {
			if kind != "AtBackend" || len(rule.Backends) > 0 {
				out = append(out, plainPath{kind: kind, route: &r, rule: i, unread: true})
			}
		}
	}
	return out
}

// unreadKind is that of parents that are not read.
const unreadKind = "Mesh"

// plainLayer is a policy on a path.
type plainLayer struct {
	plainPolicy
	level int
}

// layers are the policies on a path, the highest first.
func (w plainWorld) layers(p plainPath) []plainLayer {
	var out []plainLayer
	for _, policy := range all[plainPolicy](w) {
		if policy.Kind != p.kind {
			continue
		}
		for _, t := range policy.Targets {
			for _, level := range w.attached(policy, t, p) {
				known := slices.ContainsFunc(out, func(l plainLayer) bool { return l.key() == policy.key() && l.level == level })
				if !known && (level < atBackend || w.onAllBackends(policy, p)) {
					out = append(out, plainLayer{policy, level})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b plainLayer) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.Created, b.Created), strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	return out
}

// onAllBackends reports whether all backends of the rule of a path have a policy or one with
// its rules, where that is needed.
func (w plainWorld) onAllBackends(policy plainPolicy, p plainPath) bool {
	class := plainName{Kind: "GatewayClass", Name: "d"}
	return p.gateway.Class != class.Name || !w.has(class) || !slices.ContainsFunc(p.route.Rules[p.rule].Backends, func(b string) bool {
		at := p
		at.backend = b
		return !slices.ContainsFunc(all[plainPolicy](w), func(o plainPolicy) bool {
			return o.Kind == policy.Kind && o.rules() == policy.rules() && slices.ContainsFunc(o.Targets, func(t plainTarget) bool {
				return slices.ContainsFunc(w.attached(o, t, at), func(level int) bool { return level >= atBackend })
			})
		})
	})
}

// element is an object of a path with the level of it and of its sections.
type element struct {
	plainName
	team           string
	level, section int
}

// elements are the objects of a path.
func (p plainPath) elements() []element {
	out := []element{
		{plainName{Kind: "GatewayClass", Name: p.gateway.Class}, "", atClass, -1},
		{plainName{Kind: "Namespace", Name: p.gateway.Namespace}, "", atGatewayNamespace, -1},
		{p.gateway.key(), p.gateway.Team, atGateway, atListener},
	}
	if p.set != nil {
		out = append(out, element{p.set.key(), p.set.Team, atSet, atListener})
	}
	if p.route != nil {
		out = append(out, element{plainName{Kind: "Namespace", Name: p.route.Namespace}, "", atRouteNamespace, -1},
			element{p.route.key(), p.route.Team, atRoute, atRule})
	}
	if p.backend != "" {
		out = append(out, element{plainName{"Service", p.route.Namespace, p.backend}, "", atBackend, atPort})
	}
	return out
}

var plainLevels = map[string][]int{
	"AtRule":     {atClass, atGatewayNamespace, atGateway, atSet, atListener, atRouteNamespace, atRoute, atRule},
	"AtRoute":    {atGateway, atListener, atRoute},
	"AtBackend":  {atGateway, atRoute, atBackend, atPort},
	"AtListener": {atGateway, atSet, atListener},
}

// attached returns the levels at which a target of a policy is on a path: one
// namespace may be the gateway's and the route's.
func (w plainWorld) attached(policy plainPolicy, t plainTarget, p plainPath) []int {
	var out []int
	for _, e := range p.elements() {
		if e.Kind != t.Kind || !w.means(policy, t, e) || !w.may(policy, t, e) {
			continue
		}
		level := e.level
		if t.Section != "" {
			level = e.section
			if !w.through(t.Section, e, p) {
				continue
			}
		}
		if slices.Contains(plainLevels[policy.Kind], level) {
			out = append(out, level)
		}
	}
	return out
}

// means reports whether a target is an object, by its name or by its label.
func (w plainWorld) means(policy plainPolicy, t plainTarget, e element) bool {
	if t.Team != "" {
		return e.team == t.Team && (t.From == "All" || e.Namespace == policy.Namespace || t.From != "" && w.zone(e.Namespace) == t.From)
	}
	namespace := cmp.Or(t.Namespace, policy.Namespace)
	if e.Namespace == "" {
		namespace = ""
	}
	return e.Name == t.Name && e.Namespace == namespace
}

// may reports whether a policy may target an object, and whether it is there.
func (w plainWorld) may(policy plainPolicy, t plainTarget, e element) bool {
	switch e.Kind {
	case "GatewayClass":
		return w.has(e.plainName) && policy.Kind == "AtRule"
	case "Namespace":
		return e.Name == policy.Namespace
	case "Service":
		if !w.has(e.plainName) {
			return false
		}
	}
	if t.From != "" && policy.Kind != "AtRule" && policy.Kind != "AtBackend" {
		return false
	}
	switch {
	case e.Namespace == policy.Namespace, policy.Kind == "AtBackend":
		return true
	case policy.Kind != "AtRule":
		return false
	}
	return slices.ContainsFunc(all[plainGrant](w), func(g plainGrant) bool {
		return g.Namespace == e.Namespace && g.From == policy.Namespace && e.Kind == "Gateway" && (g.To == "" || g.To == e.Name)
	})
}

// through reports whether a path goes through a section of an object.
func (w plainWorld) through(section string, e element, p plainPath) bool {
	switch e.Kind {
	case "Gateway", "ListenerSet":
		return p.owner() == e.plainName && p.listener.Name == section
	case "HTTPRoute":
		return p.rule >= 0 && p.route.section(p.rule) == section
	default:
		s, _ := get[plainService](w, e.plainName)
		return section == "p80" && slices.Contains(s.Ports, 80) // to which all routes send
	}
}

// section is the name by which a target means a rule, "" if there is none.
func (r *plainRoute) section(rule int) string {
	if name := r.Rules[rule].Name; name != "" {
		return name
	}
	name := fmt.Sprintf("rule-%d", rule+1)
	if slices.ContainsFunc(r.Rules, func(o plainRule) bool { return o.Name == name }) {
		return ""
	}
	return name
}
