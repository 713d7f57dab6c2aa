package cel

import (
	"errors"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// The dialects of constraints.
var (
	validations = dialect{noun: "validation", variables: variableNames}
	messages    = dialect{noun: "message", variables: variableNames}
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
}

// top is the location of the variables: a path starts with the name of a variable.
var top location

// ResolveName implements cel.Activation.
func (v *Variables) ResolveName(name string) (any, bool) {
	var of func() any
	switch name {
	case "effective":
		of = v.Effective
	case "before":
		of = v.Before
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
	return value(of(), location{parent: &top, key: name, index: -1}), true
}

// Parent implements cel.Activation.
func (*Variables) Parent() cel.Activation { return nil }

// expression is a compiled expression of a constraint.
type expression struct {
	text    string
	program cel.Program
	reads   map[string]bool
}

// Reads reports whether the expression reads a variable.
func (e *expression) Reads(variable string) bool { return e.reads[variable] }

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

// evaluate returns the value of the expression and the cost. The error is an
// *EvalError.
func (e *expression) evaluate(v *Variables) (ref.Val, uint64, error) {
	out, details, err := e.program.Eval(v)
	var spent uint64
	if cost := details.ActualCost(); cost != nil {
		spent = *cost
	}
	if err != nil {
		return nil, spent, &EvalError{Cause: cause(err)}
	}
	if types.IsUnknown(out) {
		return nil, spent, &EvalError{Cause: ErrOpaque}
	}
	return out, spent, nil
}

// cause returns ErrBudget if the cost limit was exceeded, else err.
func cause(err error) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return ErrBudget
	}
	return err
}

// Validation is a compiled expression that evaluates to a bool. It is safe for
// concurrent use.
type Validation struct{ expression }

// CompileValidation compiles an expression on Variables, or returns the cached result.
// Its error is a *CompileError, unless CEL itself cannot be set up.
func CompileValidation(expression string) (*Validation, error) {
	c, err := validationCompiler()
	if err != nil {
		return nil, err
	}
	return c.Compile(expression)
}

// String returns the expression.
func (v *Validation) String() string { return v.text }

// Evaluate returns the value and the cost. The error is an *EvalError, and wraps
// ErrBudget if the cost exceeds Limit.
func (v *Validation) Evaluate(on *Variables) (met bool, cost uint64, err error) {
	out, cost, err := v.evaluate(on)
	if err != nil {
		return false, cost, err
	}
	is, ok := out.(types.Bool)
	if !ok {
		return false, cost, &EvalError{Cause: validations.wrongType(out.Type().TypeName(), types.BoolType)}
	}
	return bool(is), cost, nil
}

// Message is a compiled expression that evaluates to a string. It is safe for
// concurrent use.
type Message struct{ expression }

// CompileMessage compiles an expression on Variables that evaluates to a string, as
// CompileValidation does.
func CompileMessage(expression string) (*Message, error) {
	c, err := messageCompiler()
	if err != nil {
		return nil, err
	}
	return c.Compile(expression)
}

// String returns the expression.
func (m *Message) String() string { return m.text }

// Evaluate returns the string and the cost. Its errors are those of
// Validation.Evaluate.
func (m *Message) Evaluate(on *Variables) (text string, cost uint64, err error) {
	out, cost, err := m.evaluate(on)
	if err != nil {
		return "", cost, err
	}
	is, ok := out.(types.String)
	if !ok {
		return "", cost, &EvalError{Cause: messages.wrongType(out.Type().TypeName(), types.StringType)}
	}
	return string(is), cost, nil
}

// The shared compilers of the process.
var (
	validationCompiler = sync.OnceValues(func() (*cachingCompiler[*Validation], error) {
		return constraintCompiler(validations, cel.BoolType, func(e expression) *Validation { return &Validation{e} })
	})
	messageCompiler = sync.OnceValues(func() (*cachingCompiler[*Message], error) {
		return constraintCompiler(messages, cel.StringType, func(e expression) *Message { return &Message{e} })
	})
)

// constraintCompiler returns a compiler that also checks the types of the variables
// that have the same schema for all kinds.
func constraintCompiler[T any](d dialect, want *cel.Type, of func(expression) T) (*cachingCompiler[T], error) {
	env, err := newEnvironment(d)
	if err != nil {
		return nil, err
	}
	k := newCachingCompiler(d, DefaultCacheSize, func(text string) (none T, _ error) {
		checked, program, err := env.program(text, want)
		if err != nil {
			return none, err
		}
		if err := d.checkTypes(text, nil); err != nil {
			return none, err
		}
		return of(expression{text, program, identifiers(checked)}), nil
	})
	return &k, nil
}
