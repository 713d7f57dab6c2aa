package ratelimit

import "strings"

// spellOut writes an expression that compiles so that each alternative, and what
// each group holds, is a group that captures. The parser keeps those as they are
// written; without them it would take (?:a+)+ for a+, and (a|a)* for a*, which an
// engine that backtracks does not.
func spellOut(pattern string) string {
	s := &speller{rest: pattern}
	s.out.WriteString("(")
	for s.rest != "" {
		s.next()
	}
	s.out.WriteString(")")
	return s.out.String()
}

type speller struct {
	out  strings.Builder
	rest string
	// flags that are set within the group: they hold for the alternatives behind.
	flags string
	// outer has the flags of the groups around.
	outer []string
}

func (s *speller) next() {
	switch s.rest[0] {
	case '\\':
		s.escape()
	case '[':
		s.copy(classEnd(s.rest))
	case '(':
		s.open()
	case ')':
		s.copy(1)
		s.out.WriteString(")")
		s.flags, s.outer = s.outer[len(s.outer)-1], s.outer[:len(s.outer)-1]
	case '|':
		s.rest = s.rest[1:]
		s.out.WriteString(")|(" + s.flags)
	default:
		s.copy(1)
	}
}

func (s *speller) copy(n int) {
	s.out.WriteString(s.rest[:n])
	s.rest = s.rest[n:]
}

func (s *speller) escape() {
	if !strings.HasPrefix(s.rest, `\Q`) {
		s.copy(2)
		return
	}
	if end := strings.Index(s.rest, `\E`); end >= 0 {
		s.copy(end + 2)
		return
	}
	s.copy(len(s.rest))
	s.out.WriteString(`\E`) // or what is put behind would be quoted
}

// open copies the start of a group, or flags alone, which open none.
func (s *speller) open() {
	n := 1
	switch {
	case strings.HasPrefix(s.rest, "(?P<"), strings.HasPrefix(s.rest, "(?<"):
		n = strings.IndexByte(s.rest, '>') + 1
	case strings.HasPrefix(s.rest, "(?"):
		n = strings.IndexAny(s.rest, ":)") + 1
	}
	opening := s.rest[:n]
	s.copy(n)
	if strings.HasSuffix(opening, ")") {
		s.flags += opening
		return
	}
	s.outer, s.flags = append(s.outer, s.flags), ""
	s.out.WriteString("(")
}

// classEnd is behind the ] that closes the class that the text starts with.
func classEnd(text string) int {
	i := 1
	if strings.HasPrefix(text[i:], "^") {
		i++
	}
	for first := i; i == first || text[i] != ']'; {
		switch {
		case text[i] == '\\':
			i += 2
		case strings.HasPrefix(text[i:], "[:") && strings.Contains(text[i+2:], ":]"):
			i += 2 + strings.Index(text[i+2:], ":]") + 2
		default:
			i++
		}
	}
	return i + 1
}
