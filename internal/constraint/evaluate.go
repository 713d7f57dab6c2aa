package constraint

import (
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// Evaluate returns the demands that the variables do not meet, in the order of
// the constraint. Each evaluation is booked on the meter, whose error it
// returns.
func (c *Constraint) Evaluate(on *cel.Variables, m merge.Meter) ([]Unmet, error) {
	var out []Unmet
	for i := range c.validations {
		met, u, err := c.validations[i].evaluate(on, m)
		if err != nil {
			return nil, err
		}
		if !met {
			out = append(out, u)
		}
	}
	if len(c.rules) == 0 {
		return out, nil
	}
	spec := on.Effective()
	for i := range c.rules {
		unmet, cost := c.rules[i].evaluate(spec)
		if err := m.Spend(nil, cost); err != nil {
			return nil, err
		}
		out = append(out, unmet...)
	}
	return out, nil
}

// Reads reports whether the outcome may depend on a variable.
func (c *Constraint) Reads(variable string) bool {
	for i := range c.validations {
		v := &c.validations[i]
		if v.expression.Reads(variable) || v.says != nil && v.says.Reads(variable) {
			return true
		}
	}
	return variable == "effective" && len(c.rules) > 0
}
