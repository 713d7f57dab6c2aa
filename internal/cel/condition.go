package cel

import (
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"overrule.dev/overrule/merge"
)

// Condition is a compiled expression. It is safe for concurrent use.
type Condition struct {
	expression string
	program    cel.Program
	loops      map[int64]bool // the nodes that stand in the body of a comprehension
}

var _ merge.Condition = (*Condition)(nil)

// String returns the expression.
func (c *Condition) String() string { return c.expression }

// Evaluate answers for a spec, which it only reads. The Err of the answer is an
// *EvalError, and wraps ErrBudget if the cost went over Limit. An element of a
// list is written [0] in the answer's Missing, as in limits.a.rates[0].limit.
func (c *Condition) Evaluate(spec map[string]any) merge.Answer {
	out, details, err := c.program.Eval(&scope{spec: object{fields: spec}})
	answer := merge.Answer{}
	if cost := details.ActualCost(); cost != nil {
		answer.Cost = *cost
	}
	if err != nil {
		c.fail(&answer, err)
		return answer
	}
	met, ok := out.(types.Bool)
	if !ok {
		answer.Err = &EvalError{Cause: &typeError{got: out.Type().TypeName()}}
		return answer
	}
	answer.Met = bool(met)
	return answer
}

// fail tells a key that is not there from every other failure.
func (c *Condition) fail(answer *merge.Answer, err error) {
	var (
		missing   *missingKeyError
		at        *types.Err
		cancelled interpreter.EvalCancelledError
	)
	switch {
	case errors.As(err, &missing) && errors.As(err, &at) && !c.loops[at.NodeID()]:
		answer.Missing = missing.address()
		answer.Neighbours = len(missing.from.fields) > 0
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		answer.Err = &EvalError{Cause: ErrBudget}
	default:
		answer.Err = &EvalError{Cause: err}
	}
}

// scope is the variables of one evaluation.
type scope struct{ spec object }

// ResolveName implements cel.Activation.
func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case "spec":
		return &s.spec, true
	case "self":
		return map[string]any{"spec": &s.spec}, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (*scope) Parent() cel.Activation { return nil }
