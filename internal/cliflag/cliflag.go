// Package cliflag extends pflag with flags whose value is one of a list, and with
// errors in kubectl's form.
package cliflag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// EnumVar adds a flag to f whose value must be one of allowed. Its default is
// value.
func EnumVar[T ~string](f *pflag.FlagSet, p *T, name string, value T, allowed []T, usage string) {
	EnumVarP(f, p, name, "", value, allowed, usage)
}

// EnumVarP is EnumVar for a flag that also has a shorthand.
func EnumVarP[T ~string](f *pflag.FlagSet, p *T, name, shorthand string, value T, allowed []T, usage string) {
	*p = value
	f.VarP(&enum[T]{p, allowed}, name, shorthand, usage)
}

// enum is a pflag.Value that is one of allowed.
type enum[T ~string] struct {
	value   *T
	allowed []T
}

// String implements pflag.Value.
func (e *enum[T]) String() string { return string(*e.value) }

// Type implements pflag.Value.
func (e *enum[T]) Type() string { return "string" }

// Set implements pflag.Value.
func (e *enum[T]) Set(text string) error {
	if !slices.Contains(e.allowed, T(text)) {
		names := make([]string, len(e.allowed))
		for i, v := range e.allowed {
			names[i] = string(v)
		}
		return fmt.Errorf("must be one of %s", strings.Join(names, ", "))
	}
	*e.value = T(text)
	return nil
}

// Error returns err, which came from parsing flags, as kubectl writes it:
// invalid value "x" for --flag: reason.
func Error(err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("invalid value %q for --%s: %w", invalid.GetValue(), invalid.GetFlag().Name, invalid.Unwrap())
	}
	return err
}
