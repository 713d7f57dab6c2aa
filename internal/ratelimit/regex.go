package ratelimit

import (
	"fmt"
	"regexp/syntax"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/pattern"
)

const (
	// maxPatternLength is in bytes. It is that of a path of Gateway API.
	maxPatternLength = 1024
	// maxPatternSize is in instructions, which the gateway compiles and runs. The
	// length does not bound them: a{1000} has a thousand.
	maxPatternSize = 2000
	// maxExpressionBytes is the maximum length of all regular expressions of a policy, in
	// bytes. An expression that is slow to compile counts for more than its length.
	maxExpressionBytes = 64 * maxPatternLength
)

// Budget limits the total length of the regular expressions of all limits of a policy,
// in bytes: a policy may have thousands of limits. The zero Budget is a whole one. It is not
// safe for concurrent use.
type Budget struct{ used int }

// pattern validates a regular expression and charges it to the budget. Those that exceed it are
// reported once.
func (v *validator) pattern(at *field.Path, text string) {
	used := v.budget.used
	v.budget.used += pattern.Cost(text)
	switch {
	case used > maxExpressionBytes:
	case v.budget.used > maxExpressionBytes:
		v.invalid(at, text, "all regular expressions of a policy must have at most %d bytes together; move limits to another policy", maxExpressionBytes)
	default:
		if err := checkRegexp(at, text); err != nil {
			v.add(err)
		}
	}
}

// checkRegexp returns an error if an expression does not compile or is too large. No
// form of it is slow to match: the engines of Envoy (RE2) and Limitador (the Rust crate
// regex) take time linear in the input.
func checkRegexp(at *field.Path, text string) *field.Error {
	if len(text) > maxPatternLength {
		return field.TooLong(at, "", maxPatternLength)
	}
	if pattern.Cost(text) > pattern.MaxCost {
		return field.Invalid(at, text, "takes too long to compile; "+pattern.Advice)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return field.Invalid(at, text, fmt.Sprintf("does not compile: %v; use RE2 syntax", err))
	}
	if n := size(parsed); n > maxPatternSize {
		return field.Invalid(at, text, fmt.Sprintf(
			"must compile to at most %d instructions, not %d; lower its repetition counts", maxPatternSize, n))
	}
	return nil
}

// size estimates the number of instructions of an expression: the compiled program has
// at most 2*size+1. To compile it in order to count them would take up to 40 MB, since
// Parse allows a kilobyte to be repeated a thousand times, nested repetitions included.
func size(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += size(sub)
	}
	switch {
	case re.Op == syntax.OpLiteral:
		return len(re.Rune)
	case re.Op == syntax.OpRepeat && re.Min == re.Max:
		return max(1, n*re.Max) // x{0} is one instruction that matches nothing
	case re.Op == syntax.OpRepeat:
		return (n + 1) * max(re.Min+1, re.Max)
	default:
		return n + 1
	}
}
