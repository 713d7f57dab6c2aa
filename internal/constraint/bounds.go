package constraint

import (
	"math/big"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
)

var (
	numberText   = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)
	quantityText = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i)$`)
)

// sort reads decoded JSON as a number of a sort, nil if it is none: 5m is a quantity and a
// duration.
type sort func(v any) *big.Rat

// sorts are the sorts of bounds in order of precedence: a plain number is a quantity,
// too, and 0 is a duration.
var sorts = []sort{number, duration, quantity}

func number(v any) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case float64:
		return new(big.Rat).SetFloat64(v)
	case string:
		if len(v) <= maxQuantityLength && numberText.MatchString(v) {
			n, _ := new(big.Rat).SetString(v)
			return n
		}
	}
	return nil
}

func duration(v any) *big.Rat {
	text, _ := v.(string)
	d, err := time.ParseDuration(text)
	if err != nil || len(text) > maxQuantityLength {
		return nil
	}
	return new(big.Rat).SetInt64(int64(d))
}

func quantity(v any) *big.Rat {
	text, _ := v.(string)
	if len(text) > maxQuantityLength || !quantityText.MatchString(text) {
		return number(v)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	n, _ := new(big.Rat).SetString(q.AsDec().String())
	return n
}

// boundsOf parses the bounds of a rule, each nil if it is not set, and returns their sort.
func boundsOf(r *api.ConstraintRule, at *field.Path) (least, greatest *big.Rat, of sort, errs field.ErrorList) {
	lower, upper := boundOf(r.Min), boundOf(r.Max)
	for _, of := range sorts {
		least, greatest = of(lower), of(upper)
		switch {
		case (least == nil) != (r.Min == nil) || (greatest == nil) != (r.Max == nil):
			continue
		case least != nil && greatest != nil && least.Cmp(greatest) > 0:
			errs = append(errs, field.Invalid(at.Child("min"), r.Min.String(), "must not be greater than max"))
		}
		return least, greatest, of, errs
	}
	const advice = `must be a number (1000, "0.5"), a quantity ("1Gi") or a duration ("30s")`
	valid := func(v any) bool { return slices.ContainsFunc(sorts, func(of sort) bool { return of(v) != nil }) }
	if r.Min != nil && !valid(lower) {
		errs = append(errs, field.Invalid(at.Child("min"), r.Min.String(), advice))
	}
	if r.Max != nil && !valid(upper) {
		errs = append(errs, field.Invalid(at.Child("max"), r.Max.String(), advice))
	}
	if errs == nil {
		errs = append(errs, field.Invalid(at.Child("max"), r.Max.String(), "min and max must both be numbers, quantities or durations"))
	}
	return nil, nil, nil, errs
}

// boundOf returns a bound as decoded JSON, nil if it is not set.
func boundOf(b *intstr.IntOrString) any {
	switch {
	case b == nil:
		return nil
	case b.Type == intstr.Int:
		return int64(b.IntVal)
	default:
		return b.StrVal
	}
}
