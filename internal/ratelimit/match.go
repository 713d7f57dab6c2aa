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

// match reads a match, with Gateway API's defaults for fields that are set in part. A
// match without fields selects every rule.
func (r *reader) match(at *field.Path, value any) Match {
	fields, ok := r.object(at, value, matchFields)
	if !ok {
		return Match{}
	}
	var m Match
	if fields["path"] != nil {
		m.Path = r.path(at.Child("path"), fields["path"])
	}
	if fields["method"] != nil {
		if method, ok := oneOf(r, at.Child("method"), fields["method"], methods, ""); ok {
			m.Method = &method
		}
	}
	m.Headers = r.headers(at.Child("headers"), fields["headers"])
	m.QueryParams = r.queryParams(at.Child("queryParams"), fields["queryParams"])
	return m
}

func (r *reader) path(at *field.Path, value any) *gatewayv1.HTTPPathMatch {
	fields, ok := r.object(at, value, pathFields)
	if !ok {
		return nil
	}
	kind, known := oneOf(r, at.Child("type"), fields["type"], pathTypes, gatewayv1.PathMatchPathPrefix)
	text := "/"
	if fields["value"] != nil {
		text, ok = r.text(at.Child("value"), fields["value"], maxPathLength)
	}
	switch {
	case !known || !ok:
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

// headers reads the headers. Of two with the same name, regardless of case, Gateway
// API uses the first.
func (r *reader) headers(at *field.Path, value any) []gatewayv1.HTTPHeaderMatch {
	var headers []gatewayv1.HTTPHeaderMatch
	seen := map[string]bool{}
	for i, item := range r.list(at, value, maxMatchValues) {
		h, ok := readValueMatch(r, at.Index(i), item, headerTypes, gatewayv1.HeaderMatchExact, maxHeaderLength)
		if key := strings.ToLower(h.name); ok && !seen[key] {
			seen[key] = true
			headers = append(headers, gatewayv1.HTTPHeaderMatch{Type: &h.kind, Name: gatewayv1.HTTPHeaderName(h.name), Value: h.value})
		}
	}
	return headers
}

// queryParams reads the query parameters, like headers but case-sensitive.
func (r *reader) queryParams(at *field.Path, value any) []gatewayv1.HTTPQueryParamMatch {
	var params []gatewayv1.HTTPQueryParamMatch
	seen := map[string]bool{}
	for i, item := range r.list(at, value, maxMatchValues) {
		p, ok := readValueMatch(r, at.Index(i), item, queryTypes, gatewayv1.QueryParamMatchExact, maxParameterLength)
		if ok && !seen[p.name] {
			seen[p.name] = true
			params = append(params, gatewayv1.HTTPQueryParamMatch{Type: &p.kind, Name: gatewayv1.HTTPHeaderName(p.name), Value: p.value})
		}
	}
	return params
}

// valueMatch is a match of a header or of a query parameter.
type valueMatch[T ~string] struct {
	kind        T
	name, value string
}

func readValueMatch[T ~string](r *reader, at *field.Path, value any, types []T, fallback T, maxLen int) (valueMatch[T], bool) {
	var s valueMatch[T]
	fields, ok := r.object(at, value, valueFields)
	if !ok {
		return s, false
	}
	var kindOK, nameOK, valueOK bool
	s.kind, kindOK = oneOf(r, at.Child("type"), fields["type"], types, fallback)
	if s.name, nameOK = r.text(at.Child("name"), fields["name"], maxNameLength); nameOK && !token.MatchString(s.name) {
		r.addError(field.Invalid(at.Child("name"), s.name, "must consist of letters, digits and !#$%&'*+-.^_`|~"))
		nameOK = false
	}
	if s.value, valueOK = r.text(at.Child("value"), fields["value"], maxLen); valueOK && s.value == "" {
		r.addError(field.Required(at.Child("value"), "must not be empty"))
		valueOK = false
	}
	if s.kind == T(gatewayv1.HeaderMatchRegularExpression) {
		r.pattern(at.Child("value"), s.value)
	}
	return s, kindOK && nameOK && valueOK
}
