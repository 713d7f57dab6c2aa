package cel

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// costEstimator estimates the cost of operations whose time or memory can exceed what
// cel-go charges for them. cel-go charges an operation after it ran, which is too late
// for x.replace("", y) or a regular expression on a long string, and charges too little
// for some that read all of a long string. So their cost is estimated before they run,
// and they fail if it alone exceeds the limit; otherwise the cost tracker charges the
// same cost, and may end the evaluation.
type costEstimator struct {
	functions map[string]functions.FunctionOp
}

// costFunctions estimate the cost of a call in cel-go's units, by function.
var costFunctions = map[string]func(args []ref.Val) uint64{
	operators.Equals:        costOfEqual,
	operators.NotEquals:     costOfEqual,
	operators.In:            func(args []ref.Val) uint64 { return valueSize(args[1]) },
	operators.Less:          costOfTexts,
	operators.LessEquals:    costOfTexts,
	operators.Greater:       costOfTexts,
	operators.GreaterEquals: costOfTexts,
	"size":                  costOfTexts,
	"bool":                  costOfTexts,
	"int":                   costOfTexts,
	"uint":                  costOfTexts,
	"double":                costOfTexts,
	"string":                costOfTexts,
	"bytes":                 costOfTexts,
	"duration":              costOfTexts,
	"timestamp":             costOfTexts,
	"math.@max":             costOfAll,
	"math.@min":             costOfAll,
	"matches":               costOfMatches,
	"replace":               costOfReplace,
	"join":                  costOfJoin,
	"indexOf":               costOfSearch,
	"lastIndexOf":           costOfSearch,
	"sets.contains":         costOfPairs,
	"sets.intersects":       costOfPairs,
	"sets.equivalent":       costOfPairs,
}

func newCostEstimator(env *cel.Env) (*costEstimator, error) {
	s := &costEstimator{functions: map[string]functions.FunctionOp{
		operators.Equals:    func(args ...ref.Val) ref.Val { return types.Equal(args[0], args[1]) },
		operators.NotEquals: func(args ...ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) },
		"matches":           matches,
	}}
	for name := range costFunctions {
		if s.functions[name] != nil {
			continue
		}
		bindings, err := env.Functions()[name].Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			if b.Operator == name { // the one that selects the overload by the arguments
				s.functions[name] = dispatch(b)
			}
		}
	}
	for _, name := range comparisonFunctions {
		s.functions[name] = unknownIfOpaque(s.functions[name])
	}
	s.functions[operators.In] = unknownIfOpaqueIn(s.functions[operators.In])
	return s, nil
}

// dispatch returns a function that calls a binding of any form.
func dispatch(b *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		switch {
		case b.OperandTrait != 0 && !args[0].Type().HasTrait(b.OperandTrait):
		case len(args) == 1 && b.Unary != nil:
			return b.Unary(args[0])
		case len(args) == 2 && b.Binary != nil:
			return b.Binary(args[0], args[1])
		case b.Function != nil:
			return b.Function(args...)
		}
		return types.MaybeNoSuchOverloadErr(args[0])
	}
}

// decorate adds the cost check to calls of costFunctions.
func (e *costEstimator) decorate(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := step.(interpreter.InterpretableCall)
	if !ok {
		return step, nil
	}
	weigh, run := costFunctions[call.Function()], e.functions[call.Function()]
	if weigh == nil || run == nil || isConstantComparison(call) {
		return step, nil
	}
	// without the name of its overload no other tracker charges the call
	return interpreter.NewCall(call.ID(), call.Function(), "", call.Args(), func(args ...ref.Val) ref.Val {
		if weigh(args) > Limit {
			return types.WrapErr(ErrBudget)
		}
		return run(args...)
	}), nil
}

// isConstantComparison reports whether a call is a comparison with a constant number,
// bool or null.
func isConstantComparison(call interpreter.InterpretableCall) bool {
	switch call.Function() {
	case operators.Equals, operators.NotEquals,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
	default:
		return false
	}
	for _, a := range call.Args() {
		if c, ok := a.(interpreter.InterpretableConst); ok && c.Value().Type() != types.StringType {
			return true
		}
	}
	return false
}

// CallCost implements interpreter.ActualCostEstimator.
func (e *costEstimator) CallCost(function, overload string, args []ref.Val, _ ref.Val) *uint64 {
	weigh := costFunctions[function]
	if weigh == nil || overload != "" || e.functions[function] == nil {
		return nil // cel-go's own estimate
	}
	w := min(weigh(args), Limit+1) // more than that is rejected without running
	return &w
}

func costOfEqual(args []ref.Val) uint64 { return min(valueSize(args[0]), valueSize(args[1])) }

func costOfTexts(args []ref.Val) uint64 {
	var w uint64
	for _, a := range args {
		w += costOfText(a)
	}
	return w
}

func costOfAll(args []ref.Val) uint64 {
	var w uint64
	for _, a := range args {
		w += valueSize(a)
	}
	return w
}

func costOfPairs(args []ref.Val) uint64 { return valueSize(args[0]) * valueSize(args[1]) }

func costOfSearch(args []ref.Val) uint64 { return costOfText(args[0]) * costOfText(args[1]) }

// costOfReplace is the cost of the resulting string.
func costOfReplace(args []ref.Val) uint64 {
	in, ok1 := args[0].(types.String)
	old, ok2 := args[1].(types.String)
	with, ok3 := args[2].(types.String)
	if !ok1 || !ok2 || !ok3 {
		return 1
	}
	return costOfLength(uint64(len(in)) + uint64(strings.Count(string(in), string(old)))*uint64(len(with))) //nolint:gosec // a count is not negative
}

// costOfJoin is the cost of the resulting string.
func costOfJoin(args []ref.Val) uint64 {
	l, ok := args[0].(traits.Lister)
	if !ok {
		return 1
	}
	w := valueSize(l)
	if len(args) > 1 {
		size, _ := l.Size().(types.Int)
		w += uint64(max(size, 0)) * costOfText(args[1])
	}
	return w
}

func costOfText(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return costOfLength(uint64(len(v)))
	case types.Bytes:
		return costOfLength(uint64(len(v)))
	}
	return 1
}

func costOfLength(bytes uint64) uint64 { return 1 + bytes/10 }
