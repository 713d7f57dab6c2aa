package cel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/utils/lru"
)

// compiler compiles expressions of one dialect and caches the latest, including those
// that do not compile. It is safe for concurrent use.
type compiler[T any] struct {
	setUp func() (*environment, error)
	of    func(*environment, string) (T, error)
	cache *lru.Cache // of compiled[T]
}

// compiled is a compiled expression, or its error.
type compiled[T any] struct {
	value T
	err   error
}

func newCompiler[T any](d dialect, size int, of func(*environment, string) (T, error)) *compiler[T] {
	setUp := sync.OnceValues(func() (*environment, error) { return newEnvironment(d) })
	return &compiler[T]{setUp, of, lru.New(size)}
}

// The compilers of the process.
var (
	conditionCompiler  = newCompiler(conditions, maxCached, newCondition)
	validationCompiler = newCompiler(validations, maxCached, newExpression)
	messageCompiler    = newCompiler(messages, maxCached, newExpression)
)

// Compile compiles a condition. Its error is a *CompileError, unless CEL itself cannot be
// set up.
func Compile(expression string) (*Condition, error) { return conditionCompiler.compile(expression) }

// CompileValidation compiles an expression on Variables that evaluates to a bool, as
// Compile does.
func CompileValidation(expression string) (*Expression, error) {
	return validationCompiler.compile(expression)
}

// CompileMessage compiles an expression on Variables that evaluates to a string, as
// Compile does.
func CompileMessage(expression string) (*Expression, error) {
	return messageCompiler.compile(expression)
}

// compile compiles an expression, or returns the cached result.
func (c *compiler[T]) compile(expression string) (value T, err error) {
	env, err := c.setUp()
	if err == nil {
		err = env.checkLength(expression)
	}
	if err != nil {
		return value, err // not cached: the expression may be huge
	}
	if kept, ok := c.cache.Get(expression); ok {
		known := kept.(compiled[T]) //nolint:forcetypeassert // it has no other values
		return known.value, known.err
	}
	value, err = c.of(env, expression)
	c.cache.Add(expression, compiled[T]{value, err})
	return value, err
}

func (d dialect) checkLength(expression string) error {
	switch {
	case strings.TrimSpace(expression) == "":
		return d.problem(expression, "the expression is empty")
	case len(expression) > MaxLength:
		return d.problem(expression, fmt.Sprintf("the expression must have at most %d bytes, not %d", MaxLength, len(expression)))
	}
	return nil
}

// program compiles an expression.
func (e *environment) program(expression string) (*cel.Ast, cel.Program, error) {
	checked, issues := e.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, e.fromIssues(expression, issues)
	}
	if t := checked.OutputType(); !t.IsExactType(e.of) && !t.IsExactType(cel.DynType) {
		return nil, nil, e.problem(expression, e.wrongType(t.String()).Error())
	}
	program, err := e.Program(checked, e.options...)
	if err != nil {
		return nil, nil, e.problem(expression, err.Error())
	}
	return checked, program, nil
}

// problem returns a CompileError about the expression as a whole.
func (d dialect) problem(expression, message string) error {
	return &CompileError{noun: d.noun, Expression: expression, Problems: []Problem{{Line: 1, Column: 1, Message: message}}}
}

func (d dialect) fromIssues(expression string, issues *cel.Issues) error {
	if out := d.compileError(expression, issues.Errors()); len(out.Problems) > 0 {
		return out
	}
	return d.problem(expression, issues.String())
}

// compileError returns the problems sorted by position, each once.
func (d dialect) compileError(expression string, issues []*cel.Error) *CompileError {
	out := &CompileError{noun: d.noun, Expression: expression}
	for _, i := range issues {
		out.Problems = append(out.Problems, Problem{
			// an issue without a position is about the whole expression
			Line: max(i.Location.Line(), 1), Column: max(i.Location.Column(), 0) + 1,
			Message: strings.Join(strings.Fields(i.Message), " "),
		})
	}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Message, b.Message))
	})
	out.Problems = slices.Compact(out.Problems)
	return out
}
