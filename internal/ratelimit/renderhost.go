package ratelimit

import (
	"regexp"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/gateway"
)

// commonHostnames returns the hostnames of the triggers, sorted, if all triggers have the
// same; nil if they have none, or different ones. Common hostnames become a condition of
// the service; otherwise the gateway's action restricts the hosts of each rule.
func (l *Limit) commonHostnames() []string {
	var same []string
	for i := range l.Triggers {
		names := slices.Sorted(slices.Values(l.Triggers[i].Hostnames))
		if i > 0 && !slices.Equal(same, names) {
			return nil
		}
		same = names
	}
	return same
}

// intersectHostnames returns the intersection of the hostnames of triggers and the hosts
// of a path, "" for any; without hostnames it returns the hosts.
func intersectHostnames(hostnames, hosts []string) []string {
	if len(hostnames) == 0 {
		return hosts
	}
	var out []string
	for _, a := range hostnames {
		for _, b := range hosts {
			if both, ok := gateway.CommonHostname(a, b); ok {
				out = append(out, both)
			}
		}
	}
	return out
}

// mostGeneral returns the hostnames that no other hostname includes, sorted; nil for
// any.
func mostGeneral(hosts map[string]bool) []string {
	var out []string
	for h := range hosts {
		within := false
		for other := range hosts {
			both, ok := gateway.CommonHostname(h, other)
			within = within || other != h && ok && both == h
		}
		if !within && h != "" {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return out
}

// hostCondition returns the condition that a request is for one of several hostnames. A
// single hostname without a wildcard is compared; otherwise the condition is one regular
// expression, so that the hostnames share a counter.
func hostCondition(hostnames []string) Condition {
	if len(hostnames) == 1 && !strings.HasPrefix(hostnames[0], "*") {
		return Condition{Selector: hostSelector, Operator: Equals, Value: hostnames[0]}
	}
	alternatives := make([]string, len(hostnames))
	for i, h := range hostnames {
		suffix, wild := strings.CutPrefix(h, "*")
		alternatives[i] = regexp.QuoteMeta(suffix)
		if wild {
			alternatives[i] = "[^.].*" + alternatives[i] // any number of labels, at least one
		}
	}
	return Condition{Selector: hostSelector, Operator: MatchesRE, Value: "^(" + strings.Join(alternatives, "|") + ")$"}
}
