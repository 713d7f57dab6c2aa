package guard_test

import (
	"math/rand/v2"
	"slices"
)

// generator throws the objects of small worlds: few names, so that they meet.
type generator struct {
	*rand.Rand
	// ruled is set if the policies of the world are on rules of routes, and
	// that it is mostly these that change: they meet too rarely else.
	ruled bool
	// labelled is set if the policies of the world are few and select what they are attached
	// to by labels, seldom rules or backends, and most changes combine two edits.
	labelled bool
	// expressions is set if some matches are regular expressions.
	expressions bool
}

func newGenerator(seed uint64) generator {
	d := generator{Rand: rand.New(rand.NewPCG(seed, 4))}
	switch d.IntN(8) {
	case 0, 1:
		d.ruled = true
	case 2, 3, 4:
		d.labelled = true
	}
	return d
}

func (d generator) of(list ...string) string { return list[d.IntN(len(list))] }

// in is true once in n times.
func (d generator) in(n int) bool { return d.IntN(n) == 0 }

func (d generator) team() string {
	if d.labelled {
		return d.of("red", "blue")
	}
	return d.of("", "red", "blue")
}

func (d generator) zone() string      { return d.of("", "east", "west") }
func (d generator) namespace() string { return d.of("infra", "infra", "app") }

func (d generator) listener(name string) plainListener {
	return plainListener{
		Name: name, Host: d.of("", "", "x.example", "y.example", "*.example"), Port: 80 + d.IntN(2),
		From: d.of("All", "All", "All", "All", "All", "All", "Same", "red"), TCP: d.in(10),
	}
}

func (d generator) listeners() []plainListener {
	var out []plainListener
	for _, name := range []string{"a", "b", "c"}[:1+d.IntN(5)/2] {
		out = append(out, d.listener(name))
	}
	return out
}

func (d generator) gateway() plainGateway {
	return plainGateway{
		plainName: plainName{"Gateway", "infra", d.of("g", "g", "h", "h", "i")}, Team: d.team(), Class: d.of("c", "d"),
		Sets: d.of("All", "All", "Same", "None", "red"), Listeners: d.listeners(),
	}
}

func (d generator) set() plainSet {
	return plainSet{
		plainName: plainName{"ListenerSet", d.namespace(), d.of("s", "u", "v")}, Team: d.team(), Created: 1 + d.IntN(2),
		GatewayNamespace: "infra", Gateway: d.of("g", "h"), Listeners: d.listeners(),
	}
}

func (d generator) parent() plainParent {
	p := plainParent{Kind: "Gateway", Namespace: "infra", Name: d.of("g", "g", "h", "h", "i")}
	if d.in(4) {
		p = plainParent{Kind: "ListenerSet", Namespace: d.namespace(), Name: d.of("s", "u")}
	}
	if d.in(8) {
		return plainParent{Kind: unreadKind, Namespace: "infra", Name: "m"}
	}
	if d.in(4) {
		p.Section = d.of("a", "a", "b", "c")
	}
	return p
}

func (d generator) rule() plainRule {
	r := plainRule{Name: d.of("", "", "x", "x", "z", "rule-1")}
	if d.labelled {
		r.Name = d.of("x", "z", "rule-1", "")
	}
	for range 1 + d.IntN(3) {
		m := d.of("/", "/1", "/1", "/1/2", "/2", "/2", "GET /1", "GET /", "/1 h", "/2 h", "/3", "/4")
		if d.expressions && d.in(2) {
			m = d.of("~/1/[29]", "~/[12]", "~/1(/9)?", "~/[1-4]", "GET ~/[12]", "~/1/[29] h", "/1 ~h", "/ ~h", "/2 h")
		}
		if !slices.Contains(r.Matches, m) {
			r.Matches = append(r.Matches, m)
		}
	}
	for range d.IntN(3) {
		if b := d.of("b", "e"); !slices.Contains(r.Backends, b) {
			r.Backends = append(r.Backends, b)
			if d.in(5) {
				r.Off = append(r.Off, b)
			}
		}
	}
	return r
}

// rules have each name once, as the API server sees to.
func (d generator) rules() []plainRule {
	var out []plainRule
	for range 1 + d.IntN(3) + btoi(d.ruled) {
		out = addRule(out, len(out), d.rule())
	}
	return out
}

func addRule(list []plainRule, at int, r plainRule) []plainRule {
	if r.Name != "" && slices.ContainsFunc(list, func(o plainRule) bool { return o.Name == r.Name }) {
		r.Name = ""
	}
	return slices.Insert(slices.Clone(list), at, r)
}

func (d generator) route() plainRoute {
	r := plainRoute{plainName: plainName{"HTTPRoute", d.of("app", "app", "infra"), d.of("r", "q")}, Team: d.team(), Created: 1 + d.IntN(3), Hosts: d.hosts(), Rules: d.rules()}
	for range 1 + d.IntN(3) {
		r.Parents = append(r.Parents, d.parent())
	}
	return r
}

