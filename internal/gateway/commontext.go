package gateway

import (
	"fmt"
	"iter"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// commonText returns a short text that meets all of some conditions on a part of requests, and
// none of others. What was found is remembered: each reading asks for the same texts.
func (m *routerMemo) commonText(met, unmet []condition, part string) (text string, e existence) {
	if m.texts.found == nil {
		m.texts.programs, m.texts.found = make(map[string]*program), make(map[string]foundText)
	}
	var key strings.Builder
	for i, c := range slices.Concat(met, unmet) {
		fmt.Fprintf(&key, "%t%q", i < len(met), c.asExpression())
	}
	key.WriteString(part)
	known, ok := m.texts.found[key.String()]
	m.work++
	if !ok {
		if len(m.texts.found) >= maxMemo {
			clear(m.texts.found)
			clear(m.texts.programs)
		}
		var steps int
		known, steps = m.texts.find(met, unmet, part)
		m.work += steps / stepsPerWork
		m.texts.found[key.String()] = known
	}
	return known.text, known.existence
}

// textMemo remembers the texts that were looked for, and programs by part and expression.
type textMemo struct {
	programs map[string]*program
	found    map[string]foundText
}

type foundText struct {
	text string
	existence
}

// find is commonText without its memo. steps is the cost of the search.
func (t *textMemo) find(met, unmet []condition, part string) (out foundText, steps int) {
	s := textSearch{most: maxTextSteps}
	if len(unmet) > 0 {
		s.most = maxUnmetSteps
	}
	anyUnread := false
	for i, c := range slices.Concat(met, unmet) {
		anyUnread = anyUnread || c.unread
		p := t.program(&c, part, &s.steps)
		switch {
		case p == nil:
			return foundText{existence: unsearched}, s.steps
		case i < len(met):
			s.met = append(s.met, p)
		default:
			s.unmet = append(s.unmet, p)
		}
	}
	s.setRunes(part)
	out.text, out.existence = s.run()
	if out.existence == missing && anyUnread {
		out.existence = unread
	}
	return out, s.steps
}

// existence is whether a request, or a value in it, exists that is looked for.
type existence uint8

const (
	missing    existence = iota // none does
	unread                      // not known: a regular expression cannot be read
	unsearched                  // not known: the search was given up
	exists                      // one was found
)

func existsIf(ok bool) existence {
	if ok {
		return exists
	}
	return missing
}

// maxTextSteps is how many steps a search for a text takes, enough for a path and each
// expression that is read; maxUnmetSteps is that of one for a text that others do not take,
// of which expressions can be made to need very many. stepsPerWork is how many of them
// cost as much as a condition.
const (
	maxTextSteps  = 1 << 18
	maxUnmetSteps = 1 << 15
	stepsPerWork  = 8
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

// program is a compiled regular expression for a part of requests.
type program struct {
	*syntax.Prog

	contexts syntax.EmptyOp // that it asks for
	live     []bool         // the instructions from which a text in the part may match
	closures map[closureAt]closure
}

// closureAt is an instruction, in a context between two runes.
type closureAt struct {
	pc      uint32
	context syntax.EmptyOp
}

// closure is what can follow an instruction: instructions that take a rune, or the end.
type closure struct {
	takes []uint32
	match bool
}

// program returns the program of a condition, nil if there is none.
func (t *textMemo) program(c *condition, part string, steps *int) *program {
	expression := c.asExpression()
	key := part + expression
	if p, ok := t.programs[key]; ok {
		return p
	}
	var out *program
	if parsed, err := syntax.Parse(expression, syntax.Perl); err == nil {
		if prog, err := syntax.Compile(parsed.Simplify()); err == nil {
			out = newProgram(prog, part)
			*steps += len(prog.Inst)
		}
	}
	t.programs[key] = out
	return out
}

func newProgram(prog *syntax.Prog, part string) *program {
	p := &program{Prog: prog, live: make([]bool, len(prog.Inst)), closures: make(map[closureAt]closure)}
	into := make([][]uint32, len(prog.Inst)) // the instructions before each one
	var todo []uint32
	for i := range prog.Inst {
		in, pc := &prog.Inst[i], uint32(i)
		switch {
		case in.Op == syntax.InstMatch:
			todo = append(todo, pc)
		case in.Op == syntax.InstEmptyWidth:
			p.contexts |= syntax.EmptyOp(in.Arg) //nolint:gosec // G115: it has six bits
		case takesRunes(in) && !takesRuneIn(in, part):
			continue
		}
		for _, next := range following(in) {
			into[next] = append(into[next], pc)
		}
	}
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !p.live[pc] {
			p.live[pc] = true
			todo = append(todo, into[pc]...)
		}
	}
	return p
}

// following returns the instructions after one.
func following(in *syntax.Inst) []uint32 {
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return []uint32{in.Out, in.Arg}
	case syntax.InstMatch, syntax.InstFail:
		return nil
	default:
		return []uint32{in.Out}
	}
}

