package gateway

import (
	"cmp"
	"fmt"
	"iter"
	"math/big"
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
	m.work += len(met) + len(unmet)
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

// textMemo remembers the texts that were looked for, and programs by expression.
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
	var s textSearch
	anyUnread := false
	for i, c := range slices.Concat(met, unmet) {
		anyUnread = anyUnread || c.unread
		p := t.program(&c, &s.steps)
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
// expression that is read, and stepsPerWork how many of them cost as much as a condition.
const (
	maxTextSteps = 1 << 18
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

// program is a compiled regular expression.
type program struct {
	*syntax.Prog

	contexts syntax.EmptyOp // that it asks for
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
func (t *textMemo) program(c *condition, steps *int) *program {
	expression := c.asExpression()
	if p, ok := t.programs[expression]; ok {
		return p
	}
	var out *program
	if parsed, err := syntax.Parse(expression, syntax.Perl); err == nil {
		if prog, err := syntax.Compile(parsed.Simplify()); err == nil {
			out = &program{Prog: prog, closures: make(map[closureAt]closure)}
			for i := range prog.Inst {
				if in := &prog.Inst[i]; in.Op == syntax.InstEmptyWidth {
					out.contexts |= syntax.EmptyOp(in.Arg) //nolint:gosec // G115: it has six bits
				}
			}
			*steps += len(prog.Inst)
		}
	}
	t.programs[expression] = out
	return out
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
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &p.Inst[pc]; in.Op {
		case syntax.InstMatch:
			out.match = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			out.takes = append(out.takes, pc)
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^at.context == 0 { //nolint:gosec // G115: it has six bits
				todo = append(todo, in.Out)
			}
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstFail:
		}
	}
	p.closures[at] = out
	return out
}

// textSearch looks for a text, the shortest first. Of the expressions that it has to match, a
// state follows one way each: their number does not multiply. Of those that it must not
// match, it has all instructions that may come next.
type textSearch struct {
	met, unmet []*program
	runes      []rune                    // one of each class, those that are easier to read first
	classes    []runeClass               // of these
	sets       map[*syntax.Inst]*big.Int // bits of runes, by instructions that take them
	common     big.Int                   // buffer
	contexts   syntax.EmptyOp
	states     []textState
	known      map[string][]int // states by what they have of met
	steps      int
}

// textState is a beginning of a text.
type textState struct {
	met    []uint32  // the next instruction of each program
	unmet  []unmetAt // all that may come next, sorted
	last   rune      // -1 at first
	before int       // the state without the last rune
}

// unmetAt is an instruction of one of the programs that must not match.
type unmetAt struct {
	program int
	pc      uint32
}

func (a unmetAt) compare(b unmetAt) int {
	return cmp.Or(cmp.Compare(a.program, b.program), cmp.Compare(a.pc, b.pc))
}

// runeClass is the runes that have the same context after each other one.
type runeClass struct {
	first rune
	set   big.Int // bits
}

func (s *textSearch) run() (text string, e existence) {
	s.known, s.sets = make(map[string][]int), make(map[*syntax.Inst]*big.Int)
	first := textState{last: -1, before: -1}
	for _, p := range s.met {
		first.met = append(first.met, uint32(p.Start)) //nolint:gosec // G115: an index
		s.contexts |= p.contexts
	}
	for n, p := range s.unmet {
		first.unmet = append(first.unmet, unmetAt{n, uint32(p.Start)}) //nolint:gosec // G115: an index
		s.contexts |= p.contexts
	}
	s.contexts &^= syntax.EmptyBeginText | syntax.EmptyEndText // which tell nothing after the first rune
	s.setClasses()
	s.add(first)
	for i := 0; i < len(s.states); i++ {
		if s.matches(&s.states[i]) {
			return s.textOf(i), exists
		}
		s.advance(i)
		if s.steps > maxTextSteps {
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
		known := s.states[i].unmet
		if s.steps++; len(known) > len(t.unmet) {
			continue
		}
		if s.steps += len(known); allWithin(known, t.unmet) {
			return
		}
	}
	s.steps += stepsPerWork
	s.known[key] = append(s.known[key], len(s.states))
	s.states = append(s.states, t)
}

// allWithin reports whether a sorted list is within another one.
func allWithin(some, of []unmetAt) bool {
	for _, at := range some {
		i, found := slices.BinarySearchFunc(of, at, unmetAt.compare)
		if !found {
			return false
		}
		of = of[i+1:]
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
	return !slices.ContainsFunc(t.unmet, func(at unmetAt) bool { return s.unmet[at.program].closureOf(at.pc, t.last, -1).match })
}

// advance adds the states after one more rune: after the first one that the same instructions
// take where nothing else depends on it, else after each.
func (s *textSearch) advance(i int) {
	t := s.states[i]
	ways := make([][]uint32, len(s.met))
	for c := range s.classes {
		class := &s.classes[c]
		for k, p := range s.met {
			ways[k] = p.closureOf(t.met[k], t.last, class.first).takes
		}
		s.eachWay(ways, nil, func(takes []uint32) {
			s.common.Set(&class.set)
			for k, pc := range takes {
				s.common.And(&s.common, s.setOf(&s.met[k].Inst[pc]))
			}
			for ; s.common.Sign() != 0 && s.steps <= maxTextSteps; s.common.SetBit(&s.common, int(s.common.TrailingZeroBits()), 0) {
				s.add(s.after(i, takes, int(s.common.TrailingZeroBits())))
				if len(s.unmet) == 0 {
					return
				}
			}
		})
	}
}

// eachWay calls visit for each choice of one instruction of each program. It stops when the
// search has taken its steps.
func (s *textSearch) eachWay(ways [][]uint32, chosen []uint32, visit func(chosen []uint32)) {
	if len(ways) == 0 {
		visit(chosen)
		return
	}
	for _, pc := range ways[0] {
		if s.steps++; s.steps > maxTextSteps {
			return
		}
		s.eachWay(ways[1:], append(chosen, pc), visit)
	}
}

// after returns the state after the k-th rune, which some instructions take.
func (s *textSearch) after(i int, takes []uint32, k int) textState {
	t := &s.states[i]
	out := textState{met: make([]uint32, len(takes)), last: s.runes[k], before: i}
	for n, pc := range takes {
		out.met[n] = s.met[n].Inst[pc].Out
	}
	for _, at := range t.unmet {
		p := s.unmet[at.program]
		takes := p.closureOf(at.pc, t.last, out.last).takes
		s.steps += 1 + len(takes)
		for _, pc := range takes {
			if in := &p.Inst[pc]; s.setOf(in).Bit(k) == 1 {
				out.unmet = append(out.unmet, unmetAt{at.program, in.Out})
			}
		}
	}
	slices.SortFunc(out.unmet, unmetAt.compare)
	out.unmet = slices.Compact(out.unmet)
	return out
}

// setOf returns the runes that an instruction takes.
func (s *textSearch) setOf(in *syntax.Inst) *big.Int {
	if known, ok := s.sets[in]; ok {
		return known
	}
	out := new(big.Int)
	for k, r := range s.runes {
		if in.MatchRune(r) {
			out.SetBit(out, k, 1)
		}
	}
	s.steps += 1 + len(s.runes)/stepsPerWork
	s.sets[in] = out
	return out
}

// setClasses sets the classes of the runes: one if no program asks for a context.
func (s *textSearch) setClasses() {
	context := func(r rune) syntax.EmptyOp { return syntax.EmptyOpContext(-1, r) & s.contexts }
	for k, r := range s.runes {
		c := slices.IndexFunc(s.classes, func(c runeClass) bool { return context(c.first) == context(r) })
		if c < 0 {
			c, s.classes = len(s.classes), append(s.classes, runeClass{first: r})
		}
		s.classes[c].set.SetBit(&s.classes[c].set, k, 1)
	}
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
	if len(s.unmet) == 0 {
		return // one that is taken is enough
	}
	seen := make(map[string]bool)
	s.runes = slices.DeleteFunc(s.runes, func(r rune) bool {
		kind := s.kindOf(r)
		known := seen[kind]
		seen[kind] = true
		return known
	})
}

// kindOf returns what the programs distinguish a rune by.
func (s *textSearch) kindOf(r rune) string {
	kind := []byte{byte(syntax.EmptyOpContext(-1, r))}
	for _, p := range slices.Concat(s.met, s.unmet) {
		for i := range p.Inst {
			if in := &p.Inst[i]; len(in.Rune) > 0 {
				kind = strconv.AppendBool(kind, in.MatchRune(r))
			}
		}
		s.steps += len(p.Inst) / stepsPerWork
	}
	return string(kind)
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
