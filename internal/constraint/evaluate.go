package constraint

import (
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// PathInput is the input of a constraint on a path.
type PathInput struct {
	// Variables are the variables that are evaluated.
	Variables *cel.Variables
	// Shown returns the variables with only those values that the reader of messages
	// may know; the others are cel.Opaque. It is called if a requirement is not met.
	Shown func() *cel.Variables
}

// Result is the result of a constraint on a path.
type Result struct {
	// Unmet are the requirements that are not met, in the order of the constraint.
	Unmet []Unmet
	// Undecided is set if a requirement depends on values which are opaque to the
	// constraint: it is not evaluated, or only for the other values.
	Undecided bool
}

// Evaluate returns the requirements that the variables do not meet. Costs are charged to
// the meter, whose error it returns.
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

// Reads reports whether the result can depend on a variable.
func (c *Constraint) Reads(variable string) bool {
	for i := range c.validations {
		v := &c.validations[i]
		if v.expression.Reads(variable) || v.messageExpression != nil && v.messageExpression.Reads(variable) {
			return true
		}
	}
	return variable == "effective" && len(c.rules) > 0
}
