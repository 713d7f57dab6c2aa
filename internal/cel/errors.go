package cel

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
)

// ErrBudget is wrapped by the Err of an Answer whose evaluation was cut short
// because it cost more than Limit.
var ErrBudget = fmt.Errorf("costs more than the %d units that one evaluation may", uint64(Limit))

// ErrOpaque is wrapped by the error of an evaluation that needs a value which is
// Opaque.
var ErrOpaque = errors.New("needs a value that the expression may not depend on")

// CompileError says everything that is wrong with an expression.
type CompileError struct {
	Expression string
	noun       string
	// Problems is never empty, and sorted by position.
	Problems []Problem
}

// Problem is one thing that is wrong with an expression.
type Problem struct {
	// Line and Column are counted from 1, columns in characters.
	Line, Column int
	Message      string
}

// String returns the problem with its position.
func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// Error lists the problems in one line, the first ten if there are more.
func (e *CompileError) Error() string {
	const most = 10
	var texts []string
	for _, p := range e.Problems[:min(len(e.Problems), most)] {
		texts = append(texts, p.String())
	}
	if more := len(e.Problems) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s %q does not compile: %s", e.noun, truncate(e.Expression), strings.Join(texts, "; "))
}

// EvalError is the Err of an Answer: the condition compiles, and this spec
// cannot be judged by it.
type EvalError struct{ Cause error }

// Error says why it cannot be judged.
func (e *EvalError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Cause }

// constantErrors are the errors of an evaluation that say nothing of the values that
// it read.
var constantErrors = []string{
	"no such overload", "division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow", "duration overflow", "timestamp overflow",
}

// errUnsaid stands for an error that may quote a value.
var errRedacted = errors.New("the reason is not shown, since it depends on values that it reads")

// WithoutValues returns the error of an Answer of a condition if its text depends on
// no value, else one that says so.
func WithoutValues(condition string, err error) error {
	_, isType := errors.AsType[*typeError](err)
	missesKey := strings.HasPrefix(err.Error(), "no such key: ") && NamesKeys(condition)
	if isType || missesKey || errors.Is(err, ErrBudget) || slices.Contains(constantErrors, err.Error()) {
		return err
	}
	return errRedacted
}

// constantIndex is an index that the expression spells out.
var constantIndex = regexp.MustCompile(`\[\s*("[^"\\]*"|'[^'\\]*'|[0-9]+)\s*\]`)

// NamesKeys reports whether an expression spells out each key that it looks up, so
// that a missing one says nothing of any value.
func NamesKeys(expression string) bool {
	return !strings.Contains(constantIndex.ReplaceAllString(expression, ""), "[")
}

// typeError is an expression that yields something else than it must.
type typeError struct{ got, want string }

// Error names the type that it yields.
func (e *typeError) Error() string { return "it yields " + e.got + "; a " + e.want }

// wrong returns the error about an expression that must yield a type.
func (d dialect) wrongType(got string, yields *types.Type) *typeError {
	must := "true or false"
	if yields == types.StringType {
		must = "a text"
	}
	return &typeError{got: got, want: d.noun + " must yield " + must}
}

// shorten keeps a huge expression out of a message about it.
func truncate(expression string) string {
	const most = 200
	if r := []rune(expression); len(r) > most {
		return string(r[:most]) + "…"
	}
	return expression
}
