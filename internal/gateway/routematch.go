package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/pattern"
)

// operator is how a condition compares a value.
type operator uint8

const (
	anyValue operator = iota
	exactly
	underPrefix // element by element, for paths only
	matchesRegex
)

// condition is one on a value: a path, a header, a query parameter, or a part of a gRPC
// method. The zero condition is met by any value.
type condition struct {
	op    operator
	value string         // of a prefix without the slash at its end
	regex *regexp.Regexp // for the whole value
	// expression is set if it is written as a regular expression, whatever its operator.
	expression bool
	// unread is set for a regular expression that cannot be compiled: regex stands for the
	// texts that it may match, and that no other condition names.
	unread bool
	// size is that of a regular expression, in instructions.
	size int
}

// namedCondition is a condition on a header or a query parameter.
type namedCondition struct {
	name string // of a header in lower case
	condition
}

// namedConditions are conditions on different headers, or query parameters.
type namedConditions []namedCondition

// on returns the condition on a name, which any value meets if there is none.
func (all namedConditions) on(name string) condition {
	for i := range all {
		if all[i].name == name {
			return all[i].condition
		}
	}
	return condition{}
}

// exact returns how many conditions are not written as regular expressions.
func (all namedConditions) exact() int {
	n := 0
	for i := range all {
		n += boolRank(!all[i].expression)
	}
	return n
}

// routeMatch is one match of a rule of a route: its conditions, of which all must be met.
// The zero match is met by every request.
type routeMatch struct {
	rule, match     int
	grpc            bool
	path            condition // of HTTPRoutes
	service, method condition // of GRPCRoutes
	verb            string    // HTTP method, "" for any
	headers, params namedConditions
	regex           bool   // some condition is a regular expression that is not a literal
	cost            int    // of comparing a request with it, 1 for a match without headers and parameters
	segment         string // the first one of the paths that it takes, "" for any
	raw             string // the rule's matches as JSON, where they cannot be read
}

// matchSet is what follows from the matches of a route alone, each on first use. It is shared
// by versions of a route.
type matchSet struct {
	compileOnce, hashOnce, segmentsOnce sync.Once

	compiled []routeMatch
	hashes   []uint64
	segments []string
	count    int
}

func (r *Route) matchSet() *matchSet {
	if s := r.matches.Load(); s != nil {
		return s
	}
	r.matches.CompareAndSwap(nil, &matchSet{})
	return r.matches.Load()
}

// ShareMatches lets the route use what is known of the matches of another version of it, if
// they are the same.
func (r *Route) ShareMatches(o *Route) {
	if r.Kind == o.Kind && sameMatchesJSON(r, o) {
		r.matches.CompareAndSwap(nil, o.matchSet())
	}
}

// routeMatches returns the matches of the route's rules, in their order. Routes that are
// neither HTTPRoutes nor GRPCRoutes have one for their first rule: their rules have no
// conditions.
func (r *Route) routeMatches() []routeMatch {
	s := r.matchSet()
	s.compileOnce.Do(func() { s.compiled = compileMatches(r) })
	return s.compiled
}

// matchHashes returns the hashes of the route's matches, in the order of routeMatches. Two
// that select the same requests by another spelling have the same hash.
func (r *Route) matchHashes() []uint64 {
	s := r.matchSet()
	s.hashOnce.Do(func() {
		for _, m := range r.routeMatches() {
			s.hashes = append(s.hashes, m.hash())
		}
	})
	return s.hashes
}

// costOfRegex is the cost of a regular expression, of which the condition on a literal
// costs 1.
const costOfRegex = 4

// sizeOfCost is the square of the size that a regular expression has for each cost of 1 more:
// texts that meet it may be as long as it is.
const sizeOfCost = 512

func compileMatches(r *Route) []routeMatch {
	var out []routeMatch
	grpc := r.Kind == KindGRPCRoute
	var segments []string // of the matches of a rule
	add := func(rule, match int, m routeMatch) {
		m.rule, m.match = rule, match
		m.cost = 1
		for _, c := range m.conditions() {
			if c.op != anyValue {
				m.cost++
			}
			if c.op == matchesRegex {
				m.regex = true
				m.cost += costOfRegex + c.size*c.size/sizeOfCost
			}
		}
		m.segment = segments[match]
		out = append(out, m)
	}
	for i := range r.Rules {
		segments = segmentsOf(r, i)
		all, err := readMatches(r.Kind, r.Rules[i].matches)
		for j := range all {
			add(i, j, all[j].compile(grpc))
		}
		switch {
		case len(all) > 0 || i > 0 && !r.readsRequests():
		case err != nil:
			add(i, 0, routeMatch{grpc: grpc, raw: string(r.Rules[i].matches)})
		default:
			add(i, 0, routeMatch{grpc: grpc})
		}
	}
	return out
}

