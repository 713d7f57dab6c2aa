package guard_test

import (
	"reflect"
	"slices"
)

// combined throws a write of two edits of one object: one by which requests go elsewhere,
// and one by which other policies are attached to the object, or to its sections.
func (d generator) combined(w plainWorld) plainChange {
	for range 20 {
		was := w[d.IntN(len(w))]
		if routes := all[plainRoute](w); len(routes) > 0 && d.in(2) {
			was = routes[d.IntN(len(routes))]
		}
		rerouted := d.rerouted(was)
		is := d.reattached(rerouted)
		if rerouted != nil && !reflect.DeepEqual(was, rerouted) && !reflect.DeepEqual(rerouted, is) {
			return plainChange{before: was, after: is, combined: true}
		}
	}
	return plainChange{}
}

// rerouted returns an object after an edit by which requests go elsewhere; nil if there
// is none for its type.
func (d generator) rerouted(o plainObject) plainObject {
	switch o := o.(type) {
	case plainNamespace:
		o.Team = d.team()
		return o
	case plainGateway:
		o = copied(o)
		o.Listeners = d.reroutedListeners(o.Listeners)
		return o
	case plainSet:
		o = copied(o)
		if d.in(3) {
			o.Gateway = d.of("g", "h", "i")
		} else {
			o.Listeners = d.reroutedListeners(o.Listeners)
		}
		return o
	case plainRoute:
		return d.reroutedRoute(copied(o))
	default:
		return nil
	}
}

func (d generator) reroutedRoute(r plainRoute) plainRoute {
	i, k := d.IntN(len(r.Rules)), d.IntN(len(r.Rules))
	switch d.IntN(8) {
	case 0:
		r.Parents[d.IntN(len(r.Parents))] = d.parent()
	case 1:
		r.Hosts = d.hosts()
	case 2:
		r.Rules = addRule(r.Rules, d.IntN(len(r.Rules)+1), d.rule())
	case 3:
		if len(r.Rules) > 1 {
			r.Rules = slices.Delete(r.Rules, i, i+1)
		}
	case 4:
		r.Rules[i].Matches = d.rule().Matches
	default: // all requests of a rule go to another one
		r.Rules[i].Matches, r.Rules[k].Matches = r.Rules[k].Matches, r.Rules[i].Matches
	}
	return r
}

// reattached returns an object after an edit by which other policies are attached to it or
// to its sections, or apply in another way.
func (d generator) reattached(o plainObject) plainObject {
	relabel := d.labelled && d.in(2)
	switch o := o.(type) {
	case plainNamespace:
		o.Zone = d.zone()
		return o
	case plainGateway:
		o = copied(o)
		edit := d.IntN(4)
		switch {
		case relabel || edit > 1:
			o.Team = d.team()
		case edit == 0:
			o.Class = d.of("c", "d")
		default:
			o.Listeners = d.renamedListener(o.Listeners)
		}
		return o
	case plainSet:
		o = copied(o)
		if relabel || d.in(2) {
			o.Team = d.team()
		} else {
			o.Listeners = d.renamedListener(o.Listeners)
		}
		return o
	case plainRoute:
		o = copied(o)
		i, edit := d.IntN(len(o.Rules)), d.IntN(6)
		switch {
		case relabel || edit > 3:
			o.Team = d.team()
		case edit <= 1:
			k := d.IntN(len(o.Rules))
			o.Rules[i].Name, o.Rules[k].Name = o.Rules[k].Name, o.Rules[i].Name
		case edit == 2:
			rest, r := slices.Delete(slices.Clone(o.Rules), i, i+1), o.Rules[i]
			r.Name = d.rule().Name
			o.Rules = addRule(rest, i, r)
		default:
			next := d.rule()
			o.Rules[i].Backends, o.Rules[i].Off = next.Backends, next.Off
		}
		return o
	default:
		return o
	}
}
