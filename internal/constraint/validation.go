package constraint

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// validation is a demand in CEL, compiled.
type validation struct {
	at                string // in the constraint
	expression        *cel.Validation
	messageExpression *cel.Message // nil for none
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

// problems are those of an expression, one by one.
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

// evaluate adds what is wrong to a result. A demand that cannot be evaluated is
// not met: else a policy could dodge it by what it leaves out. One that depends
// on an opaque value is undecided. The error is the meter's.
func (v *validation) evaluate(on PathInput, m merge.Meter, out *Result) error {
	met, cost, failed := v.expression.Evaluate(on.Variables)
	if err := m.Spend(nil, cost); err != nil || met {
		return err
	}
	if errors.Is(failed, cel.ErrOpaque) {
		out.Undecided = append(out.Undecided, v.at)
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

// failure says why an evaluation failed. Errors of CEL quote values: the reason is
// given only if what is shown fails for the same one.
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

// text says what is wrong, in the author's words if there are any.
func (v *validation) text(shown *cel.Variables, m merge.Meter) (string, error) {
	if v.messageExpression != nil {
		text, cost, failed := v.messageExpression.Evaluate(shown)
		if err := m.Spend(nil, cost); err != nil {
			return "", err
		}
		if text = clean(text); failed == nil && text != "" {
			return text, nil
		}
	}
	if v.message != "" {
		return clean(v.message), nil
	}
	return fmt.Sprintf("%s is not true", clean(v.expression.String())), nil
}

// clean makes one line of a text, and cuts it where it gets long: it ends on
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
