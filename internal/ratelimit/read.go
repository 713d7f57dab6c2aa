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
	return NewBudget().Read(at, name, value)
}

func (r *reader) limit(at *field.Path, name string, value any) *Limit {
	r.name(at, name)
	if list, ok := value.([]any); ok {
		r.addError(field.TypeInvalid(at, typeName(list), "must be an object, not a list; remove the dash before its first field"))
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
	items := r.list(at, value, maxItems)
	if len(items) == 0 && len(r.errs) == before {
		r.addError(field.Required(at, "set at least one rate, such as rates: [{limit: 5, unit: second}]"))
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
		r.addError(field.Required(at.Child("limit"), "set the maximum number of requests, at least 1"))
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

// checkOverflow validates that the duration in seconds fits into an int64.
func (r *reader) checkOverflow(at *field.Path, rate Rate) {
	if largest := math.MaxInt64 / secondsOf[rate.Unit]; rate.Duration > largest {
		r.addError(field.Invalid(at, rate.Duration,
			fmt.Sprintf("must be at most %d for unit %s, so that the seconds fit in 64 bits", largest, rate.Unit)))
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
		r.addError(field.TypeInvalid(at, typeName(value), "must be a selector, such as auth.identity.username"))
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
