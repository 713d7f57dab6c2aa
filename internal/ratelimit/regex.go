package ratelimit

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
)

const (
	// longestPattern in bytes, as of a path of Gateway API.
	longestPattern = 1024
	// largestPattern in instructions: RE2 itself is sparing with those.
	largestPattern = 2000
	// mostSteps of one limit: some milliseconds, whatever its expressions are.
	mostSteps = 400_000
	// manyTimes: what is repeated as often as this has a thousand ways where
	// each time has two, which is as bad as exponential.
	manyTimes = 10
)

var errSteps = errors.New("is too large to be looked into: write it with fewer alternatives and repetitions, or as several conditions")

// checkRegexp checks that an expression compiles, is of a bearable size, and that
// no text matches it in exponentially many ways: the gateway and the service that
// counts may have an engine that tries them all. It takes from the steps.
func checkRegexp(pattern string, steps *int) error {
	if len(pattern) > longestPattern {
		return fmt.Errorf("is an expression of %d bytes: at most %d, write a shorter one", len(pattern), longestPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("does not compile: %w; write an expression of RE2", err)
	}
	if n := size(parsed); n > largestPattern {
		return fmt.Errorf("is an expression of %d instructions: at most %d, repeat less often", n, largestPattern)
	}
	if !repeats(parsed) {
		return nil
	}
	exponential, err := exponentialIn(pattern, steps)
	if err != nil {
		return err
	}
	if exponential {
		return errors.New("can match one text in exponentially many ways, as (a+)+ and (a|a)* can: " +
			"a repetition holds another one, or alternatives that match the same; " +
			"write it so that there is one way, as a+ and a* are")
	}
	return nil
}

func exponentialIn(pattern string, steps *int) (bool, error) {
	if *steps < 0 {
		return false, errSteps
	}
	parsed, err := syntax.Parse(spellOut(pattern), syntax.Perl)
	if err != nil {
		return false, errSteps // it is nested so deep that it cannot be nested twice
	}
	if loosen(parsed) {
		return true, nil
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return false, fmt.Errorf("does not compile: %w", err)
	}
	return newAmbiguity(prog, steps).exponential()
}

// size is about how many instructions the expression has. Parse holds what is
// repeated in repetitions to a thousand times, so it does not overflow.
func size(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += size(sub)
	}
	switch {
	case re.Op == syntax.OpLiteral:
		return len(re.Rune)
	case re.Op == syntax.OpRepeat && re.Min == re.Max:
		return n * re.Max
	case re.Op == syntax.OpRepeat:
		return (n + 1) * max(re.Min+1, re.Max)
	default:
		return n + 1
	}
}

func repeats(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		return true
	default:
		return slices.ContainsFunc(re.Sub, repeats)
	}
}

// loosen makes a repetition without end of what is repeated many times, where it
// stands in no other repetition: it would be one more loop within that one, and
// the expression look worse than it is. It tells of one whose times may each take
// nothing: which of them do is free, and that no loop shows.
func loosen(re *syntax.Regexp) (free bool) {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus:
		return false
	case syntax.OpRepeat:
		if max(re.Min, re.Max) < manyTimes {
			return false
		}
		re.Op = syntax.OpPlus
		return nullable(re.Sub[0])
	default:
		for _, sub := range re.Sub {
			free = loosen(sub) || free
		}
		return free
	}
}

// nullable tells whether an expression may take no letter.
func nullable(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpQuest, syntax.OpEmptyMatch,
		syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	case syntax.OpPlus, syntax.OpCapture:
		return nullable(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || nullable(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, taking)
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, nullable)
	default:
		return false
	}
}

func taking(re *syntax.Regexp) bool { return !nullable(re) }
