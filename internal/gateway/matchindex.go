package gateway

import (
	"maps"
	"slices"
	"strings"
)

// indexed is a match in an index.
type indexed struct {
	Served

	order int // among matches of the same precedence
}

// matchIndex finds matches by their paths, and by one more condition on an exact value. It
// groups them when it is asked for some.
type matchIndex struct {
	rules    [][]indexed // at a listener
	count    int         // of their matches
	asked    int         // for those that requests meet, without groups
	byMatch  map[*routeMatch]*indexed
	groups   map[pathKey]*pathGroup
	literals []pathKey // of the groups, sorted by their text
	lengths  []int     // of the texts of regular expressions, each once
}

// pathKey is what a match says about paths: an operator and a text. Of a regular
// expression, the text is what all of its values start with.
type pathKey struct {
	op   operator
	text string
}

// pathKey returns the key of the match. That of a gRPC method is its path.
func (m *routeMatch) pathKey() pathKey {
	regex := func(c condition) pathKey {
		text, _ := c.regex.LiteralPrefix()
		return pathKey{matchesRegex, text}
	}
	switch {
	case !m.grpc && m.path.op == matchesRegex:
		return regex(m.path)
	case !m.grpc:
		return pathKey{m.path.op, m.path.value}
	case m.service.op != exactly:
		return pathKey{}
	case m.method.op == exactly:
		return pathKey{exactly, "/" + m.service.value + "/" + m.method.value}
	default:
		return pathKey{underPrefix, "/" + m.service.value}
	}
}

// add adds the matches of a rule.
func (x *matchIndex) add(rule []indexed) {
	if len(rule) > 0 {
		x.rules, x.count = append(x.rules, rule), x.count+len(rule)
	}
}

// matches yields all matches.
func (x *matchIndex) matches(yield func(*indexed) bool) {
	for _, rule := range x.rules {
		for i := range rule {
			if !yield(&rule[i]) {
				return
			}
		}
	}
}

// group groups the matches by their paths.
func (x *matchIndex) group() {
	if x.groups != nil {
		return
	}
	x.groups = make(map[pathKey]*pathGroup, x.count)
	for m := range x.matches {
		key := m.match.pathKey()
		g := x.groups[key]
		if g == nil {
			g = &pathGroup{}
			g.all, x.groups[key] = g.one[:0], g
			if n := len(key.text); key.op == matchesRegex && !slices.Contains(x.lengths, n) {
				x.lengths = append(x.lengths, n)
			}
		}
		g.all = append(g.all, m)
	}
}

// fewQuestions is for how many requests matches are looked at without groups.
const fewQuestions = 4

// metBy calls visit for the matches whose paths a request meets.
func (x *matchIndex) metBy(q *Request, visit func(*indexed)) {
	at := pathKey{exactly, q.Path}
	if x.asked++; x.groups == nil && x.asked <= fewQuestions {
		for m := range x.matches {
			if m.match.pathKey().isAbove(at) {
				visit(m)
			}
		}
		return
	}
	x.group()
	x.above(at, func(g *pathGroup) { g.metBy(q, visit) })
}

// compatible calls visit for the matches that may have paths in common with another one.
func (x *matchIndex) compatible(m *routeMatch, visit func(*indexed)) {
	x.group()
	key := m.pathKey()
	look := func(g *pathGroup) {
		for _, o := range g.all {
			visit(o)
		}
	}
	if key.text == "" {
		for _, k := range x.sorted() {
			look(x.groups[k])
		}
		return
	}
	x.above(key, look)
	from := key.text
	if key.op == underPrefix {
		from += "/"
	}
	if key.op == exactly {
		return
	}
	all := x.sorted()
	at, _ := slices.BinarySearchFunc(all, from, func(k pathKey, text string) int { return strings.Compare(k.text, text) })
	for ; at < len(all) && strings.HasPrefix(all[at].text, from); at++ {
		if !all[at].isAbove(key) { // else it was visited
			look(x.groups[all[at]])
		}
	}
}

// isAbove reports whether above visits a key for another one.
func (k pathKey) isAbove(o pathKey) bool {
	switch k.op {
	case anyValue:
		return true
	case exactly:
		return k.text == o.text && o.op != matchesRegex
	case underPrefix:
		return strings.HasPrefix(o.text, k.text) && (len(o.text) == len(k.text) || o.text[len(k.text)] == '/')
	default:
		return strings.HasPrefix(o.text, k.text)
	}
}

// above calls visit for the groups of the same path and of those that contain it.
func (x *matchIndex) above(key pathKey, visit func(*pathGroup)) {
	see := func(op operator, text string) {
		if g := x.groups[pathKey{op, text}]; g != nil {
			visit(g)
		}
	}
	see(anyValue, "")
	if key.op != matchesRegex {
		see(exactly, key.text)
	}
	for i := 1; i < len(key.text); i++ {
		if key.text[i] == '/' {
			see(underPrefix, key.text[:i])
		}
	}
	see(underPrefix, key.text)
	for _, n := range x.lengths {
		if n <= len(key.text) {
			see(matchesRegex, key.text[:n])
		}
	}
}

func (x *matchIndex) sorted() []pathKey {
	if x.literals == nil {
		x.literals = slices.SortedFunc(maps.Keys(x.groups), func(a, b pathKey) int { return strings.Compare(a.text, b.text) })
	}
	return x.literals
}

// pathGroup has the matches with the same pathKey.
type pathGroup struct {
	all []*indexed
	one [1]*indexed // the memory of all: most groups have one
	by  map[field][]*indexed
}

// field is a condition on an exact value; the zero field is none.
type field struct {
	conditionAt

	value string
}

// field returns a condition of a match on an exact value: on a header rather than a parameter,
// and on one of these rather than the verb.
func (m *routeMatch) field() field {
	for i := range m.headers {
		if c := &m.headers[i]; c.op == exactly {
			return field{conditionAt{partHeader, c.name}, c.value}
		}
	}
	for i := range m.params {
		if c := &m.params[i]; c.op == exactly {
			return field{conditionAt{partParam, c.name}, c.value}
		}
	}
	if m.verb != "" {
		return field{conditionAt{part: partVerb}, m.verb}
	}
	return field{}
}

// fields yields the conditions on exact values that a request meets, and the zero field.
func (q *Request) fields(yield func(field) bool) {
	more := yield(field{}) && yield(field{conditionAt{part: partVerb}, q.Method})
	for _, h := range q.Headers {
		name := strings.ToLower(h.Name)
		value, _ := q.Header(name)
		more = more && yield(field{conditionAt{partHeader, name}, value})
	}
	for _, p := range q.Query {
		value, _ := q.Param(p.Name)
		more = more && yield(field{conditionAt{partParam, p.Name}, value})
	}
}

// fewMatches is how many matches of a group are looked at without their fields.
const fewMatches = 16

// metBy calls visit for the matches whose field a request has.
func (g *pathGroup) metBy(q *Request, visit func(*indexed)) {
	if len(g.all) <= fewMatches {
		for _, m := range g.all {
			visit(m)
		}
		return
	}
	if g.by == nil {
		g.by = make(map[field][]*indexed)
		for _, m := range g.all {
			f := m.match.field()
			g.by[f] = append(g.by[f], m)
		}
	}
	for f := range q.fields {
		for _, m := range g.by[f] {
			visit(m)
		}
	}
}
