package constraint

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
)

// Unmet is a requirement of a constraint that an effective policy does not meet.
type Unmet struct {
	// At is the field path in the constraint: spec.validations[0], spec.rules[1].max.
	At string
	// Rule is the path of a rule in the effective spec, empty for a validation.
	Rule string
	// Message says what is wrong.
	Message string
	// Beyond has an entry for each value that does not meet a rule, the worst first:
	// its distance from the bound, nil if that is not a number.
	Beyond []*big.Rat

	failure failure
}

// failure is why a validation is not met, the worst first.
type failure uint8

const (
	notMet           failure = iota // the expression is false
	evaluationFailed                // the expression cannot be evaluated
	missingKey                      // a key does not exist: possibly there is no policy
)

// Worse reports whether a requirement that was not met before is violated by more values
// now, or by values further from the bound. A validation gets worse if it could not be
// evaluated before: one that reads a key without testing its presence is never met on a
// path without a policy, and would otherwise allow any policy there.
func (u Unmet) Worse(before Unmet) bool {
	if u.failure < before.failure || len(u.Beyond) > len(before.Beyond) {
		return true
	}
	for i, distance := range u.Beyond {
		if compareBeyond(distance, before.Beyond[i]) > 0 {
			return true
		}
	}
	return false
}

// compareBeyond orders distances; nil is the furthest.
func compareBeyond(a, b *big.Rat) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Cmp(b)
	}
}

// violation is a value that does not meet a requirement.
type violation struct {
	at     place
	fault  string   // what is wrong with it
	beyond *big.Rat // nil if that is not a number
}

// add adds a requirement of a rule, if there are values that do not meet it.
func (out *Result) add(r *rule, name string, all []violation, shown func() *cel.Variables) {
	if len(all) == 0 {
		return
	}
	u := Unmet{At: r.at + "." + name, Rule: r.path.String(), Message: r.message}
	if u.Message == "" {
		spec := shown().Effective()
		var texts []string
		for _, v := range all[:min(len(all), maxValues)] {
			texts = append(texts, v.describe(spec))
		}
		u.Message = strings.Join(texts, ", ") + api.More(", and ", len(all)-len(texts), "")
	}
	for _, v := range all {
		u.Beyond = append(u.Beyond, v.beyond)
	}
	slices.SortFunc(u.Beyond, func(x, y *big.Rat) int { return compareBeyond(y, x) })
	out.Unmet = append(out.Unmet, u)
}

// describe says what is wrong with a value, and quotes it if it is shown.
func (v *violation) describe(shown any) string {
	text := v.at.String() + " "
	if held := v.at.in(shown); held != nil && !cel.HasOpaque(held) {
		text += "is " + compact(held) + ", "
		if rest, ok := strings.CutPrefix(v.fault, "is "); ok {
			return text + rest
		}
		text += "which "
	}
	return text + v.fault
}

// compact returns a value as JSON on one line, truncated.
func compact(v any) string {
	const most = 128
	data, err := json.Marshal(v)
	if err != nil {
		return "a value that cannot be shown"
	}
	if len(data) > most {
		return strings.ToValidUTF8(string(data[:most]), "") + "…"
	}
	return string(data)
}
