package gateway

import (
	"cmp"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Answer is where a request goes, with what it was chosen from.
type Answer struct {
	Served
	// Attached are the routes of the listener whose hostnames match the request, the
	// most specific hostname first. Only those on the first hostname can serve it.
	Attached []Attached
	// Candidates are the rules that the request meets, on all hostnames, each by its
	// first match in the order of precedence. The first one serves the request if it
	// is on the first hostname.
	Candidates []Candidate
	// Unread is set if a regular expression on the first hostname cannot be read.
	Unread bool
}

// Attached is a route of a listener.
type Attached struct {
	Listener *ListenerMatch
	Route    *Route
	// Hostname is the more specific one of the route's and the listener's that match
	// the request, "" for any.
	Hostname string
}

// Candidate is a rule that a request meets.
type Candidate struct {
	Served
	// After is the criterion by which the first candidate precedes this one, empty
	// for the first. It is the hostname if no rule on the first hostname is met.
	After api.Precedence
}

// RegexPath reports whether the match that was met has a regular expression for its path.
func (s Served) RegexPath() bool { return s.match != nil && s.match.regexPath() }

// Regex reports whether the match that was met has a regular expression.
func (s Served) Regex() bool { return s.match != nil && s.match.regex }

// Answer returns where a request goes, as Router.Route, and why. It compares the request with
// all matches, without an index.
func (r *matching) Answer(q *Request) Answer {
	var out Answer
	listeners := r.listenersFor(q)
	if len(listeners) == 0 {
		return out
	}
	out.Listener = listeners[0]
	if out.Attached = r.attachedFor(q, listeners); len(out.Attached) == 0 {
		return out
	}
	out.Hostname = out.Attached[0].Hostname
	r.addCandidates(&out, q)
	if len(out.Candidates) > 0 && (out.Candidates[0].Hostname == out.Hostname || r.reading.FallBack) {
		out.Served = out.Candidates[0].Served
	}
	return out
}

// attachedFor returns the routes whose hostnames match a request at the listeners that
// can take it.
func (r *matching) attachedFor(q *Request, listeners []*ListenerMatch) []Attached {
	var out []Attached
	chain := hostnamesFor(q.host())
	for _, l := range listeners {
		kind, seen := r.kindFor(l, chain), make(map[*Route]bool)
		for rank := range chain {
			for _, h := range l.hostnamesAt(chain, rank) {
				for route := range r.attachedAt(l, h, kind) {
					if !seen[route] {
						seen[route] = true
						out = append(out, Attached{Listener: l, Route: route, Hostname: chain[rank]})
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Attached) int {
		return cmp.Or(compareHostnames(a.Hostname, b.Hostname), api.CompareRefs(a.Route.Ref(), b.Route.Ref()))
	})
	return out
}

// addCandidates sets the candidates of an answer from its attached routes.
func (r *matching) addCandidates(a *Answer, q *Request) {
	var met []Served
	for _, on := range a.Attached {
		matches := on.Route.routeMatches()
		for i := range matches {
			m := &matches[i]
			a.Unread = a.Unread || on.Hostname == a.Hostname && m.unread()
			if m.takes(q) {
				met = append(met, servedBy(on.Listener, on.Route, m, on.Hostname))
			}
		}
	}
	slices.SortStableFunc(met, func(x, y Served) int {
		return cmp.Or(compareHostnames(x.Hostname, y.Hostname), r.compare(x, y))
	})
	for _, s := range met {
		if slices.ContainsFunc(a.Candidates, func(o Candidate) bool { return o.Same(s) }) {
			continue
		}
		c := Candidate{Served: s}
		switch {
		case s.Hostname != a.Hostname:
			c.After = api.ByHostname
		case len(a.Candidates) > 0:
			_, c.After = r.reading.compare(&a.Candidates[0].Served, &s)
		}
		a.Candidates = append(a.Candidates, c)
	}
}
