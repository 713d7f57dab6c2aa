package schema

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// problems says what is wrong, each thing once, and of two that differ by a
// count the worse.
func problems(errs field.ErrorList, values bool) []Problem {
	var out []Problem
	for _, err := range errs {
		if !values {
			err = withoutValues(err)
		}
		out = append(out, problem(err))
	}
	slices.SortFunc(out, compareProblems)
	return slices.CompactFunc(out, func(a, b Problem) bool { return a.Message == b.Message })
}

// compareProblems orders by message, the worse first.
func compareProblems(a, b Problem) int {
	return cmp.Or(strings.Compare(a.Message, b.Message), cmp.Compare(b.Excess, a.Excess))
}

func problem(err *field.Error) Problem {
	var p Problem
	p.Message, p.Excess = detail(err)
	if err.Field != "<nil>" { // of what is wrong with the whole object
		p.Message = err.Field + ": " + p.Message
	}
	switch count := err.BadValue.(type) {
	case int:
		if err.Type == field.ErrorTypeTooMany {
			p.Excess = int64(count)
		}
	case int64:
		p.Excess = -count // there are too few
	}
	return p
}

// withoutValues returns an error whose text depends on no value: not on one that is
// there twice, that has the wrong type or format, or that CEL cannot evaluate.
func withoutValues(err *field.Error) *field.Error {
	const mustBe = " must be of type "
	out := *err
	if name, rest, ok := strings.Cut(err.Detail, mustBe); ok && err.Type == field.ErrorTypeTypeInvalid {
		rest, _, _ = strings.Cut(rest, ", because: ")
		rest, _, _ = strings.Cut(rest, ": ")
		out.Detail = name + mustBe + rest
	}
	for _, before := range []string{" evaluating rule: ", " signature for rule: "} {
		if i := strings.LastIndex(err.Detail, before); i >= 0 {
			out.Detail = "rule cannot be evaluated: " + err.Detail[i+len(before):]
		}
	}
	if err.Type == field.ErrorTypeDuplicate {
		out.BadValue = field.OmitValueType{}
	}
	return &out
}

// alternatives is how the library counts those of a one-of.
var alternatives = regexp.MustCompile(`Found (\d+) valid alternatives`)

// detail returns what is wrong without the value, and a count that is in it.
func detail(err *field.Error) (text string, count int64) {
	switch {
	case err.Type == field.ErrorTypeDuplicate:
		return err.ErrorBody(), 0 // which one says it all
	case err.Detail == "":
		return strings.ToLower(err.Type.String()), 0
	case err.Type != field.ErrorTypeInvalid && err.Type != field.ErrorTypeTooMany:
		return strings.ToLower(err.Type.String()) + ": " + err.Detail, 0
	}
	if found := alternatives.FindStringSubmatch(err.Detail); found != nil {
		count, _ = strconv.ParseInt(found[1], 10, 64)
		return strings.Replace(err.Detail, found[0], "Found more than one valid alternative", 1), count
	}
	return err.Detail, 0
}
