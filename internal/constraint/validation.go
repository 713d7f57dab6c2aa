package constraint

import (
	"errors"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// validation is a compiled CEL validation.
type validation struct {
	at                string // field path in the constraint
	expression        *cel.Expression
	messageExpression *cel.Expression // nil for none
	message           string
}

func compileValidation(v *api.ConstraintValidation, at *field.Path) (out validation, errs field.ErrorList) {
	out = validation{at: at.String(), message: v.Message}
	var err error
	if out.expression, err = cel.CompileValidation(v.Expression); err != nil {
		errs = append(errs, problems(err, at.Child("expression"), v.Expression)...)
	}
	if v.MessageExpression != "" {
		if out.messageExpression, err = cel.CompileMessage(v.MessageExpression); err != nil {
			errs = append(errs, problems(err, at.Child("messageExpression"), v.MessageExpression)...)
		}
	}
	return out, errs
}

// problems returns the errors of an expression one by one.
func problems(err error, at *field.Path, expression string) (errs field.ErrorList) {
	failed, ok := errors.AsType[*cel.CompileError](err)
	if !ok {
		return field.ErrorList{field.InternalError(at, err)}
	}
	for _, p := range failed.Problems {
		errs = append(errs, field.Invalid(at, shorten(expression), p.String()))
	}
	return errs
}

// evaluate adds the validation to a result if it is not met. A validation that cannot be
// evaluated is not met: otherwise a policy could bypass it by omitting a field. One that
// depends on an opaque value is undecided. The error is the meter's.
func (v *validation) evaluate(on PathInput, m merge.Meter, out *Result) error {
	met, cost, failed := v.expression.Evaluate(on.Variables)
	if err := m.Spend(nil, cost); err != nil || met == true {
		return err
	}
	if errors.Is(failed, cel.ErrOpaque) {
		out.Undecided = true
		return nil
	}
	shown := on.Shown()
	text, err := v.text(shown, m)
	if err != nil {
		return err
	}
	u := Unmet{At: v.at, Message: text}
	if failed != nil {
		u.failure = evaluationFailed
	}
	if cel.MissesKey(failed) {
		u.failure = missingKey
	}
	if text == "" {
		u.Message = clean(v.expression.String()) + " is not true"
	}
	if text == "" || failed != nil {
		values, cost, again := v.expression.Values(shown)
		if err := m.Spend(nil, cost); err != nil {
			return err
		}
		u.Message += reason(values, failed, again)
	}
	out.Unmet = append(out.Unmet, u)
	return nil
}

// reason says why a validation is not met: the error, or else the values that it read of
// what is shown. CEL errors quote values: one is not shown unless evaluating what is shown
// fails with the same.
func reason(values []cel.Read, failed, again error) string {
	switch {
	case failed != nil && again != nil && again.Error() == failed.Error():
		return ": it cannot be evaluated: " + clean(failed.Error())
	case failed != nil:
		return ": it cannot be evaluated"
	case len(values) == 0:
		return ""
	}
	var texts []string
	for _, r := range values[:min(len(values), maxValues)] {
		texts = append(texts, r.Path+" is "+compact(r.Value))
	}
	return ": " + strings.Join(texts, ", ") + api.More(", and ", len(values)-len(texts), "")
}

// text returns the message of the author, empty if there is none.
func (v *validation) text(shown *cel.Variables, m merge.Meter) (string, error) {
	if v.messageExpression != nil {
		text, cost, failed := v.messageExpression.Evaluate(shown)
		if err := m.Spend(nil, cost); err != nil {
			return "", err
		}
		if text, ok := text.(string); ok && failed == nil && clean(text) != "" {
			return clean(text), nil
		}
	}
	return clean(v.message), nil
}

// clean returns a text on one line without control characters, truncated: it is shown on
// terminals.
func clean(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
	return shorten(strings.Join(strings.Fields(printable), " "))
}

func shorten(text string) string {
	const most = 1024
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
