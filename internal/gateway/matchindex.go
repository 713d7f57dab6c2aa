package gateway

import (
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
		x.addTo(m.match.pathKey(), m)
	}
}

// addTo adds a match to the group of its path.
func (x *matchIndex) addTo(key pathKey, m *indexed) {
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

// fewQuestions is for how many requests only the matches are grouped that may take them.
const fewQuestions = 4

// metBy calls visit for the matches whose paths a request meets, and returns how many
// were looked at.
func (x *matchIndex) metBy(q *Request, visit func(*indexed)) (looked int) {
	at, in := pathKey{exactly, q.Path}, x
	if x.asked++; x.groups == nil && x.asked <= fewQuestions {
		in = &matchIndex{groups: make(map[pathKey]*pathGroup)}
		for m := range x.matches {
			if key := m.match.pathKey(); key.isAbove(at) {
				in.addTo(key, m)
			}
		}
	}
	in.group()
	in.above(at, func(g *pathGroup) { looked += g.metBy(q, visit) })
	return looked
}

// compatible calls visit for the matches that may have paths in common with another one,
// and returns how many were looked at.
func (x *matchIndex) compatible(m *routeMatch, visit func(*indexed)) (looked int) {
	x.group()
	key := m.pathKey()
	look := func(g *pathGroup) { looked += g.compatible(m, visit) }
	if key.text == "" {
		for _, k := range x.sorted() {
			look(x.groups[k])
		}
		return looked
	}
	x.above(key, look)
	from := key.text
	if key.op == underPrefix {
		from += "/"
	}
	if key.op == exactly {
		return looked
	}
	all := x.sorted()
	at, _ := slices.BinarySearchFunc(all, from, func(k pathKey, text string) int { return strings.Compare(k.text, text) })
	for ; at < len(all) && strings.HasPrefix(all[at].text, from); at++ {
		if !all[at].isAbove(key) { // else it was visited
			look(x.groups[all[at]])
		}
	}
	return looked
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
		for k := range x.groups {
			x.literals = append(x.literals, k)
		}
		slices.SortFunc(x.literals, func(a, b pathKey) int { return strings.Compare(a.text, b.text) })
	}
	return x.literals
}

// pathGroup has the matches with the same pathKey. Each is listed by one of its conditions
// on an exact value: the one that the fewest matches of the group have.
type pathGroup struct {
	all   []*indexed
	one   [1]*indexed                           // the memory of all: most groups have one
	plain []*indexed                            // without such a condition
	by    map[conditionAt]map[string][]*indexed // by what it is on and the value
}

// field is a condition on an exact value.
type field struct {
	conditionAt

	value string
}

// fields yields the conditions of a match on exact values.
func (m *routeMatch) fields(yield func(field) bool) {
	if m.verb != "" && !yield(field{conditionAt{part: partVerb}, m.verb}) {
		return
	}
	for _, s := range []struct {
		part string
		of   namedConditions
	}{{partHeader, m.headers}, {partParam, m.params}} {
		for i := range s.of {
			if c := &s.of[i]; c.op == exactly && !yield(field{conditionAt{s.part, c.name}, c.value}) {
				return
			}
		}
	}
}

// list lists the matches by their conditions.
func (g *pathGroup) list() {
	if g.plain != nil || g.by != nil {
		return
	}
	count := make(map[field]int)
	for _, m := range g.all {
		for f := range m.match.fields {
			count[f]++
		}
	}
	g.by = make(map[conditionAt]map[string][]*indexed)
	for _, m := range g.all {
		var rarest field
		least := 0
		for f := range m.match.fields {
			if n := count[f]; least == 0 || n < least {
				rarest, least = f, n
			}
		}
		if least == 0 {
			g.plain = append(g.plain, m)
			continue
		}
		if g.by[rarest.conditionAt] == nil {
			g.by[rarest.conditionAt] = make(map[string][]*indexed)
		}
		g.by[rarest.conditionAt][rarest.value] = append(g.by[rarest.conditionAt][rarest.value], m)
	}
}

// metBy calls visit for the matches whose condition a request meets.
func (g *pathGroup) metBy(q *Request, visit func(*indexed)) (looked int) {
	g.list()
	look := func(all []*indexed) {
		looked += len(all)
		for _, m := range all {
			visit(m)
		}
	}
	look(g.plain)
	if len(g.by) == 0 {
		return looked
	}
	look(g.by[conditionAt{part: partVerb}][q.Method])
	for i, h := range q.Headers {
		name := strings.ToLower(h.Name)
		if slices.ContainsFunc(q.Headers[:i], func(o Field) bool { return strings.EqualFold(o.Name, name) }) {
			continue
		}
		value, _ := q.Header(name)
		look(g.by[conditionAt{partHeader, name}][value])
	}
	for i, p := range q.Query {
		if !slices.ContainsFunc(q.Query[:i], func(o Field) bool { return o.Name == p.Name }) {
			look(g.by[conditionAt{partParam, p.Name}][p.Value])
		}
	}
	return looked
}

// compatible calls visit for the matches whose condition does not exclude another match.
func (g *pathGroup) compatible(m *routeMatch, visit func(*indexed)) (looked int) {
	g.list()
	look := func(all []*indexed) {
		looked += len(all)
		for _, o := range all {
			visit(o)
		}
	}
	look(g.plain)
	for at, values := range g.by {
		if value, ok := m.valueOf(at); ok {
			look(values[value])
			continue
		}
		for _, all := range values {
			look(all)
		}
	}
	return looked
}

// valueOf returns the exact value that the match requires.
func (m *routeMatch) valueOf(at conditionAt) (value string, ok bool) {
	for f := range m.fields {
		if f.conditionAt == at {
			return f.value, true
		}
	}
	return "", false
}
