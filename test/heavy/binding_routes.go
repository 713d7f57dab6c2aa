package heavy

import "fmt"

func boundWorld(w *World, s Size) {
	w.put(class("before"), namespaceApp("ours"), gateway(0, s.Listeners))
}

// boundRoute returns a route whose rules have numbered matches.
func boundRoute(i int, s Size, state func(rule, m int) object) object {
	r := route(i, s.Gateways, s.RouteRules, 0)
	for at, rule := range r["spec"].(object)["rules"].([]any) {
		rule.(object)["matches"] = list(s.Matches, func(m int) object { return state(at, m) })
	}
	return r
}

// named adds hostnames to a route.
func named(route object) object {
	route["spec"].(object)["hostnames"] = hostnames(16)
	return route
}

// stated returns a match of a route's rule: every second one has another method,
// all have a header.
func stated(rule, m int) object {
	return object{
		"path":   object{"type": "PathPrefix", "value": fmt.Sprintf("/shop/v1/departments/%d/toys/%d", rule, m)},
		"method": []string{"GET", "POST"}[m%2], "headers": tenant,
	}
}

var tenant = []any{object{"name": "x-tenant", "value": "acme"}}

func list(n int, item func(i int) object) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

func triggeredOn(route int, s Size, choose chooser) object {
	return routeLimits(route, triggered(s, choose))
}

// triggers is the number of triggers of a limit, which share its matches.
const triggers = 4

// chooser returns the content of a trigger of a limit by their numbers.
type chooser func(s Size, limit, trigger int) object

// triggered returns limits with triggers, all different.
func triggered(s Size, choose chooser) object {
	limits := make(object, s.Rules)
	for l := range s.Rules {
		limits[fmt.Sprintf("l%04d", l)] = object{
			"rates":    []any{object{"limit": 10 + l, "unit": "minute"}},
			"triggers": list(triggers, func(t int) object { return choose(s, l, t) }),
		}
	}
	return object{"limits": limits}
}

// matching returns a trigger with its share of the limit's matches.
func matching(s Size, trigger int, match func(m int) object) object {
	share := s.Matches / triggers
	return object{"matches": list(share, func(m int) object { return match(trigger*share + m) })}
}

// ofOneRule selects all matches of a rule of the route.
func ofOneRule(s Size, limit, trigger int) object {
	return matching(s, trigger, func(m int) object { return stated(limit%s.RouteRules, m) })
}

// ofEachRule selects one match of each of as many rules as there are matches.
func ofEachRule(s Size, limit, trigger int) object {
	return matching(s, trigger, func(m int) object { return stated(m%s.RouteRules, (limit+m)%s.Matches) })
}

// ofNoRule states matches that are similar to those of the route.
func ofNoRule(s Size, limit, trigger int) object {
	return matching(s, trigger, func(m int) object { return stated(limit+s.RouteRules, m+s.Matches) })
}

// ofOneMatch states one match of the route, and others that no rule has.
func ofOneMatch(s Size, limit, trigger int) object {
	return matching(s, trigger, func(m int) object {
		if m == 0 {
			return stated(limit%s.RouteRules, limit%s.Matches)
		}
		return stated(limit+s.RouteRules, m+s.Matches)
	})
}

// shared states what half of the matches of each rule have in common.
func shared(s Size, limit, trigger int) object {
	return matching(s, trigger, func(m int) object {
		if m%2 == 0 {
			return object{"method": "GET"}
		}
		return object{"method": "GET", "headers": tenant}
	})
}

// byHostnames selects requests by their hostnames only; every second one is not a
// hostname of the route.
func byHostnames(s Size, limit, trigger int) object {
	names := make([]any, s.Matches)
	for i := range names {
		names[i] = fmt.Sprintf("h%02d.example.%s", (limit+trigger+i/2)%s.Matches, []string{"com", "org"}[i%2])
	}
	return object{"hostnames": names}
}
