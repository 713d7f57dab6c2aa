package ratelimit

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
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
		switch action, ok := descriptor(selector); {
		case selector == domain:
			out = append(out, genericKey(domain, r.namespace))
		case ok:
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
	add := func(selector string) {
		if !slices.Contains(out, selector) {
			out = append(out, selector)
		}
	}
	if l.commonHostnames() != nil {
		add(hostSelector)
	}
	for _, c := range l.When {
		add(c.Selector)
	}
	for _, selector := range l.Counters {
		add(selector)
	}
	return out
}

// descriptor returns the action that adds the value of a selector. ok is false if there
// is none: attributes below ratelimit are in the request to the service anyway, and no
// action adds the time.
func descriptor(selector string) (action api.DescriptorAction, ok bool) {
	cluster := &api.ClusterAction{DescriptorKey: selector}
	switch {
	case strings.HasPrefix(selector, "auth."):
		return api.DescriptorAction{Metadata: metadata(selector)}, true
	case strings.HasPrefix(selector, "context.request.http."):
		return api.DescriptorAction{RequestHeaders: &api.HeaderAction{DescriptorKey: selector, HeaderName: headerOf(selector)}}, true
	case strings.HasPrefix(selector, "context.source."):
		return api.DescriptorAction{SourceCluster: cluster}, true
	case strings.HasPrefix(selector, "context.destination."):
		return api.DescriptorAction{DestinationCluster: cluster}, true
	}
	return api.DescriptorAction{}, false
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
		action, ok := descriptor(selector)
		switch h := action.RequestHeaders; {
		case strings.HasPrefix(selector, "ratelimit."):
		case !ok, h != nil && strings.HasPrefix(h.HeaderName, ":") && !slices.Contains(pseudoHeaders, h.HeaderName):
			out = append(out, selector)
		}
	}
	return out
}
