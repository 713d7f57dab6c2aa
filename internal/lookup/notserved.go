package lookup

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// noListener says why no listener of a gateway accepts a request.
func (a *gatewayAnswer) noListener() string {
	q := a.asked
	var onPort, all []string // listeners on the port with the transport, and all
	for i := range a.listeners {
		l := a.listeners[i].Listener
		text := fmt.Sprintf("%s (%s port %d, hostname %s)", l.Name, l.Protocol, l.Port, hostnameText(l.Hostname))
		all = append(all, text)
		if l.ListensFor(q) {
			onPort = append(onPort, text)
		}
	}
	name := q.Host
	if q.ServerName != "" {
		name = q.ServerName
	}
	switch {
	case len(all) == 0:
		return fmt.Sprintf("the gateway has no listeners; add one, or set %s to another gateway", a.question.Names.Gateway)
	case len(onPort) > 0:
		return fmt.Sprintf("no listener accepts host %s; set another host, or add a listener for it: there is %s", name, strings.Join(onPort, ", "))
	case q.Transport == gateway.TransportTCP || q.Transport == gateway.TransportUDP:
		return fmt.Sprintf("no listener accepts %s on port %d; set another port, or add a listener: there is %s", q.Transport, q.Port, strings.Join(all, ", "))
	case a.question.Port != nil:
		return fmt.Sprintf("no listener accepts %s on port %d for host %s; set another %s or host, or add a listener: there is %s", schemeText(q), q.Port, name, a.question.Names.Port, strings.Join(all, ", "))
	default:
		return fmt.Sprintf("no listener accepts %s for host %s on any port; set another host, or add a listener: there is %s", schemeText(q), name, strings.Join(all, ", "))
	}
}

func schemeText(q *gateway.Request) string {
	switch {
	case q.Method == "":
		return "TLS"
	case q.Transport == gateway.TransportTLS:
		return "HTTPS"
	default:
		return "HTTP"
	}
}

func hostnameText(hostname string) string {
	if hostname == "" {
		return "any"
	}
	return hostname
}

// notServed says why nothing serves a request that a listener accepts.
func (a *gatewayAnswer) notServed() string {
	name := a.Listener.Listener.Name
	if a.needsRequest() {
		return fmt.Sprintf("listener %s terminates TLS, and its routes are chosen by HTTP requests; set one, such as 'GET https://%s/'", name, a.asked.Host)
	}
	if len(a.Attached) > 0 {
		return a.noRule()
	}
	if a.arriving.Host == "" {
		return fmt.Sprintf("no route is attached to listener %s; attach one, or check its parentRefs and the allowedRoutes of the listener", name)
	}
	return fmt.Sprintf("no route for host %s is attached to listener %s; add the host to the hostnames of a route, or check its parentRefs and the allowedRoutes of the listener", a.arriving.Host, name)
}

// noRule says that routes match the host of a request, and no rule of theirs the request.
func (a *gatewayAnswer) noRule() string {
	first := a.Attached[0]
	on := slices.DeleteFunc(slices.Clone(a.Attached), func(o gateway.Attached) bool { return o.Hostname != first.Hostname })
	out := fmt.Sprintf("no rule of %s matches the request; change its path, method, headers or query, or add a rule", routeNames(on))
	if len(a.Candidates) > 0 {
		c := a.Candidates[0]
		out += fmt.Sprintf("; %s is not used: its hostname %s is less specific than %s", ruleText(c.Served), hostnameText(c.Hostname), hostnameText(first.Hostname))
	}
	return out
}

// ruleText names the rule of a route that serves a request.
func ruleText(s gateway.Served) string {
	return s.Route.Ref().String() + "#" + s.Route.RuleName(s.Rule)
}

// maxRouteNames is the number of routes that a message names.
const maxRouteNames = 5

func routeNames(all []gateway.Attached) string {
	var names []string
	for _, on := range all {
		if name := on.Route.Ref().String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names[:min(len(names), maxRouteNames)], ", ") + api.More(", ", len(names)-maxRouteNames, "")
}
