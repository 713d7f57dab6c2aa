package ratelimit

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/pattern"
)

// maxExpressionBytes is the maximum length of all regular expressions of a policy, in
// bytes. An expression that is slow to compile counts for more than its length.
const maxExpressionBytes = 64 * maxPatternLength

// Budget limits the total length of the regular expressions of all limits of a policy,
// in bytes: a policy may have thousands of limits. A limit that is valid with a part
// of the budget is valid with a whole one. It is not safe for concurrent use.
type Budget struct{ bytes int }

// NewBudget returns the budget of a policy.
func NewBudget() *Budget { return &Budget{bytes: maxExpressionBytes} }

// Read reads a limit as the function Read does, and charges it to the budget.
func (b *Budget) Read(at *field.Path, name string, value any) (*Limit, field.ErrorList) {
	r := &reader{budget: b}
	limit := r.limit(at, name, value)
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return limit, nil
}

// take charges an expression to the budget, and reports whether the budget suffices.
func (b *Budget) take(text string) bool {
	b.bytes -= pattern.Cost(text)
	return b.bytes >= 0
}
