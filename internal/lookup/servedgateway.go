package lookup

import (
	"cmp"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// nearest returns the answers that serve the request, then those with a listener for it;
// without any, all. Those without assumptions about the connection come first.
func nearest(all []gatewayAnswer) []gatewayAnswer {
	accepted := slices.DeleteFunc(slices.Clone(all), func(a gatewayAnswer) bool { return a.Listener == nil })
	if len(accepted) == 0 {
		return all
	}
	slices.SortStableFunc(accepted, func(a, b gatewayAnswer) int { return cmp.Compare(a.rank(), b.rank()) })
	return accepted
}

// gatewayAnswer is where a request goes at a gateway.
type gatewayAnswer struct {
	gateway.Answer
	gateway *gateway.Gateway
	router  *gateway.Router
	// asked is the request, arriving the request as it is assumed to arrive.
	asked, arriving *gateway.Request
	question        *Request
	listeners       []gateway.ListenerMatch
}

// rank orders answers: served as asked, served as assumed, not served.
func (a *gatewayAnswer) rank() int {
	switch {
	case !a.served():
		return 2
	case a.arriving != a.asked:
		return 1
	default:
		return 0
	}
}

func (a *gatewayAnswer) served() bool { return a.Route != nil && !a.needsRequest() }

// needsRequest reports whether only a connection is given, and the listener routes by
// requests.
func (a *gatewayAnswer) needsRequest() bool {
	return a.asked.Transport == gateway.TransportTLS && a.asked.Method == "" && a.Listener != nil && a.Listener.Listener.Protocol == "HTTPS"
}

// path returns the path as far as the request comes.
func (a *gatewayAnswer) path() gateway.Path {
	p := gateway.Path{Gateway: a.gateway, Rule: -1}
	if a.Listener != nil {
		p.Set, p.Listener = a.Listener.Set, a.Listener.Listener
	}
	if a.served() {
		p.Route, p.Rule = a.Route, a.Rule
	}
	return p
}

// atGateway returns where a request goes at a gateway: once, or once for each port that
// it is assumed to arrive at.
func (f *finder) atGateway(g *gateway.Gateway, q *gateway.Request) []gatewayAnswer {
	listeners := f.view.Listeners(g)
	router := f.view.Router(g, gateway.Reading{})
	var out []gatewayAnswer
	for _, arriving := range arrivals(router, listeners, q, f.Port != nil) {
		out = append(out, gatewayAnswer{gateway: g, router: router, asked: q, arriving: arriving, question: &f.Request, listeners: listeners, Answer: answerOf(router, arriving)})
	}
	return out
}

// answerOf returns where a request goes. A listener that passes TLS through knows the
// server name alone.
func answerOf(r *gateway.Router, q *gateway.Request) gateway.Answer {
	if l := r.Route(q).Listener; l != nil && l.Listener.Protocol == "TLS" && q.ServerName != "" {
		named := *q
		named.Host = q.ServerName
		q = &named
	}
	return r.Answer(q)
}

// arrivals returns the request if a listener accepts it, at each of the ports where one
// does if it has none. Otherwise it returns the
// requests that the gateway may receive in its place: at another port, since something in
// front of the gateway maps the port, or without TLS, since something in front of the
// gateway terminates it.
func arrivals(r *gateway.Router, listeners []gateway.ListenerMatch, q *gateway.Request, portGiven bool) []*gateway.Request {
	if q.Port != 0 && r.Route(q).Listener != nil || q.Transport == gateway.TransportTCP || q.Transport == gateway.TransportUDP {
		return []*gateway.Request{q}
	}
	var ports []int32
	for i := range listeners {
		ports = append(ports, listeners[i].Listener.Port)
	}
	if portGiven {
		ports = []int32{q.Port}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if out := acceptedAt(r, *q, ports); len(out) > 0 {
		return out
	}
	if q.Transport == gateway.TransportTLS && q.Method != "" {
		plain := *q
		plain.Transport, plain.ServerName = gateway.TransportHTTP, ""
		if out := acceptedAt(r, plain, ports); len(out) > 0 {
			return out
		}
	}
	return []*gateway.Request{q}
}

// acceptedAt returns the request at each of the ports where a listener accepts it.
func acceptedAt(r *gateway.Router, q gateway.Request, ports []int32) []*gateway.Request {
	var out []*gateway.Request
	for _, q.Port = range ports {
		if at := q; r.Route(&at).Listener != nil {
			out = append(out, &at)
		}
	}
	return out
}

// request returns the answer as in the output.
func (a *gatewayAnswer) request() api.RequestAt {
	out := api.RequestAt{Path: a.path().Elements(), Served: a.served()}
	if a.Listener == nil {
		out.Message = a.noListener()
		return out
	}
	if out.Served {
		out.Hostname, out.Match = a.Hostname, a.MatchText()
	} else {
		out.Message = a.notServed()
	}
	out.Assumptions = a.assumptions()
	if a.question.Explain && !a.needsRequest() {
		out.Candidates = candidatesOf(a.Candidates)
	}
	return out
}

func candidatesOf(all []gateway.Candidate) []api.RequestCandidate {
	out := make([]api.RequestCandidate, len(all))
	for i, c := range all {
		path := gateway.Path{Route: c.Route, Rule: c.Rule}.Elements()
		out[i] = api.RequestCandidate{Rule: path[len(path)-1], Hostname: c.Hostname, Match: c.MatchText(), After: c.After}
	}
	return out
}
