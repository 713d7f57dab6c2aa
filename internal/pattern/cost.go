// Package pattern tells what compiling a regular expression takes, before it is
// parsed: some expressions of a kilobyte take a fifth of a second.
package pattern

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxCost is what one expression may cost.
const MaxCost = 9 * 1024

// Advice is what to do about an expression that costs more.
const Advice = `use fewer classes of Unicode (\p) and fewer ranges beyond ASCII where case is ignored ((?i))`

const (
	// maxFold is the last rune that has another case: a range is folded rune by rune
	// up to it.
	maxFold = 0x1e943
	// runesPerByte is how many runes are folded in the time that a byte of a plain
	// expression takes.
	runesPerByte = 32
	// classCost is that of a class of Unicode such as \pL, which has up to 1,300
	// ranges.
	classCost = 256
)

// Cost estimates what parsing and compiling an expression takes, in bytes of a
// plain one. What it cannot know it takes for the worst: flags hold for the whole
// expression, and a range for one that starts at the first rune.
func Cost(expression string) int {
	cost, folds := len(expression), ignoresCase(expression)
	for i := 0; i < len(expression)-1; i++ {
		switch next := expression[i+1]; expression[i] {
		case '\\':
			if next == 'p' || next == 'P' {
				cost += classCost
			}
			i++ // whatever is escaped starts nothing
		case '-':
			if folds {
				cost += min(rangeEnd(expression[i+1:]), maxFold) / runesPerByte
			}
		}
	}
	return cost
}

// folding reports whether some group of the expression ignores case.
func ignoresCase(expression string) bool {
	for _, group := range strings.Split(expression, "(?")[1:] {
		if flags := group[:len(group)-len(strings.TrimLeft(group, "imsU-"))]; strings.Contains(flags, "i") {
			return true
		}
	}
	return false
}

// end returns the rune that a text starts with, as the end of a range.
func rangeEnd(text string) int {
	hex, isHex := strings.CutPrefix(text, `\x`)
	switch braced, isBraced := strings.CutPrefix(hex, "{"); {
	case isHex && isBraced:
		digits, _, _ := strings.Cut(braced, "}")
		n, err := strconv.ParseUint(digits, 16, 31)
		if err != nil {
			return utf8.MaxRune // not a rune, or not an expression
		}
		return int(n)
	case isHex:
		return 0xff
	}
	r, _ := utf8.DecodeRuneInString(text)
	return int(r)
}
