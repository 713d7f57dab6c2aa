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
	// for those without hostnames, each once. Only routes with a match of paths with the
	// first segment, "" for paths with any, are needed: all for AllSegments.
	RoutesAt(parent api.Ref, hostname, segment string) iter.Seq[*Route]
	// RoutesOf yields the routes with a parent.
	RoutesOf(parent api.Ref) iter.Seq[*Route]
	// NamespaceLabels returns the labels of a namespace.
	NamespaceLabels(name string) labels.Set
}

// AllSegments stands for all first segments of paths.
const AllSegments = "/"

// attachments are the listeners of a gateway, and the routes that are attached to them.
type attachments struct {
	listeners []ListenerMatch // those that take connections
	conflicts []listenerConflict
	routes    Routes
	reading   Reading
	byPort    bool
	memo      *routerMemo
}

// routerMemo has answers of a router.
type routerMemo struct {
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
	solitary  *Route                 // a route that is known to have no neighbors
	last      struct {               // see MayBeUnreached
		route          *Route
		mayBeUnreached bool
		alone          bool // it has no rivals
	}
}

// hostnameAt is a hostname as routes of a listener write it.
type hostnameAt struct {
	listener *ListenerMatch
	hostname string
	kind     string // of the routes that count, "" for all
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
		hostnames: make(map[hostnameAt]bool),
		oldest:    make(map[hostnameAt]*Route), hosts: make(map[hostKey]*hostIndex), lookups: new(int), texts: &textMemo{},
	}
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
		with := taken[key]
		if first := ports[port]; first != nil && first.Listener.transport() != m.Listener.transport() { // another protocol
			with = first
		}
		if with != nil {
			conflicts = append(conflicts, listenerConflict{*m, *with})
			continue
		}
		ports[port], taken[key] = cmp.Or(ports[port], m), m
		out = append(out, *m)
	}
	return out, conflicts
}

// listenerConflict is a listener that conflicts with one before it.
type listenerConflict struct{ listener, with ListenerMatch }

// ConflictOf returns the listener with which another one conflicts that precedes it, nil
// if it takes connections.
func (r *attachments) ConflictOf(l *ListenerMatch) *ListenerMatch {
	for i := range r.conflicts {
		if r.conflicts[i].listener.Same(l) {
			return &r.conflicts[i].with
		}
	}
	return nil
}

// Conflicts yields the listeners that conflict with one before them, and that one.
func (r *attachments) Conflicts(yield func(listener, with *ListenerMatch) bool) {
	for i := range r.conflicts {
		if !yield(&r.conflicts[i].listener, &r.conflicts[i].with) {
			return
		}
	}
}

func (r *attachments) attached(l *ListenerMatch, route *Route) bool {
	if l.Service != nil {
		return l.acceptsInMesh(route, r.reading)
	}
	var namespaceLabels labels.Set
	if l.Listener.Namespaces.Selector != nil {
		namespaceLabels = r.routes.NamespaceLabels(route.Namespace)
	}
	return l.Accepts(route, namespaceLabels)
}

// ListenersOf yields the listeners that accept a route.
func (r *attachments) ListenersOf(route *Route) iter.Seq[*ListenerMatch] {
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
func (r *attachments) CountPaths(route *Route) int {
	n := 0
	for range r.ListenersOf(route) {
		n += max(1, len(route.Rules))
	}
	return n
}

// ListenersAt returns the listeners of a path: in a mesh one for each of its ports, and
// of its clients' namespaces.
func (r *attachments) ListenersAt(p *Path) []ListenerMatch {
	if p.Service == nil {
		return []ListenerMatch{{Gateway: p.Gateway, Set: p.Set, Listener: p.Listener}}
	}
	var all, own []ListenerMatch
	for i := range r.listeners {
		switch l := &r.listeners[i]; {
		case !l.isOn(p):
		case p.Client != "" && p.Client == l.Client:
			own = append(own, *l)
		default:
			all = append(all, *l)
		}
	}
	if len(own) > 0 {
		return own
	}
	return all
}

// listenersFor returns the listeners that a request can come in by, the most specific
// hostname first: only that one unless listeners share their routes.
func (r *attachments) listenersFor(q *Request) []*ListenerMatch {
	key := q.listenerKey()
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
func (r *attachments) arrivesAt(key listenerKey, l *Listener) bool {
	if r.byPort && key.port != 0 {
		return key.port == l.Port && (key.transport == TransportUDP) == l.udp()
	}
	return l.transport() == key.transport && (key.port == 0 || key.port == l.Port)
}

// attachedAt yields the routes that count with a hostname on a listener.
func (r *attachments) attachedAt(l *ListenerMatch, hostname, kind string) iter.Seq[*Route] {
	return func(yield func(*Route) bool) {
		for route := range r.routes.RoutesAt(l.Parent(), hostname, AllSegments) {
			if r.attached(l, route) && counts(route, kind) && !yield(route) {
				return
			}
		}
	}
}

// hasRoutes reports whether a route that counts with a hostname is on a listener.
func (r *attachments) hasRoutes(l *ListenerMatch, hostname, kind string) bool {
	key := hostnameAt{l, hostname, kind}
	if has, ok := r.memo.hostnames[key]; ok {
		return has
	}
	has := false
	for route := range r.routes.RoutesAt(l.Parent(), hostname, AllSegments) { // often asked: without the iterator
		if has = r.attached(l, route) && counts(route, kind); has {
			break
		}
	}
	return remember(r.memo.hostnames, key, has)
}

// kindFor returns the kind of the routes that count at a listener for a host, given the
// hostnames that match it: "" for all.
func (r *attachments) kindFor(l *ListenerMatch, chain []string) string {
	if !r.reading.OneKind {
		return ""
	}
	if oldest := r.oldestFor(l, chain); oldest != nil {
		return oldest.Kind
	}
	return ""
}

// oldestFor returns the oldest route at a listener on some hostnames, nil for none.
func (r *attachments) oldestFor(l *ListenerMatch, chain []string) *Route {
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

// SharesPorts reports whether some request can come in by several listeners, if they
// share their routes, or in a mesh whether routes of several kinds are on a port.
func (r *attachments) SharesPorts() bool {
	if r.memo.shares == nil {
		r.memo.shares = new(r.findShared())
	}
	return *r.memo.shares
}

func (r *attachments) findShared() bool {
	for i := range r.listeners {
		if r.listeners[i].Service != nil {
			if len(r.listeners[i].Listener.Kinds) > 1 {
				return true
			}
			continue
		}
		for j := range r.listeners[:i] {
			a, b := r.listeners[i].Listener, r.listeners[j].Listener
			if a.SamePort(b) && hostnamesIntersect(a.Hostname, b.Hostname) {
				return true
			}
		}
	}
	return false
}
