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

// The dialects of constraints: what must be true, and what is said if it is not.
var (
	validations = dialect{noun: "validation", variables: variableNames}
	messages    = dialect{noun: "message", variables: variableNames}
)

var variableNames = []string{"effective", "before", "origins", "path", "request"}

// Variables are what the expressions of a constraint read, as decoded JSON. Each
// is asked for only if an expression names it, and may be asked for again: keep
// what is dear to make. One that is not set is null.
type Variables struct {
	// Effective is the effective spec, or the list of them where the kind
	// collects; Before is the same before the write, null where there was none.
	Effective, Before func() any
	// Origins are those of the rules by key, Path is the elements of the path,
	// Request is who writes what: see Schemas.
	Origins, Path, Request func() any
}

// top is the place of the variables: an address starts with a variable's name.
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

// Reads reports whether the expression names a variable.
func (e *expression) Reads(variable string) bool { return e.reads[variable] }

// identifiers returns the names in an expression. One of them may be a loop's
// own.
func identifiers(checked *cel.Ast) map[string]bool {
	out := make(map[string]bool)
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			out[e.AsIdent()] = true
		}
	}))
	return out
}

// evaluate returns what the expression yields and what that cost. The error is
// an *EvalError.
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

// cause tells a cost over the limit from every other failure.
func cause(err error) error {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return ErrBudget
	}
	return err
}

// Validation is a compiled expression that is true or false. It is safe for
// concurrent use.
type Validation struct{ expression }

// CompileValidation compiles an expression over Variables, or returns what it
// made of it before. Its error is a *CompileError, unless CEL itself cannot be
// set up.
func CompileValidation(expression string) (*Validation, error) {
	c, err := validationCompiler()
	if err != nil {
		return nil, err
	}
	return c.Compile(expression)
}

// String returns the expression.
func (v *Validation) String() string { return v.text }

// Evaluate answers, and tells what that cost. A failure is an *EvalError, and
// wraps ErrBudget if the cost went over Limit.
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

// Message is a compiled expression that yields a text. It is safe for
// concurrent use.
type Message struct{ expression }

// CompileMessage compiles an expression over Variables that yields a text, as
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

// Evaluate returns the text, and tells what that cost. Its errors are those of
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

// The compilers that the process shares.
var (
	validationCompiler = sync.OnceValues(func() (*cachingCompiler[*Validation], error) {
		return constraintCompiler(validations, cel.BoolType, func(e expression) *Validation { return &Validation{e} })
	})
	messageCompiler = sync.OnceValues(func() (*cachingCompiler[*Message], error) {
		return constraintCompiler(messages, cel.StringType, func(e expression) *Message { return &Message{e} })
	})
)

// constraintCompiler makes a compiler that also checks how the variables whose
// fields are always the same are used.
func constraintCompiler[T any](d dialect, yields *cel.Type, of func(expression) T) (*cachingCompiler[T], error) {
	env, err := newEnvironment(d)
	if err != nil {
		return nil, err
	}
	k := newCachingCompiler(d, DefaultCacheSize, func(text string) (none T, _ error) {
		checked, program, err := env.program(text, yields)
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
