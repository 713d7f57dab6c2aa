package lookup

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// assumptions collects what an answer depends on.
type assumptions []api.RequestAssumption

func (a *assumptions) add(code api.AssumptionCode, format string, args ...any) {
	*a = append(*a, api.RequestAssumption{Code: code, Message: fmt.Sprintf(format, args...)})
}

// assumptions returns what the answer of a gateway depends on: the connection first, then
// the listener, then the route.
func (a *gatewayAnswer) assumptions() []api.RequestAssumption {
	var out assumptions
	a.assumeConnection(&out)
	listener := a.Listener.Listener
	route := func(q *gateway.Request, r gateway.Reading) gateway.Served { return a.router.With(r).Route(q) }
	if shared := route(a.arriving, gateway.Reading{Shared: true}); !shared.Same(a.Served) {
		out.add(api.AssumeListenersIsolated, "the gateway isolates its listeners, so that only listener %s takes the request; without that, %s", listener.Name, serves(shared))
	}
	assumeRoutes(&out, &a.Answer, a.arriving, route)
	return out
}

// assumeConnection adds what is assumed about the connection to the gateway.
func (a *gatewayAnswer) assumeConnection(out *assumptions) {
	asked, arriving := a.asked, a.arriving
	switch {
	case arriving.Transport != asked.Transport:
		out.add(api.AssumeTLSTerminated, "no listener terminates TLS for the request: something in front of the gateway does, and forwards it by HTTP to port %d", arriving.Port)
	case arriving.Port != asked.Port && asked.Port != 0:
		out.add(api.AssumePort, "no listener accepts the request on port %d: something in front of the gateway maps it to port %d", asked.Port, arriving.Port)
	}
	if name := arriving.ServerName; name != "" && name != arriving.Host && a.Listener.Listener.Protocol == "HTTPS" {
		out.add(api.AssumeServerName, "server name %s selects the listener, and host %s the route; a gateway may reject a request whose host is not the server name", name, arriving.Host)
	}
}

// routeFunc returns where a request goes by a reading.
type routeFunc func(*gateway.Request, gateway.Reading) gateway.Served

// assumeRoutes adds what the choice among the attached routes depends on.
func assumeRoutes(out *assumptions, a *gateway.Answer, q *gateway.Request, route routeFunc) {
	if hasKind(a.Attached, gateway.KindHTTPRoute) && hasKind(a.Attached, gateway.KindGRPCRoute) {
		out.add(api.AssumeRouteKinds, "HTTPRoutes and GRPCRoutes match host %s, and all of them take part; the implementation may accept one of the kinds only", q.Host)
	}
	assumeRegularExpressions(out, a, q, route)
	assumeCreationTimes(out, a)
	assumeOther(out, api.AssumePathUnchanged, fmt.Sprintf("path %s is matched as it is sent; if the gateway normalizes it", q.Path), a.Served, route, otherPaths(q))
	if others := repeated(q); slices.ContainsFunc(others, func(o *gateway.Request) bool { return !route(o, gateway.Reading{}).Same(a.Served) }) {
		assumeOther(out, api.AssumeRepeatedValues, "of a header that is sent several times the values are joined by commas, and of a query parameter the first value counts. If the gateway reads them in another way,", a.Served, route, others)
	}
}

// assumeCreationTimes adds how a route without a creation time is ordered, if the first two
// candidates of different routes differ only in their age.
func assumeCreationTimes(out *assumptions, a *gateway.Answer) {
	if a.Route == nil {
		return
	}
	for _, c := range a.Candidates {
		if c.After != api.ByOlderRoute && c.After != api.ByName {
			continue
		}
		for _, pair := range [][2]*gateway.Route{{a.Route, c.Route}, {c.Route, a.Route}} {
			if r, other := pair[0], pair[1]; r.Created == merge.Undated {
				how := "counts as the newest"
				if other.Created == merge.Undated {
					how = "is compared by name"
				}
				out.add(api.AssumeCreationTime, "%s has no creation time and %s: on a cluster, the older one of it and %s is first", r.Ref(), how, other.Ref())
				return
			}
		}
	}
}

