package gateway

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// commonText returns a short text that meets all of some conditions on a part of requests, and
// none of others. work is the cost of the search.
func commonText(met, unmet []condition, part string) (text string, found bool, d doubt, work int) {
	s := textSearch{met: len(met)}
	for _, c := range slices.Concat(met, unmet) {
		if c.unread {
			d = unread
		}
		parsed, err := syntax.Parse(c.asExpression(), syntax.Perl)
		if err != nil {
			return "", false, unsearched, 0
		}
		prog, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			return "", false, unsearched, 0
		}
		s.progs = append(s.progs, prog)
		s.steps += len(prog.Inst)
	}
	s.runes = runesOf(s.progs, part)
	text, found, done := s.run()
	switch {
	case found:
		d = none
	case !done:
		d = unsearched
	}
	return text, found, d, s.steps / stepsPerWork
}

// doubt is why it is not known whether a request, or a value in it, exists that was not
// found.
type doubt uint8

const (
	none       doubt = iota // it does not exist, or was found
	unread                  // a regular expression cannot be read
	unsearched              // the search was given up
)

// maxTextSteps is how many instructions a search for a text looks at, about 0.5 ms, and
// stepsPerWork is how many of them cost as much as a condition.
const (
	maxTextSteps = 1 << 15
	stepsPerWork = 8
)

// asExpression returns the condition as a regular expression for a whole text.
func (c *condition) asExpression() string {
	switch c.op {
	case anyValue:
		return `(?s:.*)`
	case exactly:
		return "^" + regexp.QuoteMeta(c.value) + "$"
	case underPrefix:
		return "^" + regexp.QuoteMeta(c.value) + "(?:/(?s:.*))?$"
	default:
		return c.regex.String()
	}
}

// textSearch looks for a text, the shortest first, by the states in which the programs of
// several regular expressions are after each beginning of it.
type textSearch struct {
	progs []*syntax.Prog
	met   int // the first of them have to match, and no other
	runes []rune
	steps int
}

// textState is a beginning of a text.
type textState struct {
	at     [][]uint32 // the next instructions of each program
	last   rune       // -1 at first
	before int        // the state without the last rune
}

func (s *textSearch) run() (text string, found, done bool) {
	first := textState{last: -1, before: -1}
	for _, p := range s.progs {
		first.at = append(first.at, []uint32{uint32(p.Start)}) //nolint:gosec // G115: an index
	}
	states, seen := []textState{first}, map[string]bool{first.key(): true}
	for i := 0; i < len(states); i++ {
		if s.matches(&states[i]) {
			return textOf(states, i), true, true
		}
		for _, r := range s.runes {
			if s.steps > maxTextSteps {
				return "", false, false
			}
			next, ok := s.advance(&states[i], r)
			if key := next.key(); ok && !seen[key] {
				seen[key], next.before = true, i
				states = append(states, next)
			}
		}
	}
	return "", false, true
}

// key is the same for states that have the same texts after them.
func (t *textState) key() string {
	var b strings.Builder
	for _, at := range t.at {
		for _, pc := range at {
			b.WriteString(strconv.FormatUint(uint64(pc), 36) + " ")
		}
		b.WriteByte(';')
	}
	return b.String() + strconv.Itoa(int(syntax.EmptyOpContext(t.last, -1)))
}

func textOf(states []textState, i int) string {
	var out []rune
	for ; states[i].before >= 0; i = states[i].before {
		out = append(out, states[i].last)
	}
	slices.Reverse(out)
	return string(out)
}

// matches reports whether a text is one that is looked for.
func (s *textSearch) matches(t *textState) bool {
	for k, p := range s.progs {
		if _, match := s.step(p, t.at[k], t.last, -1); match != (k < s.met) {
			return false
		}
	}
	return true
}

// advance returns the state after one more rune, and whether a text may follow.
func (s *textSearch) advance(t *textState, r rune) (textState, bool) {
	out := textState{at: make([][]uint32, len(s.progs)), last: r}
	for k, p := range s.progs {
		out.at[k], _ = s.step(p, t.at[k], t.last, r)
		if len(out.at[k]) == 0 && k < s.met {
			return out, false
		}
	}
	return out, true
}

// step returns the instructions of a program after a rune, -1 for the end of the text, and
// whether the program matches before it.
func (s *textSearch) step(p *syntax.Prog, at []uint32, last, r rune) (next []uint32, match bool) {
	context := syntax.EmptyOpContext(last, r)
	seen := make([]bool, len(p.Inst))
	for todo := slices.Clone(at); len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		s.steps++
		switch in := &p.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^context == 0 { //nolint:gosec // G115: it has six bits
				todo = append(todo, in.Out)
			}
		case syntax.InstMatch:
			match = true
		case syntax.InstFail:
		default:
			if r >= 0 && in.MatchRune(r) && !slices.Contains(next, in.Out) {
				next = append(next, in.Out)
			}
		}
	}
	slices.Sort(next)
	return next, match
}

// shownRunes are the runes that texts are made of where others mean the same.
const shownRunes = "xa0A1b2c3-_./"

// runesOf returns one of each of the runes that no program distinguishes, those that are
// easier to read first. Paths have no query and no fragment. Of control characters, headers
// have tabs, and only parameters, which are decoded, have others.
func runesOf(progs []*syntax.Prog, part string) []rune {
	path := part != partHeader && part != partParam
	cuts := []rune{0, '\t', '\t' + 1, ' ', '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, unicode.MaxASCII, unicode.MaxASCII + 1, 0xd800, 0xe000}
	if path {
		cuts = append(cuts, '#', '#'+1, '?', '?'+1)
	}
	for _, p := range progs {
		for i := range p.Inst {
			cuts = append(cuts, cutsOf(&p.Inst[i])...)
		}
	}
	cuts = slices.DeleteFunc(cuts, func(r rune) bool { return r < 0 || r > unicode.MaxRune })
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var shown, rest []rune
	for i, from := range cuts {
		to := rune(unicode.MaxRune)
		if i+1 < len(cuts) {
			to = cuts[i+1] - 1
		}
		control := part != partParam && (from < ' ' && (from != '\t' || part != partHeader) || from == unicode.MaxASCII)
		if control || from >= 0xd800 && from < 0xe000 || path && (from == '#' || from == '?') {
			continue
		}
		if k := strings.IndexFunc(shownRunes, func(r rune) bool { return from <= r && r <= to }); k >= 0 {
			shown = append(shown, rune(shownRunes[k]))
			continue
		}
		rest = append(rest, from)
	}
	slices.SortFunc(shown, func(a, b rune) int { return strings.IndexRune(shownRunes, a) - strings.IndexRune(shownRunes, b) })
	return append(shown, rest...)
}

// cutsOf returns the runes with which what an instruction says of runes changes.
func cutsOf(in *syntax.Inst) []rune {
	var out []rune
	switch {
	case in.Op != syntax.InstRune && in.Op != syntax.InstRune1:
	case len(in.Rune) == 1: // and those that differ only in case
		out = append(out, in.Rune[0], in.Rune[0]+1)
		for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
			out = append(out, r, r+1)
		}
	default:
		for i := 0; i+1 < len(in.Rune); i += 2 {
			out = append(out, in.Rune[i], in.Rune[i+1]+1)
		}
	}
	return out
}
