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
		out.Undecided = append(out.Undecided, v.at)
		return nil
	}
	shown := on.Shown()
	u := Unmet{At: v.at}
	var err error
	if u.Message, err = v.text(shown, failed == nil, m); err != nil {
		return err
	}
	if failed != nil {
		u.failure = evaluationFailed
		if cel.MissesKey(failed) {
			u.failure = missingKey
		}
		why, err := v.failure(shown, failed, m)
		if err != nil {
			return err
		}
		u.Message += ": it cannot be evaluated" + why
	}
	out.Unmet = append(out.Unmet, u)
	return nil
}

// failure returns why an evaluation failed. CEL errors quote values: the reason is empty
// unless evaluating what is shown fails with the same error.
func (v *validation) failure(shown *cel.Variables, failed error, m merge.Meter) (string, error) {
	_, cost, again := v.expression.Evaluate(shown)
	if err := m.Spend(nil, cost); err != nil {
		return "", err
	}
	if again == nil || again.Error() != failed.Error() {
		return "", nil
	}
	return ": " + clean(failed.Error()), nil
}

// text returns the message: that of the author if there is one, else the expression, and
// the values that it read if it is false.
func (v *validation) text(shown *cel.Variables, isFalse bool, m merge.Meter) (string, error) {
	if v.messageExpression != nil {
		text, cost, failed := v.messageExpression.Evaluate(shown)
		if err := m.Spend(nil, cost); err != nil {
			return "", err
		}
		if text, ok := text.(string); ok && failed == nil && clean(text) != "" {
			return clean(text), nil
		}
	}
	if v.message != "" {
		return clean(v.message), nil
	}
	text := clean(v.expression.String()) + " is not true"
	if !isFalse {
		return text, nil
	}
	values, cost := v.expression.Values(shown)
	var texts []string
	for _, r := range values[:min(len(values), maxValues)] {
		texts = append(texts, r.Path+" is "+compact(r.Value))
	}
	if len(texts) > 0 {
		text += ": " + listed(texts, len(values))
	}
	return text, m.Spend(nil, cost)
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
