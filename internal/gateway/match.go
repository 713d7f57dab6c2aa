package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/decode"
)

// Match is a match of a rule of an HTTPRoute, or of a GRPCRoute: this has a Call, if any, in
// place of a path, a method and parameters.
type Match struct {
	gatewayv1.HTTPRouteMatch `json:",inline"`

	Call *gatewayv1.GRPCMethodMatch `json:"-"`
}

// Matches returns the matches of the i-th rule, defaulted as by the API server. Those of an
// HTTPRoute are at least one. It returns nil for a rule of a GRPCRoute without matches, which
// matches every request, for invalid matches, and for routes of other kinds.
func (r *Route) Matches(i int) []Match {
	all, _ := readMatches(r.Kind, r.Rules[i].matches)
	return all
}

func readMatches(kind string, data json.RawMessage) (out []Match, err error) {
	switch kind {
	case KindHTTPRoute:
		if out, err = decodeList[Match](data); len(out) == 0 {
			out = make([]Match, 1)
		}
		for i := range out {
			defaultTo(&out[i].Path, gatewayv1.HTTPPathMatch{})
		}
	case KindGRPCRoute:
		type match struct {
			Method  *gatewayv1.GRPCMethodMatch  `json:"method"`
			Headers []gatewayv1.HTTPHeaderMatch `json:"headers"` // they have the same fields
		}
		var all []match
		all, err = decodeList[match](data)
		for _, m := range all {
			out = append(out, Match{gatewayv1.HTTPRouteMatch{Headers: m.Headers}, m.Method})
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].setDefaults()
	}
	return out, nil
}

// decodeList decodes the matches of a rule, which are optional.
func decodeList[T any](data json.RawMessage) ([]T, error) {
	if len(data) == 0 {
		return nil, nil
	}
	m, err := decode.As[[]T](data)
	return *m, err
}

// Match returns the match that a request meets, nil for routes without matches.
func (s Served) Match() *Match {
	if s.match == nil {
		return nil
	}
	if all := s.Route.Matches(s.Rule); s.match.match < len(all) {
		return &all[s.match.match]
	}
	return nil
}

// MatchText returns the match that a request meets for messages, such as
// "GET PathPrefix /toys with header x=1"; "" for routes without matches.
func (s Served) MatchText() string {
	switch m := s.Match(); {
	case m != nil:
		return m.text()
	case s.Route != nil && s.Route.Kind == KindGRPCRoute:
		return anyRequest
	default:
		return ""
	}
}

// anyRequest stands for a match without conditions.
const anyRequest = "any request"

// HTTPMatchText returns a match for messages.
func HTTPMatchText(m *gatewayv1.HTTPRouteMatch) string { return (&Match{HTTPRouteMatch: *m}).text() }

func (m *Match) text() string {
	var words, with []string
	if m.Method != nil {
		words = append(words, string(*m.Method))
	}
	if m.Path != nil {
		words = append(words, string(ptr.Deref(m.Path.Type, gatewayv1.PathMatchPathPrefix))+" "+ptr.Deref(m.Path.Value, "/"))
	}
	if c := m.Call; c != nil && (c.Service != nil || c.Method != nil) {
		words = append(words, string(ptr.Deref(c.Type, gatewayv1.GRPCMethodMatchExact))+" /"+ptr.Deref(c.Service, "*")+"/"+ptr.Deref(c.Method, "*"))
	}
	if len(words) == 0 {
		words = []string{anyRequest}
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		with = append(with, valueText("header", string(h.Name), string(ptr.Deref(h.Type, gatewayv1.HeaderMatchExact)), h.Value))
	}
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		with = append(with, valueText("query parameter", string(q.Name), string(ptr.Deref(q.Type, gatewayv1.QueryParamMatchExact)), q.Value))
	}
	text := strings.Join(words, " ")
	if len(with) > 0 {
		text += " with " + strings.Join(with, " and ")
	}
	return text
}

func valueText(what, name, kind, value string) string {
	equals := "="
	if kind != string(gatewayv1.HeaderMatchExact) {
		equals = "~"
	}
	return fmt.Sprintf("%s %s%s%s", what, name, equals, value)
}
