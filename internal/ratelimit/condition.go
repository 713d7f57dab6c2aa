package ratelimit

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r *reader) conditions(at *field.Path, value any) []Condition {
	items := r.list(at, value, maxItems)
	var conditions []Condition
	for i, item := range items {
		conditions = append(conditions, r.condition(at.Index(i), item))
	}
	return conditions
}

func (r *reader) condition(at *field.Path, value any) Condition {
	fields, ok := r.object(at, value, conditionFields)
	if !ok {
		return Condition{}
	}
	var c Condition
	c.Selector = r.conditionSelector(at.Child("selector"), fields["selector"])
	if c.Operator, ok = oneOf(r, at.Child("operator"), fields["operator"], Operators, ""); ok {
		c.Value = r.operand(at.Child("value"), c.Operator, fields["value"])
	}
	return c
}

func (r *reader) conditionSelector(at *field.Path, value any) string {
	if value == nil {
		r.addError(field.Required(at, "set a selector, such as auth.identity.username"))
		return ""
	}
	selector, ok := r.text(at, value, maxTextLength)
	if !ok {
		return ""
	}
	if err := CheckCondition(selector); err != nil {
		r.addError(field.Invalid(at, truncate(selector), err.Error()))
	}
	return selector
}

// operand reads the value that the operator compares with.
func (r *reader) operand(at *field.Path, operator Operator, value any) string {
	if operator == Exists || operator == NotExists {
		if value != nil {
			r.addError(field.Forbidden(at, "must not be set for operator "+string(operator)))
		}
		return ""
	}
	if value == nil {
		r.addError(field.Required(at, "must be set for operator "+string(operator)))
		return ""
	}
	text, _ := r.text(at, value, maxTextLength)
	if operator == MatchesRE {
		r.pattern(at, text)
	}
	return text
}