// compile returns the conditions of the match, of a GRPCRoute or of an HTTPRoute.
func (m *Match) compile(grpc bool) routeMatch {
	out := routeMatch{grpc: grpc}
	if m.Path != nil {
		out.path = pathCondition(*m.Path.Type, *m.Path.Value)
	}
	if m.Method != nil {
		out.verb = string(*m.Method)
	}
	if c := m.Call; c != nil && c.Service != nil {
		out.service = valueCondition(string(*c.Type), *c.Service)
	}
	if c := m.Call; c != nil && c.Method != nil {
		out.method = valueCondition(string(*c.Type), *c.Method)
	}
	for _, h := range m.Headers {
		out.headers = addNamed(out.headers, strings.ToLower(string(h.Name)), string(*h.Type), h.Value)
	}
	for _, p := range m.QueryParams {
		out.params = addNamed(out.params, string(p.Name), string(*p.Type), p.Value)
	}
	return out
}

func pathCondition(kind gatewayv1.PathMatchType, value string) condition {
	switch kind {
	case gatewayv1.PathMatchExact:
		return condition{op: exactly, value: value}
	case gatewayv1.PathMatchPathPrefix:
		if value = strings.TrimRight(value, "/"); value == "" {
			return condition{}
		}
		return condition{op: underPrefix, value: value}
	default:
		return regexCondition(value)
	}
}

// addNamed adds a condition on a name. Of several on one name, the first counts.
func addNamed(all namedConditions, name, kind, value string) namedConditions {
	if all.on(name).op != anyValue {
		return all
	}
	return append(all, namedCondition{name, valueCondition(kind, value)})
}

func valueCondition(kind, value string) condition {
	if kind == string(gatewayv1.HeaderMatchRegularExpression) {
		return regexCondition(value)
	}
	return condition{op: exactly, value: value}
}

// regexCondition returns the condition of a regular expression, which matches whole
// values. One that is a literal is an exact condition, with the precedence of an expression.
func regexCondition(text string) condition {
	parsed := parseExpression(text)
	if parsed == nil {
		return unreadCondition(text)
	}
	if parsed = parsed.Simplify(); parsed.Op == syntax.OpLiteral && parsed.Flags&syntax.FoldCase == 0 {
		return condition{op: exactly, value: string(parsed.Rune), expression: true}
	}
	regex, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return unreadCondition(text)
	}
	return condition{op: matchesRegex, value: text, regex: regex, expression: true, size: instructions(parsed)}
}

// maxInstructions is the size of the largest expressions that are compiled.
const maxInstructions = 1 << 12

