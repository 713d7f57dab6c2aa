package ratelimit

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Limits of Gateway API.
const (
	maxMatchValues     = 16
	maxNameLength      = 256
	maxHeaderLength    = 4096
	maxParameterLength = 1024
	maxPathLength      = 1024
)

var (
	methods = []gatewayv1.HTTPMethod{
		gatewayv1.HTTPMethodGet, gatewayv1.HTTPMethodHead, gatewayv1.HTTPMethodPost,
		gatewayv1.HTTPMethodPut, gatewayv1.HTTPMethodDelete, gatewayv1.HTTPMethodConnect,
		gatewayv1.HTTPMethodOptions, gatewayv1.HTTPMethodTrace, gatewayv1.HTTPMethodPatch,
	}
	pathTypes   = []gatewayv1.PathMatchType{gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix, gatewayv1.PathMatchRegularExpression}
	headerTypes = []gatewayv1.HeaderMatchType{gatewayv1.HeaderMatchExact, gatewayv1.HeaderMatchRegularExpression}
	queryTypes  = []gatewayv1.QueryParamMatchType{gatewayv1.QueryParamMatchExact, gatewayv1.QueryParamMatchRegularExpression}
)

var (
	token     = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+\\-.^_`|~]+$")
	pathChars = regexp.MustCompile(`^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+$`)
)

// match reads a match. One without fields selects every rule. Of two headers with the same
// name, regardless of case, or two query parameters, Gateway API uses the first.
func (r *reader) match(at *field.Path, value any) (m Match) {
	fields, ok := r.object(at, value, matchFields)
	if !ok {
		return m
	}
	if fields["path"] != nil {
		m.Path = r.path(at.Child("path"), fields["path"])
	}
	if fields["method"] != nil {
		method := oneOf(r, at.Child("method"), fields["method"], methods)
		m.Method = &method
	}
	m.Headers = firstOfName(listOf(r, at.Child("headers"), fields["headers"], maxMatchValues, r.header), headerName)
	m.QueryParams = firstOfName(listOf(r, at.Child("queryParams"), fields["queryParams"], maxMatchValues, r.queryParam), paramName)
	m.criteria = criteria(&m.HTTPRouteMatch)
	return m
}

func (r *reader) path(at *field.Path, value any) *gatewayv1.HTTPPathMatch {
	fields, ok := r.object(at, value, pathFields)
	if !ok {
		return nil
	}
	kind := oneOf(r, at.Child("type"), fields["type"], pathTypes)
	text, ok := r.text(at.Child("value"), fields["value"], maxPathLength)
	switch {
	case kind == "" || !ok:
	case kind == gatewayv1.PathMatchRegularExpression:
		r.pattern(at.Child("value"), text)
	default:
		if wrong := pathError(text); wrong != "" {
			r.addError(field.Invalid(at.Child("value"), truncate(text), wrong))
		}
	}
	return &gatewayv1.HTTPPathMatch{Type: &kind, Value: &text}
}

// pathError returns why Gateway API does not allow a path of type Exact or PathPrefix:
// no rule of a route can have it. It is empty for a valid path.
func pathError(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "must be an absolute path; start it with /"
	}
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F", "#"} {
		if strings.Contains(path, part) {
			return "must not contain " + part
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(path, end) {
			return "must not end with " + end
		}
	}
	if !pathChars.MatchString(path) {
		return "must be percent-encoded: it contains characters that are not allowed in a path"
	}
	return ""
}

func (r *reader) header(at *field.Path, value any) gatewayv1.HTTPHeaderMatch {
	kind, name, text := readNamed(r, at, value, headerTypes, maxHeaderLength)
	return gatewayv1.HTTPHeaderMatch{Type: &kind, Name: name, Value: text}
}

func (r *reader) queryParam(at *field.Path, value any) gatewayv1.HTTPQueryParamMatch {
	kind, name, text := readNamed(r, at, value, queryTypes, maxParameterLength)
	return gatewayv1.HTTPQueryParamMatch{Type: &kind, Name: name, Value: text}
}

// readNamed reads the match of a header or of a query parameter.
func readNamed[T ~string](r *reader, at *field.Path, value any, types []T, maxLen int) (kind T, name gatewayv1.HTTPHeaderName, text string) {
	fields, ok := r.object(at, value, valueFields)
	if !ok {
		return kind, name, text
	}
	kind = oneOf(r, at.Child("type"), fields["type"], types)
	known, ok := r.text(at.Child("name"), fields["name"], maxNameLength)
	if ok && !token.MatchString(known) {
		r.addError(field.Invalid(at.Child("name"), known, "must consist of letters, digits and !#$%&'*+-.^_`|~"))
	}
	if text, ok = r.text(at.Child("value"), fields["value"], maxLen); ok && text == "" {
		r.addError(field.Required(at.Child("value"), "must not be empty"))
	}
	if string(kind) == string(gatewayv1.HeaderMatchRegularExpression) {
		r.pattern(at.Child("value"), text)
	}
	return kind, gatewayv1.HTTPHeaderName(known), text
}
