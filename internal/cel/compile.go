package cel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
)

// DefaultCacheSize is the number of expressions that the package-level Compile caches.
const DefaultCacheSize = 512

// Compiler compiles conditions and caches the latest, including those that do not
// compile. It is safe for concurrent use.
type Compiler struct{ cachingCompiler[*Condition] }

// NewCompiler returns a compiler that caches at most size expressions.
func NewCompiler(size int) (*Compiler, error) {
	env, err := newEnvironment(conditions)
	if err != nil {
		return nil, err
	}
	return &Compiler{newCachingCompiler(env.dialect, size, env.compile)}, nil
}

// Compile compiles an expression with the shared compiler of the process. Its error is
// a *CompileError, unless CEL itself cannot be set up.
func Compile(expression string) (*Condition, error) {
	c, err := defaultCompiler()
	if err != nil {
		return nil, err
	}
	return c.Compile(expression)
}

// cachingCompiler compiles expressions of one dialect and caches the latest.
type cachingCompiler[T any] struct {
	dialect dialect
	compile func(expression string) (T, error)
	cache   *lru.Cache
	group   *singleflight.Group
}

func newCachingCompiler[T any](d dialect, size int, compile func(string) (T, error)) cachingCompiler[T] {
	return cachingCompiler[T]{dialect: d, compile: compile, cache: lru.New(max(size, 1)), group: new(singleflight.Group)} // for lru 0 is no limit
}

// Compile compiles an expression, or returns the cached result. Its error is a
// *CompileError.
func (c cachingCompiler[T]) Compile(expression string) (T, error) {
	if err := c.dialect.checkLength(expression); err != nil {
		var none T
		return none, err // not cached: it may be huge
	}
	if kept, ok := c.cache.Get(expression); ok {
		return kept.(compiled[T]).result()
	}
	made, _, _ := c.group.Do(expression, func() (any, error) {
		if kept, ok := c.cache.Get(expression); ok {
			return kept, nil // cached since the lookup above
		}
		var one compiled[T]
		one.value, one.err = c.compile(expression)
		c.cache.Add(expression, one)
		return one, nil
	})
	return made.(compiled[T]).result()
}

// compiled is an entry of the cache: a compiled expression, or its error.
type compiled[T any] struct {
	value T
	err   error
}

func (c compiled[T]) result() (T, error) { return c.value, c.err }

func (d dialect) checkLength(expression string) error {
	switch {
	case strings.TrimSpace(expression) == "":
		return d.problem(expression, "the expression is empty")
	case len(expression) > MaxLength:
		return d.problem(expression, fmt.Sprintf("the expression must have at most %d bytes, not %d", MaxLength, len(expression)))
	}
	return nil
}

func (e *environment) compile(expression string) (*Condition, error) {
	checked, program, err := e.program(expression, cel.BoolType)
	if err != nil {
		return nil, err
	}
	traced := func() (cel.Program, error) {
		return e.Program(checked, append(slices.Clone(e.options), cel.EvalOptions(cel.OptTrackState))...)
	}
	return &Condition{
		expression: expression, program: program, loopNodes: loopNodes(checked.NativeRep()),
		tracked: sync.OnceValues(traced),
	}, nil
}

// program compiles an expression that must evaluate to a type.
func (e *environment) program(expression string, want *cel.Type) (*cel.Ast, cel.Program, error) {
	checked, issues := e.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, e.fromIssues(expression, issues)
	}
	if t := checked.OutputType(); !t.IsExactType(want) && !t.IsExactType(cel.DynType) {
		return nil, nil, e.problem(expression, e.wrongType(t.String(), want).Error())
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