func assumeRegularExpressions(out *assumptions, a *gateway.Answer, q *gateway.Request, route routeFunc) {
	first := route(q, gateway.Reading{Regex: gateway.RegexFirst})
	switch {
	case first.Same(a.Served):
	case a.RegexPath():
		out.add(api.AssumeRegularExpressions, "the longest regular expression of paths comes first; if its length does not count in the implementation, %s", serves(first))
	default:
		out.add(api.AssumeRegularExpressions, "regular expressions of paths come after all other paths; if they come first in the implementation, %s", serves(first))
	}
	switch middle := route(q, gateway.Reading{Regex: gateway.RegexAfterExact}); {
	case middle.Same(a.Served) || middle.Same(first):
	case a.RegexPath() == middle.RegexPath():
		out.add(api.AssumeRegularExpressions, "a regular expression of a header or query parameter counts as an exact value; if exact values come first in the implementation, %s", serves(middle))
	default:
		out.add(api.AssumeRegularExpressions, "regular expressions of paths come after all other paths; if they come after exact paths and before prefixes in the implementation, %s", serves(middle))
	}
	if a.Regex() {
		out.add(api.AssumeRegularExpressions, "a regular expression matches a whole value, in the syntax of RE2; the implementation may differ")
	}
	if a.Unread {
		out.add(api.AssumeRegularExpressions, "a regular expression of a rule on the hostname is not in the syntax of RE2, and matches nothing here")
	}
}

// assumeOther adds one assumption with where other requests go that the gateway may see
// in place of the one that is sent: one of them for each place.
func assumeOther(out *assumptions, code api.AssumptionCode, text string, as gateway.Served, route routeFunc, others []*gateway.Request) {
	var places []gateway.Served
	var all []string
	for _, o := range others {
		s := route(o, gateway.Reading{})
		if slices.ContainsFunc(places, s.Same) {
			continue
		}
		places = append(places, s)
		where := serves(s)
		if s.Same(as) && s.Route != nil {
			where = "the same rule serves it"
		}
		if code == api.AssumePathUnchanged {
			where = "to " + o.Path + ", " + where
		}
		all = append(all, where)
	}
	if len(all) > 0 {
		out.add(code, "%s %s", text, strings.Join(all, "; "))
	}
}

func hasKind(all []gateway.Attached, kind string) bool {
	return slices.ContainsFunc(all, func(on gateway.Attached) bool { return on.Route.Kind == kind })
}

// serves says what serves a request.
func serves(s gateway.Served) string {
	switch {
	case s.Route == nil:
		return "nothing serves it"
	case s.Listener == nil:
		return ruleText(s) + " serves it"
	default:
		return fmt.Sprintf("%s serves it at listener %s", ruleText(s), s.Listener.Listener.Name)
	}
}

// otherPaths returns the request with each other path to which a gateway may normalize
// its path: escaped characters decoded, slashes merged, dot segments resolved, or some of
// these, the path with most of them first.
func otherPaths(q *gateway.Request) []*gateway.Request {
	var out []*gateway.Request
	seen := []string{q.Path}
	for choice := 7; choice > 0; choice-- {
		text := q.Path
		if decoded, err := url.PathUnescape(text); err == nil && choice&1 != 0 {
			text = decoded
		}
		for choice&2 != 0 && strings.Contains(text, "//") {
			text = strings.ReplaceAll(text, "//", "/")
		}
		if choice&4 != 0 {
			text = resolveDots(text)
		}
		if !slices.Contains(seen, text) {
			seen = append(seen, text)
			other := *q
			other.Path = text
			out = append(out, &other)
		}
	}
	return out
}

// resolveDots resolves the segments . and .. of a path, if there are any.
func resolveDots(text string) string {
	segments := strings.Split(text, "/")
	if !slices.Contains(segments, ".") && !slices.Contains(segments, "..") {
		return text
	}
	out := path.Clean(text)
	if last := segments[len(segments)-1]; out != "/" && (last == "" || last == "." || last == "..") {
		out += "/"
	}
	return out
}

// repeated returns the request with only the first and only the last value of each header
// and query parameter that it has several times.
func repeated(q *gateway.Request) []*gateway.Request {
	first, last := *q, *q
	first.Headers, last.Headers = firstOf(q.Headers, strings.EqualFold), lastOf(q.Headers, strings.EqualFold)
	last.Query = lastOf(q.Query, func(a, b string) bool { return a == b })
	if len(first.Headers) == len(q.Headers) && len(last.Query) == len(q.Query) {
		return nil
	}
	return []*gateway.Request{&first, &last}
}

func firstOf(all []gateway.Field, same func(a, b string) bool) []gateway.Field {
	var out []gateway.Field
	for _, f := range all {
		if !slices.ContainsFunc(out, func(o gateway.Field) bool { return same(o.Name, f.Name) }) {
			out = append(out, f)
		}
	}
	return out
}

func lastOf(all []gateway.Field, same func(a, b string) bool) []gateway.Field {
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	out := firstOf(reversed, same)
	slices.Reverse(out)
	return out
}
