package ratelimit

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// mostExpressions is how long all expressions of a policy are, in bytes: 64 of the longest.
	mostExpressions = 64 * longestPattern
	// mostStepsOfAll limits of a policy together: some ten milliseconds.
	mostStepsOfAll = 10 * mostSteps
)

var errExpressions = errors.New("is one too many: the expressions of a policy have at most 65536 bytes together; put limits into another policy")

// Budget is what looking into the expressions of one policy may take, all of its
// limits together: a policy may have thousands. A limit that is read from a part of
// it is read from a whole one, too. It is not safe for concurrent use.
type Budget struct{ bytes, steps int }

// NewBudget returns that of a policy.
func NewBudget() *Budget { return &Budget{bytes: mostExpressions, steps: mostStepsOfAll} }

// Read reads a limit as the function Read does, and takes from the budget.
func (b *Budget) Read(at *field.Path, name string, value any) (*Limit, field.ErrorList) {
	steps := min(mostSteps, b.steps)
	r := &reader{steps: steps, budget: b}
	limit := r.limit(at, name, value)
	b.steps -= steps - r.steps
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return limit, nil
}

// take takes an expression from the budget, and tells whether it is within.
func (b *Budget) take(pattern string) bool {
	b.bytes -= len(pattern)
	return b.bytes >= 0
}
