package ratelimit

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
)

// letters are the sets of letters that the states in loops of a program take: ranges, in
// order. Equal ones have one number, and of two it is worked out once whether they
// overlap: the classes of Unicode have hundreds of ranges.
type letters struct {
	of       []int
	ranges   [][]rune
	sides    []sides
	overlaps map[[2]int]bool
	steps    *int
}

func newLetters(prog *syntax.Prog, loop []int, steps *int) letters {
	l := letters{of: make([]int, len(prog.Inst)), overlaps: map[[2]int]bool{}, steps: steps}
	// what was repeated so often has one list of ranges, often a long one
	lists, numbers := map[*rune]int{}, map[string]int{}
	for pc := range prog.Inst {
		inst := &prog.Inst[pc]
		if !takes(inst) || loop[pc] == 0 {
			continue
		}
		ranges := rangesOf(inst)
		if len(ranges) == 0 {
			l.of[pc] = l.number(ranges, numbers)
			continue
		}
		n, ok := lists[&ranges[0]]
		if !ok {
			n = l.number(ranges, numbers)
			lists[&ranges[0]] = n
		}
		l.of[pc] = n
	}
	return l
}

func (l *letters) number(ranges []rune, numbers map[string]int) int {
	*l.steps -= len(ranges)
	var key []byte
	for _, r := range ranges {
		key = binary.BigEndian.AppendUint32(key, uint32(r)) //nolint:gosec // a rune of a range is not negative
	}
	n, ok := numbers[string(key)]
	if !ok {
		n = len(l.ranges)
		l.ranges = append(l.ranges, ranges)
		l.sides = append(l.sides, sidesOf(ranges))
		numbers[string(key)] = n
	}
	return n
}

// rangesOf returns the letters that an instruction takes: pairs of first and last.
func rangesOf(inst *syntax.Inst) []rune {
	switch {
	case inst.Op == syntax.InstRuneAny:
		return []rune{0, unicode.MaxRune}
	case inst.Op == syntax.InstRuneAnyNotNL:
		return []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
	case len(inst.Rune) != 1:
		return inst.Rune
	}
	one := inst.Rune[0]
	cases := []rune{one}
	if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 { //nolint:gosec // that is what the argument is
		for r := unicode.SimpleFold(one); r != one; r = unicode.SimpleFold(r) {
			cases = append(cases, r)
		}
	}
	slices.Sort(cases)
	var ranges []rune
	for _, r := range cases {
		ranges = append(ranges, r, r)
	}
	return ranges
}

// overlap tells whether there is a letter that both states take.
func (l letters) overlap(p, q uint32) bool {
	a, b := l.of[p], l.of[q]
	if a == b {
		return len(l.ranges[a]) > 0
	}
	if few := 8; len(l.ranges[a])+len(l.ranges[b]) <= few {
		return intersect(l.ranges[a], l.ranges[b])
	}
	pair := [2]int{min(a, b), max(a, b)}
	both, ok := l.overlaps[pair]
	if !ok {
		*l.steps -= len(l.ranges[a]) + len(l.ranges[b])
		both = intersect(l.ranges[a], l.ranges[b])
		l.overlaps[pair] = both
	}
	return both
}

func intersect(a, b []rune) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[1] < b[0]:
			a = a[2:]
		case b[1] < a[0]:
			b = b[2:]
		default:
			return true
		}
	}
	return false
}

var (
	newline = []rune{'\n', '\n'}
	inWords = []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	outside = []rune{0, '0' - 1, '9' + 1, 'A' - 1, 'Z' + 1, '_' - 1, '_' + 1, 'a' - 1, 'z' + 1, unicode.MaxRune}
)

// sides are what assertions ask of the letters beside them: whether one may be a
// line feed, a letter of a word, a letter of none.
type sides struct{ newline, word, other bool }

func sidesOf(ranges []rune) sides {
	return sides{intersect(ranges, newline), intersect(ranges, inWords), intersect(ranges, outside)}
}

// hold tells whether what is asserted may hold between a letter of the one state
// and one of the other: there the text neither begins nor ends, for one.
func (l letters) hold(asserted syntax.EmptyOp, before, behind uint32) bool {
	from, to := l.sides[l.of[before]], l.sides[l.of[behind]]
	switch {
	case asserted&(syntax.EmptyBeginText|syntax.EmptyEndText) != 0,
		asserted&syntax.EmptyBeginLine != 0 && !from.newline,
		asserted&syntax.EmptyEndLine != 0 && !to.newline:
		return false
	case asserted&syntax.EmptyWordBoundary != 0:
		return from.word && to.other || from.other && to.word
	case asserted&syntax.EmptyNoWordBoundary != 0:
		return from.word && to.word || from.other && to.other
	default:
		return true
	}
}