// takesRunes reports whether an instruction takes a rune, and does not only lead to others.
func takesRunes(in *syntax.Inst) bool { return in.Op >= syntax.InstRune }

// takesRuneIn reports whether an instruction takes a rune that a part of requests may have.
func takesRuneIn(in *syntax.Inst, part string) bool {
	for lo, hi := range rangesOf(in) {
		for r := lo; r <= hi; r++ {
			if mayHave(part, r) {
				return true
			}
		}
	}
	return false
}

// rangesOf yields the ranges of runes that an instruction takes.
func rangesOf(in *syntax.Inst) iter.Seq2[rune, rune] {
	return func(yield func(lo, hi rune) bool) {
		if len(in.Rune) == 1 { // and those that differ only in case
			more := yield(in.Rune[0], in.Rune[0])
			for r := unicode.SimpleFold(in.Rune[0]); more && syntax.Flags(in.Arg)&syntax.FoldCase != 0 && r != in.Rune[0]; r = unicode.SimpleFold(r) { //nolint:gosec // G115: flags
				more = yield(r, r)
			}
			return
		}
		for i := 0; i+1 < len(in.Rune); i += 2 {
			if !yield(in.Rune[i], in.Rune[i+1]) {
				return
			}
		}
	}
}

// closureOf returns what can follow an instruction between two runes, -1 for an end of the
// text.
func (p *program) closureOf(pc uint32, last, r rune) closure {
	at := closureAt{pc, syntax.EmptyOpContext(last, r) & p.contexts}
	if known, ok := p.closures[at]; ok {
		return known
	}
	var out closure
	seen := make(map[uint32]bool)
	for todo := []uint32{pc}; len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] || !p.live[pc] {
			continue
		}
		seen[pc] = true
		switch in := &p.Inst[pc]; {
		case in.Op == syntax.InstMatch:
			out.match = true
		case takesRunes(in):
			out.takes = append(out.takes, pc)
		case in.Op != syntax.InstEmptyWidth || syntax.EmptyOp(in.Arg)&^at.context == 0: //nolint:gosec // G115: it has six bits
			todo = append(todo, following(in)...)
		}
	}
	p.closures[at] = out
	return out
}

// textSearch looks for a text, the shortest first. Of the expressions that it has to match, a
// state follows one way each: their number does not multiply. Of those that it must not
// match, it has all instructions that may come next.
type textSearch struct {
	met, unmet  []*program
	runes       []rune // one of each class, those that are easier to read first
	sets        map[*syntax.Inst]runeSet
	contexts    syntax.EmptyOp
	states      []textState
	known       map[string][]int // states by what they have of met
	steps, most int
}

// textState is a beginning of a text.
type textState struct {
	met    []uint32   // the next instruction of each program
	unmet  [][]uint32 // all that may come next
	last   rune       // -1 at first
	before int        // the state without the last rune
}

// runeSet has a bit for each of the runes of a search.
type runeSet []uint64

