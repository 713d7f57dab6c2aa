package ratelimit

import (
	"regexp"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/gateway"
)

// sameHostnames returns the hostnames of the triggers where all have the same,
// sorted; nil where they have none, or differ. Then the service can be told of
// them in a condition; else the gateway has to tell rules and hosts apart.
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

// narrowed returns what hostnames of triggers and hosts of a path, "" for any,
// have in common; without hostnames the hosts.
func intersectHostnames(hostnames, hosts []string) []string {
	if len(hostnames) == 0 {
		return hosts
	}
	var out []string
	for _, a := range hostnames {
		for _, b := range hosts {
			if gateway.HostnamesMeet(a, b) {
				out = append(out, moreSpecific(a, b))
			}
		}
	}
	return out
}

// narrower returns the one of two hostnames that meet that lies within the other.
func moreSpecific(a, b string) string {
	_, wild := strings.CutPrefix(b, "*")
	switch {
	case b == "" || a == b:
		return a
	case !wild || a == "":
		return b
	case !strings.HasPrefix(a, "*"):
		return a
	case len(a) > len(b):
		return a
	default:
		return b
	}
}

// widest returns the hostnames that lie within none of the others, sorted; nil for
// any.
func mostGeneral(hosts map[string]bool) []string {
	var out []string
	for h := range hosts {
		within := false
		for other := range hosts {
			within = within || other != h && gateway.HostnamesMeet(h, other) && moreSpecific(h, other) == h
		}
		if !within && h != "" {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return out
}

// hostCondition is the condition that a request is for one of several hostnames:
// one that is no wildcard is compared with, else there is one expression, so that
// all of them have one counter.
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
