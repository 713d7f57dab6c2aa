package ratelimit

import (
	"errors"
	"regexp/syntax"
)

const mostSteps = 400_000

func checkRegexp(pattern string, steps *int) error {
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil {
		return errors.New("does not compile: " + err.Error())
	}
	return nil
}
