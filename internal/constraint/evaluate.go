package constraint

import (
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// PathInput is what a constraint reads of a path.
type PathInput struct {
	// Judged are the variables that decide.
	Variables *cel.Variables
	// Shown returns the variables as far as the reader of the messages may know
	// their values; the others are cel.Opaque. It is called where a demand is not
	// met.
	Shown func() *cel.Variables
}

// Result is what a constraint says of a path.
type Result struct {
	// Unmet are the demands that are not met, in the order of the constraint.
	Unmet []Unmet
	// Undecided are the addresses of the demands that depend on values which
	// are opaque to the constraint: they are not evaluated, or only for the
	// values that are not.
	Undecided []string
}

// Evaluate returns which demands the variables do not meet. Each evaluation is
// booked on the meter, whose error it returns.
func (c *Constraint) Evaluate(on PathInput, m merge.Meter) (Result, error) {
	var out Result
	for i := range c.validations {
		if err := c.validations[i].evaluate(on, m, &out); err != nil {
			return Result{}, err
		}
	}
	if len(c.rules) == 0 {
		return out, nil
	}
	spec := on.Variables.Effective()
	for i := range c.rules {
		if err := m.Spend(nil, c.rules[i].evaluate(spec, on.Shown, &out)); err != nil {
			return Result{}, err
		}
	}
	return out, nil
}

// Reads reports whether the outcome may depend on a variable.
func (c *Constraint) Reads(variable string) bool {
	for i := range c.validations {
		v := &c.validations[i]
		if v.expression.Reads(variable) || v.messageExpression != nil && v.messageExpression.Reads(variable) {
			return true
		}
	}
	return variable == "effective" && len(c.rules) > 0
}
