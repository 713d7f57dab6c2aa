package gateway

import (
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Neighbors yields the routes on the hostnames of a route, or on less specific ones, at its
// listeners and at others of their ports; it may yield one several times.
func (r *attachments) Neighbors(route *Route) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for l, h := range r.beside(route) {
			for n := range r.routes.RoutesAt(l.Parent(), h, AllSegments) {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// areAlone reports whether versions of a route have no neighbors but perhaps one of them.
func (r *attachments) areAlone(versions []*Route, attached *Route) bool {
	looked := make(map[hostnameAt]bool) // versions mostly share some
	for _, route := range versions {
		for l, h := range r.beside(route) {
			at := hostnameAt{listener: l, hostname: h}
			if looked[at] {
				continue
			}
			looked[at] = true
			for n := range r.routes.RoutesAt(l.Parent(), h, AllSegments) {
				if n != attached {
					return false
				}
			}
		}
	}
	return true
}

// HostnamesTie reports whether routes with different hostnames have the same one in common with
// their listeners, on the hostnames of a route or on less specific ones.
func (r *attachments) HostnamesTie(route *Route) bool {
	if !slices.ContainsFunc(r.listeners, func(l ListenerMatch) bool { return l.Listener.Hostname != "" }) {
		return false
	}
	own := make(map[string]string)
	for l, h := range r.beside(route) {
		if !r.hasRoutes(l, h, "") {
			continue
		}
		on, _ := CommonHostname(l.Listener.Hostname, h)
		if other, known := own[on]; known && other != h {
			return true
		}
		own[on] = h
	}
	return false
}

// beside yields the listeners that a route is on, and others of their ports, with the hostnames
// of the route there and less specific ones.
func (r *attachments) beside(route *Route) iter.Seq2[*ListenerMatch, string] {
	return func(yield func(*ListenerMatch, string) bool) {
		for l := range r.ListenersOf(route) {
			for _, hostname := range l.hostnames(route) {
				chain := hostnamesFor(hostname)
				for i := range r.listeners {
					o := &r.listeners[i]
					if !o.Listener.SamePort(l.Listener) || !slices.Contains(chain, o.Listener.Hostname) {
						continue
					}
					for _, h := range chain {
						if !yield(o, h) {
							return
						}
					}
				}
			}
		}
	}
}

// neighbors yields the other routes at a listener that have one of some hostnames and
// matches of paths with a first segment of the route, with that segment.
func (r *attachments) neighbors(l *ListenerMatch, hostnames []string, route *Route) iter.Seq2[*Route, string] {
	return func(yield func(*Route, string) bool) {
		for _, hostname := range hostnames {
			names := []string{hostname}
			if hostname == l.Listener.Hostname { // which stands for all less specific ones
				names = hostnamesFor(hostname)
			}
			for _, h := range names {
				for _, segment := range route.Segments() {
					for o := range r.routes.RoutesAt(l.Parent(), h, segment) {
						if o != route && slices.Contains(o.Segments(), segment) && r.attached(l, o) && !yield(o, segment) {
							return
						}
					}
				}
			}
		}
	}
}

// listenerPlaces are where a router has listeners.
type listenerPlaces map[listenerAt]bool

func (r *attachments) places() listenerPlaces {
	out := make(listenerPlaces, len(r.listeners))
	for i := range r.listeners {
		out[r.listeners[i].at()] = true
	}
	return out
}

// remaining returns the hostnames, each once, without those of other listeners of the same
// parent and port, which take their requests.
func (p listenerPlaces) remaining(l *ListenerMatch, hostnames []string) []string {
	var out []string
	for _, hostname := range hostnames {
		at := l.at()
		at.host = hostname
		if (hostname == "" || hostname == l.Listener.Hostname || !p[at]) && !slices.Contains(out, hostname) {
			out = append(out, hostname)
		}
	}
	return out
}

// OtherKinds returns those of some routes that read requests as another one does, and are on
// a listener with it, on intersecting hostnames: an HTTPRoute beside a GRPCRoute, of which
// Gateway API has only one accepted. It looks at a limited number.
func (r *attachments) OtherKinds(route *Route, others func(parent api.Ref) iter.Seq[*Route]) []*Route {
	var out []*Route
	seen := make(map[*Route]bool)
	left := maxRivalMatches
	for l := range r.ListenersOf(route) {
		for o := range others(l.Parent()) {
			if left--; left < 0 {
				return out
			}
			if !seen[o] && r.attached(l, o) && HostsIntersect(l.hostnames(route), l.hostnames(o)) {
				out, seen[o] = append(out, o), true
			}
		}
	}
	return out
}

// isBehind reports whether a listener that accepts a route conflicts with another one, or
// leaves the requests for one of its hostnames to another one that does not accept it.
func (r *attachments) isBehind(route *Route) bool {
	for i := range r.conflicts {
		if r.attached(&r.conflicts[i].listener, route) {
			return true
		}
	}
	if len(r.listeners) < 2 {
		return false
	}
	for i := range r.listeners {
		l := &r.listeners[i]
		if !r.attached(l, route) {
			continue
		}
		for _, h := range l.hostnames(route) {
			if o := r.inFront(l, h); o != nil && !r.attached(o, route) {
				return true
			}
		}
	}
	return false
}

// inFront returns a listener of the same port with a more specific hostname that takes all
// requests for a hostname of a listener, nil if there is none.
func (r *attachments) inFront(l *ListenerMatch, hostname string) *ListenerMatch {
	for i := range r.listeners {
		o := &r.listeners[i]
		if o != l && o.Client == l.Client && o.Listener.SamePort(l.Listener) &&
			compareHostnames(o.Listener.Hostname, l.Listener.Hostname) < 0 && hostnameTakes(o.Listener.Hostname, hostname) {
			return o
		}
	}
	return nil
}
