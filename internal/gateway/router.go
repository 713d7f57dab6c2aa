package gateway

import (
	"cmp"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Routes is where a Router looks up routes.
type Routes interface {
	// RoutesAt yields the routes with a parent of which a hostname is written so, ""
	// for those without hostnames. Only routes with a match whose paths start with the
	// first segment, or that has no such segment, are needed.
	RoutesAt(parent api.Ref, hostname, segment string) iter.Seq[*Route]
	// AllRoutesAt is RoutesAt for all first segments.
	AllRoutesAt(parent api.Ref, hostname string) iter.Seq[*Route]
	// RoutesOf yields the routes with a parent.
	RoutesOf(parent api.Ref) iter.Seq[*Route]
	// NamespaceLabels returns the labels of a namespace.
	NamespaceLabels(name string) labels.Set
}

// Router decides which rule of which route serves a request at a gateway (SEMANTICS
// section 9). It is cheap to make: it looks routes up when it is asked, with an index of the
// matches that it was asked about. It must not be used concurrently.
type Router struct {
	listeners []ListenerMatch // those that take connections
	conflicts []listenerConflict
	routes    Routes
	reading   Reading
	byPort    bool
	memo      *routerMemo
}

// routerMemo has answers of a router.
type routerMemo struct {
	served    map[string]Served
	listeners map[listenerKey][]*ListenerMatch
	hostnames map[hostnameAt]bool    // whether a route is there
	oldest    map[hostnameAt]*Route  // by host
	hosts     map[hostKey]*hostIndex // under all readings
	sharing   *Router                // in which listeners share their routes
	shares    *bool                  // see SharesPorts
	looked    int                    // at matches of the indexes
	work      int                    // about the conditions of these
	lookups   *int                   // work of Witnesses, under all readings
	texts     *textMemo              // under all readings
	reach     int                    // work of Reach
	asked     int                    // for the rivals of how many routes
	routesOn  map[string]int         // routes by hostname, "" for all that are not exact
	last      struct {               // see MayBeUnreached
		route          *Route
		mayBeUnreached bool
	}
}

// hostnameAt is a hostname as routes of a listener write it.
type hostnameAt struct {
	listener *ListenerMatch
	hostname string
	kind     string // of the routes that count, "" for all
}

// listenerKey is what listeners are chosen by.
type listenerKey struct {
	transport Transport
	port      int32
	host      string
	client    string
}

// key returns what requests for the listener's hostname are chosen by.
func (m *ListenerMatch) key() listenerKey {
	return listenerKey{m.Listener.transport(), m.Listener.Port, m.Listener.Hostname, m.Client}
}

// listenerAt is a listener of an object, whatever its name.
type listenerAt struct {
	parent api.Ref
	listenerKey
}

func (m *ListenerMatch) at() listenerAt { return listenerAt{m.Parent(), m.key()} }

// listenerPlaces are where a router has listeners.
type listenerPlaces map[listenerAt]bool

func (r *Router) places() listenerPlaces {
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

// hostKey is what the matches that can serve a request are chosen by.
type hostKey struct {
	listeners listenerKey
	host      string
	reading   Reading // without the precedence of regular expressions
}

// maxMemo is the most answers of each kind that are remembered, and maxHosts the most
// indexes.
const (
	maxMemo  = 1 << 14
	maxHosts = 1 << 10
)

// remember adds an answer, in place of all others where there are too many.
func remember[K comparable, V any](memo map[K]V, key K, answer V) V {
	if len(memo) >= maxMemo {
		clear(memo)
	}
	memo[key] = answer
	return answer
}

func newRouterMemo() *routerMemo {
	return &routerMemo{
		served: make(map[string]Served), listeners: make(map[listenerKey][]*ListenerMatch), hostnames: make(map[hostnameAt]bool),
		oldest: make(map[hostnameAt]*Route), hosts: make(map[hostKey]*hostIndex), lookups: new(int), texts: &textMemo{},
	}
}

// Reading decides what Gateway API leaves to implementations.
type Reading struct {
	// Shared has the routes of all listeners of a port whose hostnames match compete
	// for a request; else only those of the listener with the most specific hostname
	// do (listener isolation). In a mesh, it has the routes of all kinds compete; else
	// only those of the first kind do.
	Shared bool
	// OneKind has only the routes of one kind take part where an HTTPRoute and a
	// GRPCRoute at a listener match a host: those of the kind of the oldest one. Else
	// the routes of both kinds compete.
	OneKind bool
	// FallBack has a request that no rule of the most specific hostname matches go to the
	// routes with a less specific one. Else nothing serves it.
	FallBack bool
	// Regex is where regular expressions of paths come.
	Regex RegexOrder
}

// RegexOrder is the precedence of regular expressions of paths, and of gRPC services and
// methods. Gateway API leaves it to the implementation.
type RegexOrder uint8

// The orders that implementations have.
const (
	RegexLast       RegexOrder = iota // after all other paths
	RegexFirst                        // before all other paths
	RegexAfterExact                   // after exact paths, before prefixes; in gRPC by the length of its text
)

// NewRouter returns a router for the listeners of a gateway, its own first, then those of
// its listener sets in their order of precedence. One that conflicts with a listener
// before it takes nothing.
func NewRouter(listeners []ListenerMatch, routes Routes, reading Reading) *Router {
	out := &Router{routes: routes, reading: reading, memo: newRouterMemo()}
	out.listeners, out.conflicts = splitConflicts(listeners)
	return out
}

// splitConflicts returns the listeners that do not conflict with one before them, and
// those that do.
func splitConflicts(all []ListenerMatch) (out []ListenerMatch, conflicts []listenerConflict) {
	out = make([]ListenerMatch, 0, len(all))
	ports, taken := make(map[listenerKey]*ListenerMatch, len(all)), make(map[listenerKey]*ListenerMatch, len(all))
	for i := range all {
		m := &all[i]
		key := m.key()
		port := listenerKey{port: key.port, client: key.client}
		if m.Listener.udp() {
			port.transport = TransportUDP
		}
		if with := cmp.Or(conflictOn(ports[port], m.Listener), taken[key]); with != nil {
			conflicts = append(conflicts, listenerConflict{*m, *with})
			continue
		}
		ports[port], taken[key] = cmp.Or(ports[port], m), m
		out = append(out, *m)
	}
	return out, conflicts
}

// conflictOn returns a listener of a port if one with another protocol conflicts with it.
func conflictOn(first *ListenerMatch, l *Listener) *ListenerMatch {
	if first == nil || first.Listener.transport() == l.transport() {
		return nil
	}
	return first
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

// Served is where a request goes. Route is nil if nothing serves it, Listener also if no
// listener accepts it.
type Served struct {
	Listener *ListenerMatch
	Route    *Route
	// Rule in Route.Rules, and Match in the matches of the rule.
	Rule, Match int
	// Hostname by which it was found: the most specific one that routes of the listener
	// have for the request; "" for any.
	Hostname string

	match *routeMatch
}

// Same reports whether two requests go to the same rule at the same listener, by their
// names.
func (s Served) Same(o Served) bool {
	switch {
	case s.Route == nil || o.Route == nil:
		return s.Route == o.Route
	default:
		return s.Rule == o.Rule && s.Route.Ref() == o.Route.Ref() && s.Listener.Same(o.Listener)
	}
}

// Same reports whether two listeners have the same name at the same object.
func (m *ListenerMatch) Same(o *ListenerMatch) bool {
	return m == o || m.Listener.Name == o.Listener.Name && sameRef(m.Gateway, o.Gateway) && sameRef(m.Set, o.Set) &&
		sameRef(m.Service, o.Service) && m.Client == o.Client
}

// Parent returns the object that routes name to attach to the listener.
func (m *ListenerMatch) Parent() api.Ref {
	switch {
	case m.Service != nil:
		return m.Service.Ref()
	case m.Set != nil:
		return m.Set.Ref()
	default:
		return m.Gateway.Ref()
	}
}

// transport returns what the listener listens to.
func (l *Listener) transport() Transport {
	switch l.Protocol {
	case "HTTPS":
		return TransportTLS
	default:
		return Transport(l.Protocol)
	}
}

// SamePort reports whether two listeners compete for connections. All protocols but UDP
// share the ports of TCP.
func (l *Listener) SamePort(o *Listener) bool { return l.Port == o.Port && l.udp() == o.udp() }

// PlainHTTP reports whether the listener's protocol is HTTP, without TLS.
func (l *Listener) PlainHTTP() bool { return l.transport() == TransportHTTP }

// TLS reports whether the listener's protocol is HTTPS or TLS.
func (l *Listener) TLS() bool { return l.transport() == TransportTLS }

func (l *Listener) udp() bool { return l.transport() == TransportUDP }

// ListenersOf yields the listeners that accept a route.
func (r *Router) ListenersOf(route *Route) iter.Seq[*ListenerMatch] {
	return func(yield func(*ListenerMatch) bool) {
		for i := range r.listeners {
			if l := &r.listeners[i]; r.attached(l, route) && !yield(l) {
				return
			}
		}
	}
}

// CountPaths returns the number of paths of a route by listeners that accept it: one for each
// rule.
func (r *Router) CountPaths(route *Route) int {
	n := 0
	for range r.ListenersOf(route) {
		n += max(1, len(route.Rules))
	}
	return n
}

// Route returns where a request goes.
func (r *Router) Route(q *Request) Served {
	key := q.key()
	if s, ok := r.memo.served[key]; ok {
		return s
	}
	return remember(r.memo.served, key, r.routeIn(r.indexFor(q), q))
}

// listenersFor returns the listeners that a request can come in by, the most specific
// hostname first: only that one unless listeners share their routes.
func (r *Router) listenersFor(q *Request) []*ListenerMatch {
	key := listenerKey{q.Transport, q.Port, q.Host, q.Client}
	if q.Transport == TransportTLS {
		key.host = q.sni()
	}
	if known, ok := r.memo.listeners[key]; ok {
		return known
	}
	return remember(r.memo.listeners, key, r.findListeners(key))
}

func (r *Router) findListeners(key listenerKey) []*ListenerMatch {
	var out []*ListenerMatch
	for i := range r.listeners {
		l := &r.listeners[i]
		if l.Client == key.client && r.arrivesAt(key, l.Listener) && hostnameTakes(l.Listener.Hostname, key.host) {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b *ListenerMatch) int {
		return compareHostnames(a.Listener.Hostname, b.Listener.Hostname)
	})
	if len(out) > 1 && !r.reading.Shared {
		return out[:1]
	}
	return out
}

// arrivesAt reports whether a connection arrives at the port of a listener.
func (r *Router) arrivesAt(key listenerKey, l *Listener) bool {
	if r.byPort && key.port != 0 {
		return key.port == l.Port && (key.transport == TransportUDP) == l.udp()
	}
	return l.transport() == key.transport && (key.port == 0 || key.port == l.Port)
}

// hostnamesAt returns the hostnames of a chain by which routes are on a listener at a rank
// of the chain: the listener's own stands for all less specific ones.
func (m *ListenerMatch) hostnamesAt(chain []string, rank int) []string {
	own := slices.Index(chain, m.Listener.Hostname)
	switch {
	case own == rank:
		return chain[rank:]
	case own < 0 || own > rank: // by a server name that is not the host
		return chain[rank : rank+1]
	default:
		return nil
	}
}

// kindFor returns the kind of the routes that count at a listener for a host, given the
// hostnames that match it: "" for all.
func (r *Router) kindFor(l *ListenerMatch, chain []string) string {
	if !r.reading.OneKind {
		return ""
	}
	if oldest := r.oldestFor(l, chain); oldest != nil {
		return oldest.Kind
	}
	return ""
}

// oldestFor returns the oldest route at a listener on some hostnames, nil for none.
func (r *Router) oldestFor(l *ListenerMatch, chain []string) *Route {
	key := hostnameAt{listener: l, hostname: chain[0]}
	if oldest, ok := r.memo.oldest[key]; ok {
		return oldest
	}
	var oldest *Route
	for _, h := range chain {
		for route := range r.attachedAt(l, h, "") {
			if route.readsRequests() && (oldest == nil || compareAge(route, oldest) < 0) {
				oldest = route
			}
		}
	}
	return remember(r.memo.oldest, key, oldest)
}

// maxOtherKind is the most matches of routes, by hostname and listener, that OtherKind returns.
const maxOtherKind = 1 << 12

// OtherKind returns the routes beside some that a write changes for which those of another kind
// count in another router, on a hostname of theirs: as many as can be searched at little cost.
// routes are those of a parent.
func (r *Router) OtherKind(o *Router, changed []*Route, routes func(parent api.Ref) iter.Seq[*Route]) []*Route {
	var out []*Route
	unchanged, work := r.unchangedListeners(o), 0
	for i := range r.listeners {
		l := &r.listeners[i]
		is := unchanged[l]
		isOldest := func(c *Route) bool {
			return slices.ContainsFunc(l.hostnames(c), func(h string) bool {
				return r.oldestFor(l, hostnamesFor(h)) == c || o.oldestFor(is, hostnamesFor(h)) == c
			})
		}
		if is == nil || !slices.ContainsFunc(changed, isOldest) {
			continue
		}
		for n := range routes(l.Parent()) {
			if !r.attached(l, n) || slices.Contains(changed, n) || slices.Contains(out, n) {
				continue
			}
			hostnames := l.hostnames(n)
			work += len(hostnames)
			if slices.ContainsFunc(hostnames, func(h string) bool {
				return r.kindFor(l, hostnamesFor(h)) != o.kindFor(is, hostnamesFor(h))
			}) {
				out, work = append(out, n), work+len(hostnames)*len(r.listeners)*len(n.routeMatches())
			}
			if work > maxOtherKind {
				return out
			}
		}
	}
	return out
}

// counts reports whether the route takes part where only those of one kind of routes that
// read requests do, "" for all.
func (r *Route) counts(kind string) bool {
	return kind == "" || r.Kind == kind || !r.readsRequests()
}

// attachedAt yields the routes that count with a hostname on a listener.
func (r *Router) attachedAt(l *ListenerMatch, hostname, kind string) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for route := range r.routes.AllRoutesAt(l.Parent(), hostname) {
			if r.attached(l, route) && route.counts(kind) && !yield(route) {
				return
			}
		}
	}
}

// hasRoutes reports whether a route that counts with a hostname is on a listener.
func (r *Router) hasRoutes(l *ListenerMatch, hostname, kind string) bool {
	key := hostnameAt{l, hostname, kind}
	if has, ok := r.memo.hostnames[key]; ok {
		return has
	}
	has := false
	for range r.attachedAt(l, hostname, kind) {
		has = true
		break
	}
	return remember(r.memo.hostnames, key, has)
}

func (r *Router) attached(l *ListenerMatch, route *Route) bool {
	if l.Service != nil {
		return l.acceptsInMesh(route, r.reading)
	}
	var namespaceLabels labels.Set
	if l.Listener.Namespaces.Selector != nil {
		namespaceLabels = r.routes.NamespaceLabels(route.Namespace)
	}
	return l.Accepts(route, namespaceLabels)
}

// SharesPorts reports whether some request can come in by several listeners, if they
// share their routes, or in a mesh whether routes of several kinds are on a port.
func (r *Router) SharesPorts() bool {
	if r.memo.shares == nil {
		r.memo.shares = new(r.findShared())
	}
	return *r.memo.shares
}

func (r *Router) findShared() bool {
	for i := range r.listeners {
		if r.listeners[i].Service != nil {
			if len(r.listeners[i].Listener.Kinds) > 1 {
				return true
			}
			continue
		}
		for j := range r.listeners[:i] {
			a, b := r.listeners[i].Listener, r.listeners[j].Listener
			if a.SamePort(b) && HostnamesIntersect(a.Hostname, b.Hostname) {
				return true
			}
		}
	}
	return false
}
