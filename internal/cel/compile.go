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

// DefaultCacheSize is how many expressions the package-level Compile keeps.
const DefaultCacheSize = 512

// Compiler compiles conditions and keeps the latest, those that do not compile
// too. It is safe for concurrent use.
type Compiler struct{ cachingCompiler[*Condition] }

// NewCompiler returns a compiler that keeps at most size expressions.
func NewCompiler(size int) (*Compiler, error) {
	env, err := newEnvironment(conditions)
	if err != nil {
		return nil, err
	}
	return &Compiler{newCachingCompiler(env.dialect, size, env.compile)}, nil
}

// Compile compiles an expression with the compiler that the process shares.
// Its error is a *CompileError, unless CEL itself cannot be set up.
func Compile(expression string) (*Condition, error) {
	c, err := defaultCompiler()
	if err != nil {
		return nil, err
	}
	return c.Compile(expression)
}

// keeper compiles expressions of one use and keeps the latest.
type cachingCompiler[T any] struct {
	dialect dialect
	compile func(expression string) (T, error)
	cache   *lru.Cache
	group   *singleflight.Group
}

func newCachingCompiler[T any](d dialect, size int, compile func(string) (T, error)) cachingCompiler[T] {
	return cachingCompiler[T]{dialect: d, compile: compile, cache: lru.New(max(size, 1)), group: new(singleflight.Group)} // lru reads 0 as no limit
}

// Compile compiles an expression, or returns what it made of it before. Its
// error is a *CompileError.
func (k cachingCompiler[T]) Compile(expression string) (T, error) {
	if err := k.dialect.checkLength(expression); err != nil {
		var none T
		return none, err // never cached: it may be huge
	}
	if kept, ok := k.cache.Get(expression); ok {
		return kept.(compiled[T]).result()
	}
	made, _, _ := k.group.Do(expression, func() (any, error) {
		if kept, ok := k.cache.Get(expression); ok {
			return kept, nil // made between the look above and this flight
		}
		var one compiled[T]
		one.value, one.err = k.compile(expression)
		k.cache.Add(expression, one)
		return one, nil
	})
	return made.(compiled[T]).result()
}

// compiled is an entry of the cache: what was made of an expression, or why
// nothing was.
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
		return d.problem(expression, fmt.Sprintf("the expression is %d bytes long, at most %d are read", len(expression), MaxLength))
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

// program compiles an expression that must yield a type.
func (e *environment) program(expression string, yields *cel.Type) (*cel.Ast, cel.Program, error) {
	checked, issues := e.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, e.fromIssues(expression, issues)
	}
	if t := checked.OutputType(); !t.IsExactType(yields) && !t.IsExactType(cel.DynType) {
		return nil, nil, e.problem(expression, e.wrongType(t.String(), yields).Error())
	}
	program, err := e.Program(checked, e.options...)
	if err != nil {
		return nil, nil, e.problem(expression, err.Error())
	}
	return checked, program, nil
}

// problem is a CompileError about the expression as a whole.
func (d dialect) problem(expression, message string) error {
	return &CompileError{noun: d.noun, Expression: expression, Problems: []Problem{{Line: 1, Column: 1, Message: message}}}
}

func (d dialect) fromIssues(expression string, issues *cel.Issues) error {
	if out := d.compileError(expression, issues.Errors()); len(out.Problems) > 0 {
		return out
	}
	return d.problem(expression, issues.String())
}

// list returns what is wrong, sorted by position, each problem once.
func (d dialect) compileError(expression string, issues []*cel.Error) *CompileError {
	out := &CompileError{noun: d.noun, Expression: expression}
	for _, i := range issues {
		out.Problems = append(out.Problems, Problem{
			// what has no position is about the whole
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
