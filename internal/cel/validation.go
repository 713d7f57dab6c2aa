package cel

import (
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// The dialects of constraints.
var (
	validations = dialect{noun: "validation", of: types.BoolType, variables: variableNames}
	messages    = dialect{noun: "message", of: types.StringType, variables: variableNames}
)

var variableNames = []string{"effective", "before", "origins", "path", "request"}

// Variables are the variables of the expressions of a constraint, as decoded JSON. Each
// function is called only if an expression reads its variable, and may be called again:
// cache what is expensive. A variable without a function is null.
type Variables struct {
	// Effective is the effective spec, or the list of specs of a kind that collects.
	// Before is the same before the write, null if there was none.
	Effective, Before func() any
	// Origins are the origins of the rules by key, Path is the elements of the path,
	// Request is the admission request. See Schemas.
	Origins, Path, Request func() any

	reads *reads // nil if they are not recorded
}

// top is the location of the variables: a path starts with the name of a variable.
var top location

// ResolveName implements cel.Activation.
func (v *Variables) ResolveName(name string) (any, bool) {
	var of func() any
	var recorded *reads
	switch name {
	case "effective":
		of, recorded = v.Effective, v.reads
	case "before":
		of, recorded = v.Before, v.reads
	case "origins":
		of = v.Origins
	case "path":
		of = v.Path
	case "request":
		of = v.Request
	default:
		return nil, false
	}
	if of == nil {
		return types.NullValue, true
	}
	return value(of(), location{parent: &top, key: name, index: -1, reads: recorded}), true
}

// Parent implements cel.Activation.
func (*Variables) Parent() cel.Activation { return nil }

// Expression is a compiled expression of a constraint. It is safe for concurrent use.
type Expression struct {
	text string
	dialect
	program cel.Program
	reads   map[string]bool
}

// String returns the expression.
func (e *Expression) String() string { return e.text }

// Reads reports whether the expression reads a variable.
func (e *Expression) Reads(variable string) bool { return e.reads[variable] }

func newExpression(e *environment, text string) (*Expression, error) {
	checked, program, err := e.program(text)
	if err != nil {
		return nil, err
	}
	// also the types of the variables that have the same schema for all kinds
	if err := e.checkTypes(text, nil); err != nil {
		return nil, err
	}
	return &Expression{text, e.dialect, program, identifiers(checked)}, nil
}

// identifiers returns the identifiers of an expression, including the variables of
// comprehensions.
func identifiers(checked *cel.Ast) map[string]bool {
	out := make(map[string]bool)
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			out[e.AsIdent()] = true
		}
	}))
	return out
}

// Evaluate returns the value, a bool or a string, and the cost. The error is an
// *EvalError, and wraps ErrBudget if the cost exceeds Limit.
func (e *Expression) Evaluate(on *Variables) (any, uint64, error) {
	out, details, err := e.program.Eval(on)
	var spent uint64
	if cost := details.ActualCost(); cost != nil {
		spent = *cost
	}
	switch {
	case err != nil:
		return nil, spent, &EvalError{Cause: cause(err)}
	case types.IsUnknown(out):
		return nil, spent, &EvalError{Cause: ErrOpaque}
	case out.Type() != e.of:
		return nil, spent, &EvalError{Cause: e.wrongType(out.Type().TypeName())}
	}
	return out.Value(), spent, nil
}

// cause returns ErrBudget if the cost limit was exceeded, else err.
func cause(err error) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return ErrBudget
	}
	return err
}
