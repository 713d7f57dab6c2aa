package gateway

// Router decides which rule of which route serves a request at a gateway (SEMANTICS
// section 9). It is cheap to make: it looks routes up when it is asked, with an index of the
// matches that it was asked about. It must not be used concurrently.
type Router struct{ matching }

// NewRouter returns a router for the listeners of a gateway, its own first, then those of
// its listener sets in their order of precedence. One that conflicts with a listener
// before it takes nothing.
func NewRouter(listeners []ListenerMatch, routes Routes, reading Reading) *Router {
	out := &Router{matching{attachments{routes: routes, reading: reading, memo: newRouterMemo()}}}
	out.listeners, out.conflicts = splitConflicts(listeners)
	return out
}

// ByPort returns the router that follows connections: whatever is sent to a port arrives
// at the listeners of that port, also if they have another protocol. Else a request
// arrives only at listeners of its transport.
func (r *Router) ByPort() *Router {
	out := *r
	out.byPort = true
	return &out
}

// With returns the router under another reading.
func (r *Router) With(reading Reading) *Router {
	if reading == r.reading {
		return r
	}
	out := *r
	out.reading, out.memo = reading, newRouterMemo()
	out.memo.lookups, out.memo.hosts, out.memo.texts = r.memo.lookups, r.memo.hosts, r.memo.texts
	return &out
}

// sharing returns the router in which listeners share the requests of their port.
func (r *Router) sharing() *Router {
	if !r.SharesPorts() {
		return r
	}
	if r.memo.sharing == nil {
		reading := r.reading
		reading.Shared = true
		r.memo.sharing = r.With(reading)
	}
	return r.memo.sharing
}
