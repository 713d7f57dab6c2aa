package constraint

import (
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// quantities are the readings of a value as a number, as a quantity, and as a duration
// in nanoseconds; nil where it is not one. 5m is a quantity and a duration.
type quantities struct{ number, quantity, duration *big.Rat }

// maxQuantityLength bounds the text of a value. Exponents have at most three digits:
// otherwise a few bytes could stand for an extremely large number.
const maxQuantityLength = 64

var (
	numberText   = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)
	quantityText = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i)$`)
)

// quantitiesOf parses a decoded JSON value.
func quantitiesOf(v any) quantities {
	switch v := v.(type) {
	case int64:
		n := new(big.Rat).SetInt64(v)
		return quantities{number: n, quantity: n}
	case float64:
		n := new(big.Rat).SetFloat64(v)
		return quantities{number: n, quantity: n}
	case string:
		return parseQuantities(v)
	default:
		return quantities{}
	}
}

func parseQuantities(text string) (m quantities) {
	if len(text) > maxQuantityLength {
		return quantities{}
	}
	if numberText.MatchString(text) {
		m.number, _ = new(big.Rat).SetString(text)
		m.quantity = m.number
	}
	if quantityText.MatchString(text) {
		if q, err := resource.ParseQuantity(text); err == nil {
			d := q.AsDec()
			m.quantity = new(big.Rat).SetInt(d.UnscaledBig())
			m.quantity.Mul(m.quantity, powerOfTen(-int(d.Scale())))
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		m.duration = new(big.Rat).SetInt64(int64(d))
	}
	return m
}

// powerOfTen returns the n-th power of 10. n is small, since texts are short.
func powerOfTen(n int) *big.Rat {
	out := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
	if n < 0 {
		out.Inv(out)
	}
	return out
}

// bounds are the allowed minimum and maximum, both as numbers, quantities or durations.
type bounds struct {
	min, max         *big.Rat
	minText, maxText string
	of               func(quantities) *big.Rat
}

// sorts are the readings of bounds in order of precedence: a plain number is a quantity,
// too, and 0 is a duration.
var sorts = []func(quantities) *big.Rat{
	func(m quantities) *big.Rat { return m.number },
	func(m quantities) *big.Rat { return m.duration },
	func(m quantities) *big.Rat { return m.quantity },
}

var (
	errInvalidBound = errors.New(`must be a number (1000, "0.5"), a quantity ("1Gi") or a duration ("30s")`)
	errTwoSorts     = errors.New("min and max must both be numbers, quantities or durations")
	errEmptyRange   = errors.New("must not be greater than max")
)

// boundsOf parses bounds, of which one may be nil.
func boundsOf(least, greatest *intstr.IntOrString) (b *bounds, ofMin, ofMax error) {
	minimum, maximum := boundOf(least), boundOf(greatest)
	if least != nil && minimum == (quantities{}) {
		ofMin = errInvalidBound
	}
	if greatest != nil && maximum == (quantities{}) {
		ofMax = errInvalidBound
	}
	if ofMin != nil || ofMax != nil {
		return nil, ofMin, ofMax
	}
	for _, of := range sorts {
		b := &bounds{min: of(minimum), max: of(maximum), minText: textOf(least), maxText: textOf(greatest), of: of}
		if (b.min == nil) != (least == nil) || (b.max == nil) != (greatest == nil) {
			continue
		}
		if b.min != nil && b.max != nil && b.min.Cmp(b.max) > 0 {
			return nil, errEmptyRange, nil
		}
		return b, nil, nil
	}
	return nil, nil, errTwoSorts
}

func boundOf(b *intstr.IntOrString) quantities {
	switch {
	case b == nil:
		return quantities{}
	case b.Type == intstr.Int:
		return quantitiesOf(int64(b.IntVal))
	default:
		return parseQuantities(b.StrVal)
	}
}

func textOf(b *intstr.IntOrString) string {
	if b == nil {
		return ""
	}
	if b.Type == intstr.Int {
		return strconv.Itoa(int(b.IntVal))
	}
	return b.StrVal
}