func (s *textSearch) run() (text string, e existence) {
	s.known, s.sets = make(map[string][]int), make(map[*syntax.Inst]runeSet)
	first := textState{last: -1, before: -1}
	for _, p := range s.met {
		if !p.live[p.Start] {
			return "", missing
		}
		first.met = append(first.met, uint32(p.Start)) //nolint:gosec // G115: an index
		s.contexts |= p.contexts
	}
	for _, p := range s.unmet {
		first.unmet = append(first.unmet, []uint32{uint32(p.Start)}) //nolint:gosec // G115: an index
		s.contexts |= p.contexts
	}
	s.contexts &^= syntax.EmptyBeginText | syntax.EmptyEndText // which tell nothing after the first rune
	s.add(first)
	for i := 0; i < len(s.states); i++ {
		if s.matches(&s.states[i]) {
			return s.textOf(i), exists
		}
		s.advance(i)
		if s.steps > s.most {
			return "", unsearched
		}
	}
	return "", missing
}

// add adds a state, unless one is known after which each text is found that is found after it.
func (s *textSearch) add(t textState) {
	s.steps++
	var b []byte
	for _, pc := range t.met {
		b = strconv.AppendUint(append(b, ' '), uint64(pc), 36)
	}
	if t.last < 0 {
		b = append(b, '^')
	}
	key := string(append(b, byte(syntax.EmptyOpContext(t.last, -1)&s.contexts)))
	for _, i := range s.known[key] {
		s.steps += len(s.unmet)
		if allWithin(s.states[i].unmet, t.unmet) {
			return
		}
	}
	s.steps += stepsPerWork
	s.known[key] = append(s.known[key], len(s.states))
	s.states = append(s.states, t)
}

// allWithin reports whether sorted lists are each within another one.
func allWithin(some, of [][]uint32) bool {
	for k := range some {
		for _, pc := range some[k] {
			if _, found := slices.BinarySearch(of[k], pc); !found {
				return false
			}
		}
	}
	return true
}

func (s *textSearch) textOf(i int) string {
	var out []rune
	for ; s.states[i].before >= 0; i = s.states[i].before {
		out = append(out, s.states[i].last)
	}
	slices.Reverse(out)
	return string(out)
}

// matches reports whether a text is one that is looked for.
func (s *textSearch) matches(t *textState) bool {
	for k, p := range s.met {
		if !p.closureOf(t.met[k], t.last, -1).match {
			return false
		}
	}
	for k, p := range s.unmet {
		if slices.ContainsFunc(t.unmet[k], func(pc uint32) bool { return p.closureOf(pc, t.last, -1).match }) {
			return false
		}
	}
	return true
}

// advance adds the states after one more rune: one for each rune, or for the first one that
// the same instructions take where nothing else depends on it.
func (s *textSearch) advance(i int) {
	t := s.states[i]
	if s.contexts != 0 || len(s.unmet) > 0 {
		for k, r := range s.runes {
			s.advanceBy(i, k, r)
			if s.steps > s.most {
				return
			}
		}
		return
	}
	ways := make([][]uint32, len(s.met))
	for k, p := range s.met {
		ways[k] = p.closureOf(t.met[k], t.last, 'x').takes
	}
	s.eachWay(ways, func(takes []uint32) {
		if r, ok := s.commonRune(takes); ok {
			next := make([]uint32, len(takes))
			for k, pc := range takes {
				next[k] = s.met[k].Inst[pc].Out
			}
			s.add(textState{met: next, last: r, before: i})
		}
	})
}

// advanceBy adds the states after one rune, the k-th.
func (s *textSearch) advanceBy(i, k int, r rune) {
	t := s.states[i]
	next := func(p *program, at []uint32) []uint32 {
		var out []uint32
		for _, pc := range at {
			takes := p.closureOf(pc, t.last, r).takes
			s.steps += 1 + len(takes)
			for _, pc := range takes {
				if in := &p.Inst[pc]; s.setOf(in)[k/64]&(1<<(k%64)) != 0 && !slices.Contains(out, in.Out) {
					out = append(out, in.Out)
				}
			}
		}
		return out
	}
	ways := make([][]uint32, len(s.met))
	for k, p := range s.met {
		if ways[k] = next(p, t.met[k:k+1]); len(ways[k]) == 0 {
			return
		}
	}
	unmet := make([][]uint32, len(s.unmet))
	for k, p := range s.unmet {
		unmet[k] = next(p, t.unmet[k])
		slices.Sort(unmet[k])
	}
	s.eachWay(ways, func(chosen []uint32) {
		s.add(textState{met: slices.Clone(chosen), unmet: unmet, last: r, before: i})
	})
}

