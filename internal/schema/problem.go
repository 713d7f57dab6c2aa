package schema

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// problems converts errors, each message once, with the greatest excess.
func problems(errs field.ErrorList, showValues bool) []Problem {
	var out []Problem
	for _, err := range errs {
		if !showValues {
			err = withoutValues(err)
		}
		out = append(out, problem(err))
	}
	slices.SortFunc(out, compareProblems)
	return slices.CompactFunc(out, func(a, b Problem) bool { return a.Message == b.Message })
}

// compareProblems orders by message, then from the greatest excess down.
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
		p.Excess = -count // too few
	}
	return p
}

// withoutValues returns an error whose text depends on no value: not on a duplicate,
// one of the wrong type or format, or one that CEL cannot evaluate.
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

// alternatives matches the number of alternatives in the message for a oneOf.
var alternatives = regexp.MustCompile(`Found (\d+) valid alternatives`)

// detail returns the message of an error without the value, and the count in it.
func detail(err *field.Error) (text string, count int64) {
	switch {
	case err.Type == field.ErrorTypeDuplicate:
		return err.ErrorBody(), 0 // with the value, if it may be shown
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
