package cel

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ErrBudget is wrapped by the Err of an Answer whose evaluation exceeded the cost
// Limit.
var ErrBudget = fmt.Errorf("cost exceeds the limit of %d units per evaluation", uint64(Limit))

// ErrOpaque is wrapped by the error of an evaluation that depends on an Opaque value.
var ErrOpaque = errors.New("depends on a value that the expression may not read")

// CompileError has all compile errors of an expression.
type CompileError struct {
	Expression string
	noun       string
	// Problems is never empty, and sorted by position.
	Problems []Problem
}

// Problem is one compile error of an expression.
type Problem struct {
	// Line and Column are counted from 1, columns in characters.
	Line, Column int
	Message      string
}

// String returns the problem with its position.
func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// Error returns the problems in one line, at most the first ten.
func (e *CompileError) Error() string {
	const maxShown = 10
	var texts []string
	for _, p := range e.Problems[:min(len(e.Problems), maxShown)] {
		texts = append(texts, p.String())
	}
	if more := len(e.Problems) - maxShown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s %q does not compile: %s", e.noun, truncate(e.Expression), strings.Join(texts, "; "))
}

// EvalError is the Err of an Answer: the condition compiles, but cannot be evaluated on
// the spec.
type EvalError struct{ Cause error }

// Error returns the error of the evaluation.
func (e *EvalError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Cause }

// constantErrors are the errors of an evaluation whose text does not depend on the
// values that it read.
var constantErrors = []string{
	"no such overload", "division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow", "duration overflow", "timestamp overflow",
}

// errRedacted replaces an error that may quote a value.
var errRedacted = errors.New("the reason is not shown because it may contain values of the spec")

// WithoutValues returns the error of an Answer of a condition if its text contains no
// values of the spec, else a generic error.
func WithoutValues(condition string, err error) error {
	_, isType := errors.AsType[*typeError](err)
	missesKey := strings.HasPrefix(err.Error(), "no such key: ") && NamesKeys(condition)
	if isType || missesKey || errors.Is(err, ErrBudget) || slices.Contains(constantErrors, err.Error()) {
		return err
	}
	return errRedacted
}

// constantIndex matches a literal index in an expression.
var constantIndex = regexp.MustCompile(`\[\s*("[^"\\]*"|'[^'\\]*'|[0-9]+)\s*\]`)

// NamesKeys reports whether an expression only looks up literal keys, so that a missing
// key does not disclose a value.
func NamesKeys(expression string) bool {
	return !strings.Contains(constantIndex.ReplaceAllString(expression, ""), "[")
}

// typeError is the error of an expression that evaluates to a value of another type.
type typeError struct{ got, want string }

// Error names both types.
func (e *typeError) Error() string { return e.want + ", not " + e.got }

// wrongType returns the error of an expression that evaluates to another type.
func (d dialect) wrongType(got string) *typeError {
	return &typeError{got: got, want: "a " + d.noun + " must evaluate to " + d.of.TypeName()}
}

// truncate shortens an expression for a message.
func truncate(expression string) string {
	const maxShown = 200
	if r := []rune(expression); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return expression
}
