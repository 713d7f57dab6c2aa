package cel

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"overrule.dev/overrule/merge"
)

// Condition is a compiled expression. It is safe for concurrent use.
type Condition struct {
	expression string
	program    cel.Program
	loopNodes  map[int64]bool // the nodes in the body of a comprehension
	// tracked returns the same program with the value of each node tracked.
	tracked func() (cel.Program, error)
	// cached is set once an evaluation was expensive enough to cache answers.
	cached atomic.Bool
}

var _ merge.Condition = (*Condition)(nil)

func newCondition(e *environment, expression string) (*Condition, error) {
	checked, program, err := e.program(expression)
	if err != nil {
		return nil, err
	}
	return &Condition{
		expression: expression, program: program, loopNodes: loopNodes(checked.NativeRep()),
		tracked: sync.OnceValues(func() (cel.Program, error) {
			return e.Program(checked, append(slices.Clone(e.options), cel.EvalOptions(cel.OptTrackState))...)
		}),
	}, nil
}

// String returns the expression.
func (c *Condition) String() string { return c.expression }

// Evaluate evaluates the condition on a spec, which it does not change except that it
// may unpack values. The Err of the answer is an *EvalError, and wraps ErrBudget if the
// cost exceeds Limit. An element of a list is written as [0] in the answer's Missing,
// such as limits.a.rates[0].limit.
//
// Answers of expensive conditions are cached by spec. The cost of a cached answer is
// that of the lookup.
func (c *Condition) Evaluate(spec map[string]any) merge.Answer {
	if !c.cached.Load() {
		answer := c.evaluate(spec)
		if answer.Cost >= minCachedCost {
			c.cached.Store(true)
			key, _ := c.key(spec)
			answerCache.Add(key, detached(answer))
		}
		return answer
	}
	key, cost := c.key(spec)
	if known, found := answerCache.Get(key); found {
		answer := known.(merge.Answer) //nolint:forcetypeassert // it has no other values
		answer.Cost = cost
		return answer
	}
	answer := c.evaluate(spec)
	answerCache.Add(key, detached(answer))
	return answer
}

func (c *Condition) evaluate(spec map[string]any) merge.Answer {
	out, details, err := c.program.Eval(activation(spec))
	answer := merge.Answer{}
	if cost := details.ActualCost(); cost != nil {
		answer.Cost = *cost
	}
	if err != nil {
		c.setFailure(&answer, spec, err)
		return answer
	}
	met, ok := out.(types.Bool)
	if !ok {
		answer.Err = &EvalError{Cause: conditions.wrongType(out.Type().TypeName())}
		return answer
	}
	answer.Met = bool(met)
	return answer
}

// setFailure sets the missing key, or the error, of an answer.
func (c *Condition) setFailure(answer *merge.Answer, spec map[string]any, err error) {
	missing := c.missing(err)
	if missing != nil {
		err = c.hiddenError(answer, spec)
	}
	if err != nil {
		answer.Err = &EvalError{Cause: cause(err)}
		return
	}
	answer.Missing = missing.path()
	answer.HasSiblings = len(missing.from.fields) > 0
}

// missing returns the missing key of an error, nil for any other error. A key that is
// missing in the body of a comprehension is another error.
func (c *Condition) missing(err error) *missingKeyError {
	at, ok := errors.AsType[*types.Err](err)
	if !ok || c.loopNodes[at.NodeID()] {
		return nil
	}
	missing, _ := errors.AsType[*missingKeyError](err)
	return missing
}

// hiddenError returns an error other than a missing key that the evaluation did not
// return. If both operands of || or && fail, cel-go returns only the first error: a
// condition must not be bypassed by omitting the key of one and setting an invalid
// value for the other.
func (c *Condition) hiddenError(answer *merge.Answer, spec map[string]any) error {
	program, err := c.tracked()
	if err != nil {
		return err
	}
	_, details, err := program.Eval(activation(spec))
	if cost := details.ActualCost(); cost != nil {
		answer.Cost += *cost
	}
	if err != nil && c.missing(err) == nil {
		return err
	}
	state := details.State()
	for _, id := range slices.Sorted(slices.Values(state.IDs())) {
		value, _ := state.Value(id)
		if failed, ok := value.(*types.Err); ok && !c.loopNodes[id] && c.missing(failed) == nil {
			return failed
		}
	}
	return nil
}

// activation returns the variables of an evaluation.
func activation(fields map[string]any) map[string]any {
	spec := &object{fields: fields}
	return map[string]any{"spec": spec, "self": map[string]any{"spec": spec}}
}