// eachWay calls visit for each choice of one instruction of each program. It stops when the
// search has taken its steps.
func (s *textSearch) eachWay(ways [][]uint32, visit func(chosen []uint32)) {
	chosen := make([]uint32, len(ways))
	var choose func(k int)
	choose = func(k int) {
		if k == len(ways) {
			visit(chosen)
			return
		}
		for _, pc := range ways[k] {
			if s.steps++; s.steps > s.most {
				return
			}
			chosen[k] = pc
			choose(k + 1)
		}
	}
	choose(0)
}

// commonRune returns the first rune that an instruction of each program takes.
func (s *textSearch) commonRune(takes []uint32) (rune, bool) {
	for word := range (len(s.runes) + 63) / 64 {
		common := ^uint64(0)
		for k, pc := range takes {
			common &= s.setOf(&s.met[k].Inst[pc])[word]
		}
		if common != 0 {
			return s.runes[word*64+bits.TrailingZeros64(common)], true
		}
	}
	return 0, false
}

// setOf returns the runes that an instruction takes.
func (s *textSearch) setOf(in *syntax.Inst) runeSet {
	if known, ok := s.sets[in]; ok {
		return known
	}
	out := make(runeSet, (len(s.runes)+63)/64)
	for k, r := range s.runes {
		if in.MatchRune(r) {
			out[k/64] |= 1 << (k % 64)
		}
	}
	s.steps += 1 + len(s.runes)/stepsPerWork
	s.sets[in] = out
	return out
}

// shownRunes are the runes that texts are made of where others mean the same.
const shownRunes = "xa0A1b2c3-_./"

// setRunes sets one of each of the runes that no program distinguishes, those that are
// easier to read first.
func (s *textSearch) setRunes(part string) {
	cuts := []rune{0, '\t', '\t' + 1, ' ', '#', '#' + 1, '0', '9' + 1, '?', '?' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, unicode.MaxASCII, unicode.MaxASCII + 1, 0xd800, 0xe000}
	for _, p := range slices.Concat(s.met, s.unmet) {
		for i := range p.Inst {
			for lo, hi := range rangesOf(&p.Inst[i]) {
				cuts = append(cuts, lo, hi+1)
			}
		}
	}
	cuts = slices.DeleteFunc(cuts, func(r rune) bool { return r > unicode.MaxRune })
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var shown, rest []rune
	for i, from := range cuts {
		to := rune(unicode.MaxRune)
		if i+1 < len(cuts) {
			to = cuts[i+1] - 1
		}
		if !mayHave(part, from) {
			continue
		}
		if k := strings.IndexFunc(shownRunes, func(r rune) bool { return from <= r && r <= to }); k >= 0 {
			shown = append(shown, rune(shownRunes[k]))
			continue
		}
		rest = append(rest, from)
	}
	slices.SortFunc(shown, func(a, b rune) int { return strings.IndexRune(shownRunes, a) - strings.IndexRune(shownRunes, b) })
	s.runes = append(shown, rest...)
	s.steps += len(cuts)
}

// mayHave reports whether a part of requests may have a rune. Paths have no query and no
// fragment. Of control characters, headers have tabs, and only parameters, which are
// decoded, have others.
func mayHave(part string, r rune) bool {
	switch {
	case r >= 0xd800 && r < 0xe000:
		return false
	case r < ' ' || r == unicode.MaxASCII:
		return part == partParam || part == partHeader && r == '\t'
	default:
		return part == partHeader || part == partParam || r != '#' && r != '?'
	}
}
