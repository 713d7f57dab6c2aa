// Package pattern estimates the cost of compiling a regular expression before it is
// parsed: some expressions of a kilobyte take a fifth of a second.
package pattern

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxCost is the maximum cost of an expression.
const MaxCost = 9 * 1024

// Advice is what to do about an expression that exceeds MaxCost.
const Advice = `use fewer Unicode classes (\p) and fewer case-insensitive ((?i)) ranges beyond ASCII`

const (
	// maxFold is the last rune with another case. Ranges are folded rune by rune up to
	// it.
	maxFold = 0x1e943
	// runesPerByte is the number of runes that are folded in the time of a byte of a plain
	// expression.
	runesPerByte = 32
	// classCost is the cost of a Unicode class such as \pL, which has up to 1,300 ranges.
	classCost = 256
)

// Cost estimates the cost of parsing and compiling an expression, in bytes of a plain
// one. It assumes the worst case: flags apply to the whole expression, and a range starts
// at the first rune.
func Cost(expression string) int {
	cost, folds := len(expression), ignoresCase(expression)
	for i := 0; i < len(expression)-1; i++ {
		switch next := expression[i+1]; expression[i] {
		case '\\':
			if next == 'p' || next == 'P' {
				cost += classCost
			}
			i++ // skip the escaped character
		case '-':
			if folds {
				cost += min(rangeEnd(expression[i+1:]), maxFold) / runesPerByte
			}
		}
	}
	return cost
}

// ignoresCase reports whether a group of the expression is case-insensitive.
func ignoresCase(expression string) bool {
	for _, group := range strings.Split(expression, "(?")[1:] {
		if flags := group[:len(group)-len(strings.TrimLeft(group, "imsU-"))]; strings.Contains(flags, "i") {
			return true
		}
	}
	return false
}

// rangeEnd returns the rune at the start of a text, as the end of a range.
func rangeEnd(text string) int {
	hex, isHex := strings.CutPrefix(text, `\x`)
	switch braced, isBraced := strings.CutPrefix(hex, "{"); {
	case isHex && isBraced:
		digits, _, _ := strings.Cut(braced, "}")
		n, err := strconv.ParseUint(digits, 16, 31)
		if err != nil {
			return utf8.MaxRune // an invalid expression
		}
		return int(n)
	case isHex:
		return 0xff
	}
	r, _ := utf8.DecodeRuneInString(text)
	return int(r)
}
