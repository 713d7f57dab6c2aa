package ratelimit

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Read reads a limit from decoded JSON: maps, lists, strings, booleans, int64 and
// float64. It is strict, and tells all that is wrong, each at its place below at;
// a limit with anything wrong is nil. Units, defaults and operators are those of
// the RFC, paths, headers, query parameters and hostnames those of Gateway API,
// whose defaults are filled in.
func Read(at *field.Path, name string, value any) (*Limit, field.ErrorList) {
	return NewBudget().Read(at, name, value)
}

func (r *reader) limit(at *field.Path, name string, value any) *Limit {
	r.name(at, name)
	if list, ok := value.([]any); ok {
		r.addError(field.TypeInvalid(at, typeName(list), "a limit is an object, not a list: take the dash away before its first field"))
		return nil
	}
	fields, ok := r.object(at, value, limitFields)
	if !ok {
		return nil
	}
	return &Limit{
		Name:     name,
		Rates:    r.rates(at.Child("rates"), fields["rates"]),
		Counters: r.counters(at.Child("counters"), fields["counters"]),
		When:     r.conditions(at.Child("when"), fields["when"]),
		Triggers: r.triggers(at.Child("triggers"), fields["triggers"]),
	}
}

// name checks what the limit is called: it becomes a part of the descriptor that
// tells it apart.
func (r *reader) name(at *field.Path, name string) {
	const maxLimitNameLength = 253
	switch {
	case strings.TrimSpace(name) == "":
		r.addError(field.Invalid(at, name, "a limit needs a name: write it before the colon"))
	case len(name) > maxLimitNameLength:
		r.addError(field.TooLong(at, "", maxLimitNameLength))
	case strings.ContainsFunc(name, unicode.IsControl):
		r.addError(field.Invalid(at, name, "the name of a limit has no control characters: take them away"))
	}
}

func (r *reader) rates(at *field.Path, value any) []Rate {
	before := len(r.errs)
	items := r.list(at, value, maxItems)
	if len(items) == 0 && len(r.errs) == before {
		r.addError(field.Required(at, "a limit needs at least one rate: write rates: [{limit: 5, unit: second}]"))
	}
	var rates []Rate
	for i, item := range items {
		if rate, ok := r.rate(at.Index(i), item); ok {
			rates = append(rates, rate)
		}
	}
	return rates
}

func (r *reader) rate(at *field.Path, value any) (Rate, bool) {
	fields, ok := r.object(at, value, rateFields)
	if !ok {
		return Rate{}, false
	}
	rate := Rate{Duration: 1}
	if fields["limit"] == nil {
		r.addError(field.Required(at.Child("limit"), "write the most requests, at least 1"))
	} else {
		rate.Limit, _ = r.positive(at.Child("limit"), fields["limit"])
	}
	known := true
	if fields["duration"] != nil {
		rate.Duration, known = r.positive(at.Child("duration"), fields["duration"])
	}
	if rate.Unit, ok = oneOf(r, at.Child("unit"), fields["unit"], Units, ""); ok && known {
		r.checkOverflow(at.Child("duration"), rate)
	}
	return rate, true
}

// fits checks that the span has a number of seconds.
func (r *reader) checkOverflow(at *field.Path, rate Rate) {
	if largest := math.MaxInt64 / secondsOf[rate.Unit]; rate.Duration > largest {
		r.addError(field.Invalid(at, rate.Duration,
			fmt.Sprintf("overflows seconds in 64 bits: at most %d where the unit is %s", largest, rate.Unit)))
	}
}

func (r *reader) counters(at *field.Path, value any) []string {
	items := r.list(at, value, maxItems)
	var counters []string
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		counter, ok := r.counter(at.Index(i), item)
		if !ok {
			continue
		}
		if seen[counter] {
			r.addError(field.Duplicate(at.Index(i), counter))
		}
		seen[counter] = true
		counters = append(counters, counter)
	}
	return counters
}

func (r *reader) counter(at *field.Path, value any) (string, bool) {
	if _, ok := value.(map[string]any); ok {
		r.addError(field.TypeInvalid(at, typeName(value), "a counter is a selector: write it alone, such as auth.identity.username"))
		return "", false
	}
	selector, ok := r.text(at, value, maxTextLength)
	if !ok {
		return "", false
	}
	if err := CheckCounter(selector); err != nil {
		r.addError(field.Invalid(at, truncate(selector), err.Error()))
		return "", false
	}
	return selector, true
}