// anyRoute is a route of any kind.
func (d generator) anyRoute() plainRoute {
	r := d.route()
	if d.in(6) {
		r.Kind, r.Name = tcpRoute, d.of("t", "u")
	}
	return r
}

func (d generator) hosts() []string {
	return [][]string{nil, nil, nil, {"x.example"}, {"y.example"}, {"x.example", "y.example"}, {"x.example", "y.example"}, {"*.example"}}[d.IntN(8)]
}

func (d generator) service() plainService {
	return plainService{plainName{"Service", d.of("app", "app", "infra"), d.of("b", "e")}, []int{80, 81}[:1+d.IntN(2)]}
}

func (d generator) grant() plainGrant {
	return plainGrant{plainName{"ReferenceGrant", "infra", d.of("t", "v")}, d.of("app", "app", "none"), d.of("", "g", "h")}
}

func (d generator) target() plainTarget {
	if d.labelled && !d.in(4) {
		t := plainTarget{Kind: d.of("Gateway", "HTTPRoute", "HTTPRoute", "ListenerSet"), Team: d.team(), From: d.of("", "", "All", "east")}
		if d.in(6) {
			t.Section = d.sections(t.Kind)
		}
		return t
	}
	t := plainTarget{Kind: d.of("Gateway", "Gateway", "Gateway", "HTTPRoute", "HTTPRoute", "ListenerSet", "GatewayClass", "Namespace", "Service")}
	switch t.Kind {
	case "Gateway":
		t.Namespace, t.Name = "infra", d.of("g", "g", "h", "h", "i")
	case "HTTPRoute":
		t.Namespace, t.Name = d.of("app", "infra"), d.of("r", "q")
	case "ListenerSet":
		t.Namespace, t.Name = d.namespace(), d.of("s", "u")
	case "Service":
		t.Namespace, t.Name = d.of("app", "infra"), d.of("b", "e")
	case "GatewayClass":
		t.Name = d.of("c", "d")
		return t
	case "Namespace":
		t.Name = d.namespace()
		return t
	}
	if d.in(3) || t.Kind == "HTTPRoute" && !d.in(4) {
		t.Namespace = "" // the policy's own
	}
	if d.in(3) || t.Kind == "HTTPRoute" && d.in(2) {
		t.Section = d.sections(t.Kind)
	}
	if t.Kind != "Service" && d.in(5) {
		t.Namespace, t.Name, t.Team, t.From = "", "", d.of("red", "blue"), d.of("", "", "All", "east")
	}
	return t
}

func (d generator) sections(kind string) string {
	switch kind {
	case "HTTPRoute":
		return d.of("x", "x", "z", "rule-1", "rule-1", "rule-2")
	case "Service":
		return d.of("p80", "p81")
	default:
		return d.of("a", "a", "b")
	}
}

func (d generator) block() plainBlock {
	b := plainBlock{Atomic: d.in(3), Rules: map[string]int{}}
	for _, name := range []string{"k", "l", "m"} {
		if d.in(2) {
			b.Rules[name] = 1 + d.IntN(3)
		}
	}
	if d.in(3) {
		b.When = d.of("spec.k > 1", "spec.l == 2", "has(spec.m)")
	}
	return b
}

func (d generator) policy(kinds []string) plainPolicy {
	p := plainPolicy{
		plainName: plainName{d.of(kinds...), d.namespace(), d.of("p1", "p2", "p3", "p4")},
		Created:   1 + d.IntN(3), Targets: []plainTarget{d.target()},
	}
	if d.ruled {
		p.Kind, p.Targets[0] = "AtRule", plainTarget{Kind: "HTTPRoute", Name: d.of("r", "q"), Section: d.sections("HTTPRoute")}
	}
	if p.Targets[0].Kind == "HTTPRoute" && !d.in(4) {
		p.Namespace = "app"
	}
	if d.in(3) {
		p.Targets = append(p.Targets, d.target())
	}
	d.refill(&p)
	return p
}

func (d generator) refill(p *plainPolicy) {
	p.Overrides = d.block()
	if d.in(3) {
		p.Defaults = d.block()
	}
	if d.in(3) {
		p.Bare = d.block()
		p.Bare.When = ""
	}
}

// newPlainWorld is a world with policies of some of the kinds.
func newPlainWorld(d generator, kinds []string) plainWorld {
	var w plainWorld
	put := func(o plainObject) { w = w.with(o.key(), normal(o)) }
	for _, name := range []string{"c", "d"} {
		put(plainClass{plainName{Kind: "GatewayClass", Name: name}})
	}
	for _, name := range []string{"infra", "app"} {
		put(plainNamespace{plainName{Kind: "Namespace", Name: name}, d.team(), d.zone()})
	}
	for range 4 {
		put(d.gateway())
		put(d.anyRoute())
		put(d.service())
	}
	for range 3 {
		put(d.set())
	}
	for range 2 {
		put(d.grant())
	}
	policies := 6 + d.IntN(6)
	if d.labelled {
		policies = 4 + d.IntN(4)
	}
	for range policies {
		put(d.policy(kinds))
	}
	return w
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
