package guard_test

import (
	"encoding/json"
	"reflect"
	"slices"
)

// copied is a copy of an object that shares nothing with it.
func copied[T plainObject](o T) T {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // plain data
	}
	var out T
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// change throws a write of any sort.
func (d generator) change(w plainWorld, kinds []string) plainChange {
	for {
		c := d.anyChange(w, kinds)
		c.after = normal(c.after)
		if (c.before != nil || c.after != nil) && !reflect.DeepEqual(c.before, c.after) {
			if _, ok := c.before.(plainPolicy); ok && c.after != nil && d.in(8) {
				c.owner = "ConfigMap infra/owner"
			}
			return c
		}
	}
}

func (d generator) anyChange(w plainWorld, kinds []string) plainChange {
	if d.in(6) || d.labelled && d.in(2) {
		return d.combined(w)
	}
	switch d.IntN(20) {
	case 0:
		return d.created(w, kinds)
	case 1, 2:
		return d.removed(w)
	}
	was := d.one(w)
	c := plainChange{before: was}
	switch o := was.(type) {
	case plainNamespace:
		if d.in(2) {
			o.Team = d.team()
		} else {
			o.Zone = d.zone()
		}
		c.after = o
	case plainGateway:
		c.after = d.editedGateway(copied(o))
	case plainSet:
		c.after = d.editedSet(copied(o))
	case plainRoute:
		c.after = d.editedRoute(copied(o))
	case plainService:
		c.after = plainService{o.plainName, d.service().Ports}
	case plainGrant:
		next := d.grant()
		c.after = plainGrant{o.plainName, next.From, next.To}
	case plainPolicy:
		c.after = d.editedPolicy(copied(o))
	default:
		return plainChange{}
	}
	return c
}

// one chooses an object: policies, routes and gateways more often than others.
func (d generator) one(w plainWorld) plainObject {
	if routes := all[plainRoute](w); d.ruled && len(routes) > 0 && !d.in(3) {
		return routes[d.IntN(len(routes))]
	}
	for range 3 {
		switch o := w[d.IntN(len(w))].(type) {
		case plainPolicy, plainRoute, plainGateway:
			return o
		}
	}
	return w[d.IntN(len(w))]
}

func (d generator) created(w plainWorld, kinds []string) plainChange {
	var o plainObject
	switch d.IntN(6) {
	case 0:
		o = d.gateway()
	case 1:
		o = d.set()
	case 2:
		o = d.anyRoute()
	case 3:
		o = d.grant()
	default:
		p := d.policy(kinds)
		p.Created = 9 // younger than all
		o = p
	}
	if w.has(o.key()) {
		return plainChange{}
	}
	return plainChange{after: o}
}

func (d generator) removed(w plainWorld) plainChange {
	o := d.one(w)
	if o.key().Kind == "Namespace" && !d.in(3) {
		return plainChange{}
	}
	return plainChange{before: o}
}

func (d generator) editedListeners(all []plainListener) []plainListener {
	if d.in(6) {
		return d.renamedListener(all)
	}
	return d.reroutedListeners(all)
}

// renamedListener gives one of some listeners a name that none of them has.
func (d generator) renamedListener(all []plainListener) []plainListener {
	name := d.of("a", "b", "c", "new")
	if !slices.ContainsFunc(all, func(l plainListener) bool { return l.Name == name }) {
		all[d.IntN(len(all))].Name = name
	}
	return all
}

// reroutedListeners edits listeners so that other requests or routes come in by them.
func (d generator) reroutedListeners(all []plainListener) []plainListener {
	i := d.IntN(len(all))
	switch d.IntN(6) {
	case 0:
		if len(all) > 1 {
			all = slices.Delete(all, i, i+1)
		}
	case 1:
		all[i].From = d.of("All", "Same", "red", "blue", "None")
	case 2:
		all[i].Host = d.of("", "x.example", "y.example", "*.example")
	case 3:
		all[i].Port = 80 + d.IntN(2)
	case 4:
		all[i].TCP = !all[i].TCP
	default:
		return d.listeners()
	}
	return all
}

func (d generator) editedGateway(g plainGateway) plainGateway {
	switch d.IntN(5) {
	case 0:
		g.Class = d.of("c", "d")
	case 1:
		g.Team = d.team()
	case 2:
		g.Sets = d.of("All", "Same", "None", "red")
	default:
		g.Listeners = d.editedListeners(g.Listeners)
	}
	return g
}

func (d generator) editedSet(s plainSet) plainSet {
	switch d.IntN(6) {
	case 0, 1:
		s.Gateway = d.of("g", "h", "i")
	case 2:
		s.Team = d.team()
	default:
		s.Listeners = d.editedListeners(s.Listeners)
	}
	return s
}

func (d generator) editedRoute(r plainRoute) plainRoute {
	for range 1 + d.IntN(2) { // two edits in one write at times
		i := d.IntN(len(r.Rules))
		edit := d.IntN(13)
		if d.ruled && d.in(2) {
			edit = 6 + d.IntN(7)
		}
		switch edit {
		case 0, 1:
			r.Parents[d.IntN(len(r.Parents))] = d.parent()
		case 2:
			if len(r.Parents) > 1 {
				r.Parents = r.Parents[1:]
			}
		case 3:
			r.Hosts = d.hosts()
		case 4:
			r.Team = d.team()
		case 5, 6:
			r.Rules = addRule(r.Rules, d.IntN(len(r.Rules)+1), d.rule())
		case 7:
			if len(r.Rules) > 1 {
				r.Rules = slices.Delete(r.Rules, i, i+1)
			}
		case 8:
			k := d.IntN(len(r.Rules))
			if d.in(2) {
				r.Rules[i], r.Rules[k] = r.Rules[k], r.Rules[i]
			} else {
				r.Rules[i].Name, r.Rules[k].Name = r.Rules[k].Name, r.Rules[i].Name
			}
		case 9, 10: // a match goes from one rule to another
			k := d.IntN(len(r.Rules))
			from, to := &r.Rules[i], &r.Rules[k]
			if m := from.Matches[0]; len(from.Matches) > 1 && !slices.Contains(to.Matches, m) {
				from.Matches, to.Matches = from.Matches[1:], append(to.Matches, m)
			}
		default:
			rest := slices.Delete(slices.Clone(r.Rules), i, i+1)
			r.Rules = addRule(rest, i, d.editedRule(r.Rules[i]))
		}
	}
	return r
}

func (d generator) editedRule(r plainRule) plainRule {
	next := d.rule()
	switch d.IntN(3) {
	case 0:
		r.Name = next.Name
	case 1:
		r.Matches = next.Matches
	default:
		r.Backends, r.Off = next.Backends, next.Off
	}
	return r
}

func (d generator) editedPolicy(p plainPolicy) plainPolicy {
	b := &p.Overrides
	switch d.IntN(8) {
	case 0, 1:
		p.Targets[d.IntN(len(p.Targets))] = d.target()
	case 2:
		p.Targets = append(p.Targets, d.target())
	case 3:
		b.When = d.of("", "", "spec.k > 1", "spec.l == 2", "has(spec.m)")
	case 4:
		b.Atomic = !b.Atomic
	case 5:
		b.Rules[d.of("k", "l", "m")] = 1 + d.IntN(3)
	case 6:
		p.Defaults, p.Bare = d.block(), p.Defaults
		p.Bare.When = ""
	default:
		next := p
		d.refill(&next)
		return next
	}
	return p
}
