package ratelimit

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

const (
	hostSelector = "context.request.http.host"
	domain       = "ratelimit.domain"
	// authFilter is the filter that sets the dynamic metadata of auth.*.
	authFilter = "envoy.filters.http.ext_authz"
)

// configurations returns the entries of the descriptor of a limit: one that binds it to
// its rules, and one for each value that its conditions and counters select.
func (r *Rendering) configurations(l *rendered) []api.DescriptorAction {
	out := []api.DescriptorAction{genericKey(bindingDescriptor, l.id)}
	for _, selector := range l.limit.selectors() {
		if action := descriptor(selector); selector == domain {
			out = append(out, genericKey(domain, r.namespace))
		} else if action != (api.DescriptorAction{}) {
			out = append(out, action)
		}
	}
	return out
}

func genericKey(key, value string) api.DescriptorAction {
	return api.DescriptorAction{GenericKey: &api.GenericKey{DescriptorKey: key, DescriptorValue: value}}
}

// selectors returns the selectors of hostnames, conditions and counters, each once.
func (l *Limit) selectors() []string {
	var out []string
	if l.commonHostnames() != nil {
		out = append(out, hostSelector)
	}
	for _, c := range l.When {
		out = append(out, c.Selector)
	}
	return firstOfName(append(out, l.Counters...), func(selector *string) string { return *selector })
}

// descriptor returns the action that adds the value of a selector, the zero one if there
// is none: attributes below ratelimit are in the request to the service anyway, and no
// action adds the time.
func descriptor(selector string) (action api.DescriptorAction) {
	cluster := &api.ClusterAction{DescriptorKey: selector}
	switch {
	case strings.HasPrefix(selector, "auth."):
		action.Metadata = metadata(selector)
	case strings.HasPrefix(selector, "context.request.http."):
		action.RequestHeaders = &api.HeaderAction{DescriptorKey: selector, HeaderName: headerOf(selector)}
	case strings.HasPrefix(selector, "context.source."):
		action.SourceCluster = cluster
	case strings.HasPrefix(selector, "context.destination."):
		action.DestinationCluster = cluster
	}
	return action
}

func metadata(selector string) *api.MetadataAction {
	out := &api.MetadataAction{DescriptorKey: selector, MetadataKey: api.MetadataKey{Key: authFilter}}
	for _, segment := range strings.Split(selector, ".")[1:] {
		out.MetadataKey.Path = append(out.MetadataKey.Path, api.MetadataSegment{Segment: api.MetadataName{Key: segment}})
	}
	return out
}

// headerOf returns the header or pseudo-header with an attribute of the request.
func headerOf(selector string) string {
	attribute := strings.TrimPrefix(selector, "context.request.http.")
	if header, ok := strings.CutPrefix(attribute, "headers."); ok {
		return header
	}
	if attribute == "host" {
		return ":authority"
	}
	return ":" + attribute
}

// pseudoHeaders are the pseudo-headers of requests.
var pseudoHeaders = []string{":authority", ":method", ":path", ":scheme"}

// UnsetSelectors returns the selectors of a limit whose value no action adds, or only
// from a pseudo-header that no request has. Without the value a gateway sends no
// descriptor, and the service does not count the request.
func (l *Limit) UnsetSelectors() []string {
	var out []string
	for _, selector := range l.selectors() {
		action := descriptor(selector)
		switch h := action.RequestHeaders; {
		case strings.HasPrefix(selector, "ratelimit."):
		case action == (api.DescriptorAction{}), h != nil && strings.HasPrefix(h.HeaderName, ":") && !slices.Contains(pseudoHeaders, h.HeaderName):
			out = append(out, selector)
		}
	}
	return out
}

// conditionsOf returns the conditions of a limit in the syntax of the rate limit service:
// one that binds it to its rules, one on hostnames, and its own.
func conditionsOf(id string, l *Limit) []string {
	all := []Condition{{Selector: bindingDescriptor, Operator: Equals, Value: &id}}
	if same := l.commonHostnames(); same != nil {
		all = append(all, hostCondition(same))
	}
	all = append(all, l.When...)
	out := make([]string, len(all))
	for i, c := range all {
		out[i] = c.String()
	}
	return out
}

// operatorSymbols are the operators that are written in another way by the rate limit service.
var operatorSymbols = map[Operator]string{Equals: "==", NotEquals: "!="}

// String returns the condition in the syntax of the rate limit service: `a.b != "x"`.
func (c Condition) String() string {
	text := c.Selector + " " + cmp.Or(operatorSymbols[c.Operator], string(c.Operator))
	if c.Value == nil {
		return text
	}
	value, _ := decode.Encode(*c.Value, "") // a string can always be encoded
	return text + " " + string(value)
}

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

// hostCondition returns the condition that a request is for one of several hostnames. A
// single hostname without a wildcard is compared; otherwise the condition is one regular
// expression, so that the hostnames share a counter.
func hostCondition(hostnames []string) Condition {
	if len(hostnames) == 1 && !strings.HasPrefix(hostnames[0], "*") {
		return Condition{Selector: hostSelector, Operator: Equals, Value: &hostnames[0]}
	}
	alternatives := make([]string, len(hostnames))
	for i, h := range hostnames {
		suffix, wild := strings.CutPrefix(h, "*")
		alternatives[i] = regexp.QuoteMeta(suffix)
		if wild {
			alternatives[i] = "[^.].*" + alternatives[i] // any number of labels, at least one
		}
	}
	expression := "^(" + strings.Join(alternatives, "|") + ")$"
	return Condition{Selector: hostSelector, Operator: MatchesRE, Value: &expression}
}
