package constraint

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/cel"
)

// Unmet is a requirement of a constraint that an effective policy does not meet.
type Unmet struct {
	// At is the field path in the constraint: spec.validations[0], spec.rules[1].max.
	At string
	// Rule is the address in the effective spec of a rule, empty for a validation.
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

// maxValues is the number of values that a message names.
const maxValues = 3

// violations are the values that do not meet a rule, by requirement.
type violations struct {
	shown         func() *cel.Variables // PathInput.Shown
	byRequirement map[string]*violation
}

// requirements of a rule, in the order of messages.
var requirements = []string{"required", "min", "max", "enum", "pattern"}

type violation struct {
	texts  []string // the first ones
	beyond []*big.Rat
}

func (vs *violations) add(requirement, at, what string, beyond *big.Rat) {
	if vs.byRequirement == nil {
		vs.byRequirement = make(map[string]*violation)
	}
	if vs.byRequirement[requirement] == nil {
		vs.byRequirement[requirement] = &violation{}
	}
	one := vs.byRequirement[requirement]
	if len(one.texts) < maxValues {
		one.texts = append(one.texts, at+" "+what)
	}
	one.beyond = append(one.beyond, beyond)
}

// describe returns the start of a message about a value: "is VALUE, " and the joint, or
// only a verb if the value must not be shown.
func (vs *violations) describe(v match, joint string) string {
	shown := v.at.in(vs.shown().Effective())
	switch {
	case shown != nil && !cel.HasOpaque(shown):
		return "is " + compact(shown) + ", " + strings.TrimPrefix(joint, "is ")
	case joint == "is ":
		return joint
	default:
		return ""
	}
}

// unmet returns the requirements of a rule that are not met.
func (vs *violations) unmet(r *rule) []Unmet {
	var out []Unmet
	for _, requirement := range requirements {
		one := vs.byRequirement[requirement]
		if one == nil {
			continue
		}
		slices.SortFunc(one.beyond, func(x, y *big.Rat) int { return compareBeyond(y, x) })
		message := clean(r.message)
		if message == "" {
			message = strings.Join(one.texts, ", ")
			if more := len(one.beyond) - len(one.texts); more > 0 {
				message += fmt.Sprintf(", and %d more", more)
			}
		}
		out = append(out, Unmet{At: r.at + "." + requirement, Rule: r.text, Message: message, Beyond: one.beyond})
	}
	return out
}
