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
type Compiler struct {
	env    *environment
	cache  *lru.Cache
	flight singleflight.Group
}

// NewCompiler returns a compiler that keeps at most size expressions.
func NewCompiler(size int) (*Compiler, error) {
	env, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	return &Compiler{env: env, cache: lru.New(max(size, 1))}, nil // lru reads 0 as no limit
}

// Compile compiles an expression with the compiler that the process shares.
// Its error is a *CompileError, unless CEL itself cannot be set up.
func Compile(expression string) (*Condition, error) {
	c, err := standard()
	if err != nil {
		return nil, err
	}
	return c.Compile(expression)
}

// Compile compiles an expression, or returns what it made of it before. Its
// error is a *CompileError.
func (c *Compiler) Compile(expression string) (*Condition, error) {
	if err := checkLength(expression); err != nil {
		return nil, err // never cached: it may be huge
	}
	if kept, ok := c.cache.Get(expression); ok {
		return kept.(compiled).both()
	}
	made, _, _ := c.flight.Do(expression, func() (any, error) {
		if kept, ok := c.cache.Get(expression); ok {
			return kept, nil // made between the look above and this flight
		}
		var one compiled
		one.condition, one.err = c.env.compile(expression)
		c.cache.Add(expression, one)
		return one, nil
	})
	return made.(compiled).both()
}

// compiled is an entry of the cache: a condition, or why there is none.
type compiled struct {
	condition *Condition
	err       error
}

func (c compiled) both() (*Condition, error) { return c.condition, c.err }

func checkLength(expression string) error {
	switch {
	case strings.TrimSpace(expression) == "":
		return problem(expression, "the expression is empty")
	case len(expression) > MaxLength:
		return problem(expression, fmt.Sprintf("the expression is %d bytes long, at most %d are read", len(expression), MaxLength))
	}
	return nil
}

func (e *environment) compile(expression string) (*Condition, error) {
	checked, issues := e.Compile(expression)
	if issues.Err() != nil {
		return nil, fromIssues(expression, issues)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, problem(expression, (&typeError{got: t.String()}).Error())
	}
	program, err := e.Program(checked, e.options...)
	if err != nil {
		return nil, problem(expression, err.Error())
	}
	traced := func() (cel.Program, error) {
		return e.Program(checked, append(slices.Clone(e.options), cel.EvalOptions(cel.OptTrackState))...)
	}
	return &Condition{
		expression: expression, program: program, loops: loops(checked.NativeRep()),
		traced: sync.OnceValues(traced),
	}, nil
}

// problem is a CompileError about the expression as a whole.
func problem(expression, message string) error {
	return &CompileError{Expression: expression, Problems: []Problem{{Line: 1, Column: 1, Message: message}}}
}

func fromIssues(expression string, issues *cel.Issues) error {
	out := &CompileError{Expression: expression}
	for _, i := range issues.Errors() {
		out.Problems = append(out.Problems, Problem{
			// what has no position is about the whole
			Line: max(i.Location.Line(), 1), Column: max(i.Location.Column(), 0) + 1,
			Message: strings.Join(strings.Fields(i.Message), " "),
		})
	}
	if len(out.Problems) == 0 {
		return problem(expression, issues.String())
	}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Message, b.Message))
	})
	out.Problems = slices.Compact(out.Problems)
	return out
}
