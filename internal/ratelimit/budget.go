package ratelimit

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/pattern"
)

// mostExpressions is how long all expressions of a policy are, in bytes: 64 of the
// longest. One that takes longer to compile than its length says counts for more.
const maxExpressionBytes = 64 * maxPatternLength

// Budget is how many bytes the regular expressions of one policy may have, all of its
// limits together: a policy may have thousands. A limit that is read from a part of
// it is read from a whole one, too. It is not safe for concurrent use.
type Budget struct{ bytes int }

// NewBudget returns that of a policy.
func NewBudget() *Budget { return &Budget{bytes: maxExpressionBytes} }

// Read reads a limit as the function Read does, and takes from the budget.
func (b *Budget) Read(at *field.Path, name string, value any) (*Limit, field.ErrorList) {
	r := &reader{budget: b}
	limit := r.limit(at, name, value)
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return limit, nil
}

// take takes an expression from the budget, and reports whether it is within.
func (b *Budget) take(text string) bool {
	b.bytes -= pattern.Cost(text)
	return b.bytes >= 0
}