// parseExpression parses a regular expression, nil if it cannot be read or is too large.
func parseExpression(text string) *syntax.Regexp {
	if pattern.Cost(text) > pattern.MaxCost {
		return nil
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil || instructions(parsed) > maxInstructions {
		return nil
	}
	return parsed
}

// instructions returns about how many instructions, and ranges of these, an expression has.
func instructions(e *syntax.Regexp) int {
	n := 1 + len(e.Rune)
	for _, sub := range e.Sub {
		n += instructions(sub)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(1, e.Min, e.Max)
	}
	return min(n, 2*maxInstructions)
}

// unreadCondition returns the condition of a regular expression that cannot be compiled.
func unreadCondition(text string) condition {
	return condition{op: matchesRegex, value: text, unread: true, expression: true, regex: regexp.MustCompile(fmt.Sprintf("^(?s:.*)%s%016x(?s:.*)$", freeText, maphash.String(textSeed, text)))}
}

// conditions returns all conditions of the match but that on its verb, of which some may be met
// by any value.
func (m *routeMatch) conditions() []matchPart {
	out := []matchPart{{conditionAt{part: partPath}, m.path}, {conditionAt{part: partService}, m.service}, {conditionAt{part: partMethod}, m.method}}
	for _, h := range m.headers {
		out = append(out, matchPart{conditionAt{partHeader, h.name}, h.condition})
	}
	for _, p := range m.params {
		out = append(out, matchPart{conditionAt{partParam, p.name}, p.condition})
	}
	return out
}

// hash identifies the conditions: matches that select the same requests have the same hash,
// however they are written.
func (m *routeMatch) hash() uint64 {
	type of struct {
		conditionAt
		op         operator
		expression bool
		value      string
	}
	var h maphash.Hash
	h.SetSeed(textSeed)
	maphash.WriteComparable(&h, [3]any{m.grpc, m.verb, m.raw})
	all := m.conditions()
	slices.SortFunc(all, func(a, b matchPart) int {
		return cmp.Or(strings.Compare(a.part, b.part), strings.Compare(a.name, b.name))
	})
	for _, c := range all {
		maphash.WriteComparable(&h, of{c.conditionAt, c.op, c.expression && c.name == "", c.value})
	}
	return h.Sum64()
}

// firstSegment returns what is between the first two slashes of a path.
func firstSegment(path string) string {
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return segment
}

// HasRegex reports whether some match of the route has a regular expression for its path, and
// whether one has one for a header or a query parameter.
func (r *Route) HasRegex() (paths, values bool) {
	if !mayHaveRegex(r) {
		return false, false
	}
	matches := r.routeMatches()
	for i := range matches {
		m := &matches[i]
		paths = paths || m.regexPath()
		values = values || m.headers.exact() < len(m.headers) || m.params.exact() < len(m.params)
	}
	return paths, values
}

// mayHaveRegex reports whether the route may have regular expressions, without decoding its
// matches.
func mayHaveRegex(r *Route) bool {
	return slices.ContainsFunc(r.Rules, func(rule Rule) bool {
		return bytes.Contains(rule.matches, []byte(gatewayv1.PathMatchRegularExpression))
	})
}

// Segments returns the first segments of the paths that the route's matches take, each
// once; "" stands for matches that take paths with any.
func (r *Route) Segments() []string {
	s := r.matchSet()
	s.segmentsOnce.Do(func() {
		for i := range r.Rules {
			all := segmentsOf(r, i)
			s.count += len(all)
			for _, segment := range all {
				if segment = intern(segment); !slices.Contains(s.segments, segment) {
					s.segments = append(s.segments, segment)
				}
			}
		}
	})
	return s.segments
}

// MatchCount returns how many matches the rules of the route have.
func (r *Route) MatchCount() int {
	r.Segments()
	return r.matchSet().count
}

// sizeOfMatch is the size of a regular expression that counts as one more match.
const sizeOfMatch = 64

// MatchWeight returns how many matches the route has. Those with large regular expressions
// count more, by the square of their size: others are compared with these, too.
func (r *Route) MatchWeight() int {
	out := r.MatchCount()
	if !mayHaveRegex(r) {
		return out
	}
	for _, m := range r.routeMatches() {
		for _, c := range m.conditions() {
			out += c.size * c.size / (sizeOfMatch * sizeOfMatch)
		}
	}
	return out
}

// segmentsOf returns the first segment of each match of a rule. It is much cheaper than
// decoding the matches.
func segmentsOf(r *Route, rule int) []string {
	type value struct {
		Type    string `json:"type"`
		Value   string `json:"value"`
		Service string `json:"service"`
	}
	type match struct {
		Path   value           `json:"path"`
		Method json.RawMessage `json:"method"` // a string in HTTPRoutes
	}
	all, err := decodeList[match](r.Rules[rule].matches)
	if err != nil || len(all) == 0 || r.Kind != KindHTTPRoute && r.Kind != KindGRPCRoute {
		return []string{""}
	}
	out := make([]string, len(all))
	for i, m := range all {
		path := m.Path
		if r.Kind == KindGRPCRoute {
			path = value{}
			if method, err := decode.As[value](m.Method); err == nil && len(m.Method) > 0 {
				path = value{Type: method.Type, Value: "/" + method.Service}
			}
		}
		if path.Type != string(gatewayv1.PathMatchRegularExpression) {
			out[i] = firstSegment(path.Value)
		}
	}
	return out
}

// meets reports whether a value meets the condition.
func (c *condition) meets(value string) bool {
	switch c.op {
	case anyValue:
		return true
	case exactly:
		return c.value == value
	case underPrefix:
		return strings.HasPrefix(value, c.value) && (len(value) == len(c.value) || value[len(c.value)] == '/')
	default:
		return c.regex.MatchString(value)
	}
}

// covers reports whether every request that meets another match is known to meet this one.
func (m *routeMatch) covers(o *routeMatch) bool {
	if m.grpc && !o.grpc || m.verb != "" && m.verb != o.verb || !m.path.covers(o.path) || !m.service.covers(o.service) || !m.method.covers(o.method) {
		return false
	}
	coverAll := func(all, others namedConditions) bool {
		return !slices.ContainsFunc(all, func(c namedCondition) bool { return !c.covers(others.on(c.name)) })
	}
	return coverAll(m.headers, o.headers) && coverAll(m.params, o.params)
}

// covers reports whether every value that meets another condition is known to meet this
// one.
func (c condition) covers(o condition) bool {
	switch {
	case c.op == anyValue:
		return true
	case o.op == anyValue:
		return false
	case o.op == exactly:
		return c.meets(o.value)
	case c.op == underPrefix && o.op == underPrefix:
		return c.meets(o.value)
	case c.op == underPrefix:
		prefix, _ := o.regex.LiteralPrefix()
		return strings.HasPrefix(prefix, c.value+"/")
	default:
		return c.op == o.op && c.value == o.value
	}
}

// excludes reports whether no request can meet both matches, as far as their methods,
// paths and exact values of headers and parameters tell.
func (m *routeMatch) excludes(o *routeMatch) bool {
	if m.verb != "" && o.verb != "" && m.verb != o.verb || excludeNamed(m.headers, o.headers) || excludeNamed(m.params, o.params) {
		return true
	}
	a, b := &m.path, &o.path
	if a.op > b.op {
		a, b = b, a
	}
	switch {
	case m.grpc || o.grpc || a.op == anyValue || b.op == matchesRegex:
		return false
	case a.op == exactly:
		return !b.meets(a.value)
	default:
		return !a.meets(b.value) && !b.meets(a.value)
	}
}

// excludeNamed reports whether two lists of conditions have different exact values of a
// name.
func excludeNamed(a, b namedConditions) bool {
	return slices.ContainsFunc(a, func(c namedCondition) bool {
		o := b.on(c.name)
		return c.op == exactly && o.op == exactly && c.value != o.value
	})
}

// takes reports whether a request meets all conditions of the match.
func (m *routeMatch) takes(q *Request) bool {
	if !m.takesPath(q) {
		return false
	}
	if m.verb != "" && m.verb != q.Method {
		return false
	}
	for i := range m.headers {
		if value, ok := q.Header(m.headers[i].name); !ok || !m.headers[i].meets(value) {
			return false
		}
	}
	for i := range m.params {
		if value, ok := q.Param(m.params[i].name); !ok || !m.params[i].meets(value) {
			return false
		}
	}
	return true
}

// takesPath reports whether the path of a request meets the conditions of the match.
func (m *routeMatch) takesPath(q *Request) bool {
	if !m.grpc {
		return m.path.meets(q.Path)
	}
	service, method, ok := strings.Cut(strings.TrimPrefix(q.Path, "/"), "/")
	return q.GRPC && ok && m.service.meets(service) && m.method.meets(method)
}

// regexPath reports whether the condition on the path, or on the gRPC service or method,
// is written as a regular expression: of one that is a literal, too, the precedence is the
// implementation's.
func (m *routeMatch) regexPath() bool {
	return m.path.expression || m.service.expression || m.method.expression
}

// unread reports whether some condition is a regular expression that cannot be compiled.
func (m *routeMatch) unread() bool {
	return m.regex && slices.ContainsFunc(m.conditions(), func(c matchPart) bool { return c.unread })
}

// conditionAt is what a condition is on: the path, say, or a header.
type conditionAt struct{ part, name string }

// matchPart is a condition of a match.
type matchPart struct {
	conditionAt
	condition
}

// The parts of requests.
const (
	partPath    = "path"
	partService = "service"
	partMethod  = "method"
	partHeader  = "header"
	partParam   = "param"
	partVerb    = "verb"
)
