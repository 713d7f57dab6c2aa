package ratelimit

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Read reads a limit from decoded JSON: maps, lists, strings, booleans, int64 and
// float64. It is strict, and returns all errors, with field paths below at; the limit
// is nil if there are any. Units, defaults and operators are those of the RFC. Paths,
// headers, query parameters and hostnames are those of Gateway API, with its defaults.
func Read(at *field.Path, name string, value any) (*Limit, field.ErrorList) {
	limit, _, errs := new(Budget).Read(at, name, value)
	return limit, errs
}

// Read reads a limit as the function Read does, charges it to the budget, and returns it
// as the function Defaulted does, too.
func (b *Budget) Read(at *field.Path, name string, value any) (limit *Limit, defaulted any, errs field.ErrorList) {
	r := &reader{budget: b}
	defaulted = Defaulted(value)
	if limit = r.limit(at, name, defaulted); len(r.errs) > 0 {
		return nil, defaulted, r.errs
	}
	return limit, defaulted, nil
}

func (r *reader) limit(at *field.Path, name string, value any) *Limit {
	r.name(at, name)
	if _, ok := value.([]any); ok {
		r.addError(field.TypeInvalid(at, typeName(value), "must be an object, not a list; remove the dash before its first field"))
		return nil
	}
	fields, ok := r.object(at, value, limitFields)
	if !ok {
		return nil
	}
	return &Limit{
		Name:     name,
		Rates:    r.rates(at.Child("rates"), fields["rates"]),
		Counters: listOf(r, at.Child("counters"), fields["counters"], maxItems, r.distinct(r.counter)),
		When:     listOf(r, at.Child("when"), fields["when"], maxItems, r.condition),
		Triggers: listOf(r, at.Child("triggers"), fields["triggers"], maxItems, r.trigger),
	}
}

// name validates the name of the limit, which becomes a part of its descriptor.
func (r *reader) name(at *field.Path, name string) {
	const maxLimitNameLength = 253
	switch {
	case strings.TrimSpace(name) == "":
		r.addError(field.Invalid(at, name, "the name of a limit must not be empty"))
	case len(name) > maxLimitNameLength:
		r.addError(field.TooLong(at, "", maxLimitNameLength))
	case strings.ContainsFunc(name, unicode.IsControl):
		r.addError(field.Invalid(at, name, "the name of a limit must not contain control characters"))
	}
}

func (r *reader) rates(at *field.Path, value any) []Rate {
	before := len(r.errs)
	rates := listOf(r, at, value, maxItems, r.rate)
	if len(rates) == 0 && len(r.errs) == before {
		r.addError(field.Required(at, "set at least one rate, such as rates: [{limit: 5, unit: second}]"))
	}
	return rates
}

func (r *reader) rate(at *field.Path, value any) (rate Rate) {
	fields, ok := r.object(at, value, rateFields)
	if !ok {
		return rate
	}
	if fields["limit"] == nil {
		r.addError(field.Required(at.Child("limit"), "set the maximum number of requests, at least 1"))
	} else {
		rate.Limit = r.positive(at.Child("limit"), fields["limit"])
	}
	rate.Duration = r.positive(at.Child("duration"), fields["duration"])
	rate.Unit = oneOf(r, at.Child("unit"), fields["unit"], Units)
	if seconds := secondsOf[rate.Unit]; seconds > 0 && rate.Duration > math.MaxInt64/seconds {
		r.addError(field.Invalid(at.Child("duration"), rate.Duration,
			fmt.Sprintf("must be at most %d for unit %s, so that the seconds fit in 64 bits", math.MaxInt64/seconds, rate.Unit)))
	}
	return rate
}

func (r *reader) counter(at *field.Path, value any) string {
	if _, ok := value.(map[string]any); ok {
		r.addError(field.TypeInvalid(at, typeName(value), "must be a selector, such as auth.identity.username"))
		return ""
	}
	return r.selector(at, value, CheckCounter)
}

func (r *reader) selector(at *field.Path, value any, check func(string) error) string {
	selector, ok := r.text(at, value, maxTextLength)
	if !ok {
		return ""
	}
	if err := check(selector); err != nil {
		r.addError(field.Invalid(at, truncate(selector), err.Error()))
		return ""
	}
	return selector
}

func (r *reader) condition(at *field.Path, value any) (c Condition) {
	fields, ok := r.object(at, value, conditionFields)
	if !ok {
		return c
	}
	if fields["selector"] == nil {
		r.addError(field.Required(at.Child("selector"), "set a selector, such as auth.identity.username"))
	} else {
		c.Selector = r.selector(at.Child("selector"), fields["selector"], CheckCondition)
	}
	if c.Operator = oneOf(r, at.Child("operator"), fields["operator"], Operators); c.Operator != "" {
		c.Value = r.operand(at.Child("value"), c.Operator, fields["value"])
	}
	return c
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

func (r *reader) trigger(at *field.Path, value any) (trigger Trigger) {
	before := len(r.errs)
	fields, ok := r.object(at, value, triggerObjectFields)
	if !ok {
		return trigger
	}
	trigger.Matches = listOf(r, at.Child("matches"), fields["matches"], maxItems, r.match)
	trigger.Hostnames = listOf(r, at.Child("hostnames"), fields["hostnames"], maxItems, r.distinct(r.hostname))
	if len(trigger.Matches) == 0 && len(trigger.Hostnames) == 0 && len(r.errs) == before {
		r.addError(field.Required(at, "set matches or hostnames, or remove the trigger to bind to every rule"))
	}
	return trigger
}
