package cel

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"overrule.dev/overrule/merge"
)

// Condition is a compiled expression. It is safe for concurrent use.
type Condition struct {
	expression string
	program    cel.Program
	loopNodes  map[int64]bool // the nodes that stand in the body of a comprehension
	// traced is the program once more, remembering what each node yields.
	tracked func() (cel.Program, error)
	// costly tells that an evaluation cost enough to look for its answer first.
	cached atomic.Bool
}

var _ merge.Condition = (*Condition)(nil)

// String returns the expression.
func (c *Condition) String() string { return c.expression }

// Evaluate answers for a spec, which it only reads. The Err of the answer is an
// *EvalError, and wraps ErrBudget if the cost went over Limit. An element of a
// list is written [0] in the answer's Missing, as in limits.a.rates[0].limit.
//
// What cost much is not evaluated twice on equal specs; the answer's cost is then
// that of finding it.
func (c *Condition) Evaluate(spec map[string]any) merge.Answer {
	if !c.cached.Load() {
		answer := c.evaluate(spec)
		if answer.Cost >= minCachedCost {
			c.cached.Store(true)
			if key, _, ok := c.key(spec); ok {
				answerCache.Add(key, detached(answer))
			}
		}
		return answer
	}
	key, cost, ok := c.key(spec)
	if !ok {
		return c.evaluate(spec)
	}
	if known, found := answerCache.Get(key); found {
		answer := known.(merge.Answer) //nolint:forcetypeassert // it holds nothing else
		answer.Cost = cost
		return answer
	}
	answer := c.evaluate(spec)
	answerCache.Add(key, detached(answer))
	return answer
}

func (c *Condition) evaluate(spec map[string]any) merge.Answer {
	out, details, err := c.program.Eval(&activation{spec: object{fields: spec}})
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
		answer.Err = &EvalError{Cause: conditions.wrongType(out.Type().TypeName(), types.BoolType)}
		return answer
	}
	answer.Met = bool(met)
	return answer
}

// fail tells a key that is not there from every other failure.
func (c *Condition) setFailure(answer *merge.Answer, spec map[string]any, err error) {
	missing := c.missing(err)
	if missing != nil {
		err = c.hiddenError(answer, spec)
	}
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		answer.Err = &EvalError{Cause: ErrBudget}
	case err != nil:
		answer.Err = &EvalError{Cause: err}
	default:
		answer.Missing = missing.address()
		answer.HasSiblings = len(missing.from.fields) > 0
	}
}

// missing returns the key that is not there, or nil for any other error: a key
// that is missing in the body of a loop is one, too.
func (c *Condition) missing(err error) *missingKeyError {
	at, ok := errors.AsType[*types.Err](err)
	if !ok || c.loopNodes[at.NodeID()] {
		return nil
	}
	missing, _ := errors.AsType[*missingKeyError](err)
	return missing
}

// unreadable looks for a second error behind a missing key. Of two failed
// operands || and && tell the first alone; a condition must not be dodged by
// leaving out what one names and writing nonsense for the other.
func (c *Condition) hiddenError(answer *merge.Answer, spec map[string]any) error {
	program, err := c.tracked()
	if err != nil {
		return err
	}
	_, details, err := program.Eval(&activation{spec: object{fields: spec}})
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

// scope is the variables of one evaluation.
type activation struct{ spec object }

// ResolveName implements cel.Activation.
func (s *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "spec":
		return &s.spec, true
	case "self":
		return map[string]any{"spec": &s.spec}, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (*activation) Parent() cel.Activation { return nil }
