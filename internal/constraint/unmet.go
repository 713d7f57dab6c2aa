package constraint

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/cel"
)

// Unmet is a demand of a constraint that an effective policy does not meet.
type Unmet struct {
	// At is the demand's address in the constraint: spec.validations[0],
	// spec.rules[1].max.
	At string
	// Rule is the address in the effective spec that a rule is about, empty for
	// a validation.
	Rule string
	// Message says what is wrong.
	Message string
	// Beyond has an entry for each value that does not meet a rule, the worst
	// first: how far it is from the bound, or nil where that is no number.
	Beyond []*big.Rat

	failure failure
}

// failure is why a validation is not met, from the worst on.
type failure uint8

const (
	notMet           failure = iota // it was evaluated
	evaluationFailed                // it cannot be
	missingKey                      // it names a key that is not there: maybe nothing is
)

// Worse reports whether a demand that was not met before is broken by more
// values now, or by values further from the bound. A validation gets worse where
// it could not be evaluated before: one that reads a key without asking for it
// is never met on a path without a policy, and any policy could else go in.
func (u Unmet) Worse(before Unmet) bool {
	if u.failure < before.failure || len(u.Beyond) > len(before.Beyond) {
		return true
	}
	for i, is := range u.Beyond {
		if compareBeyond(is, before.Beyond[i]) > 0 {
			return true
		}
	}
	return false
}

// compareBeyond orders distances; what is no number is furthest.
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

// mostTold is how many values that do not meet a rule a message names.
const maxValues = 3

// breaches are the values that do not meet a rule, by demand.
type violations struct {
	shown         func() *cel.Variables // as that of a Sight
	byRequirement map[string]*violation
}

// demands of a rule, in the order in which they are told.
var requirements = []string{"required", "min", "max", "enum", "pattern"}

type violation struct {
	texts  []string // the first ones
	beyond []*big.Rat
}

func (b *violations) add(requirement, at, what string, beyond *big.Rat) {
	if b.byRequirement == nil {
		b.byRequirement = make(map[string]*violation)
	}
	if b.byRequirement[requirement] == nil {
		b.byRequirement[requirement] = &violation{}
	}
	one := b.byRequirement[requirement]
	if len(one.texts) < maxValues {
		one.texts = append(one.texts, at+" "+what)
	}
	one.beyond = append(one.beyond, beyond)
}

// is begins what is said of a value: by the value, if it may be quoted, and what
// joins the rest to it; else by a verb alone.
func (b *violations) describe(v match, joint string) string {
	shown := v.at.in(b.shown().Effective())
	switch {
	case shown != nil && !cel.HasOpaque(shown):
		return "is " + compact(shown) + ", " + strings.TrimPrefix(joint, "is ")
	case joint == "is ":
		return joint
	default:
		return ""
	}
}

// unmet returns what is not met of a rule, by demand.
func (b *violations) unmet(r *rule) []Unmet {
	var out []Unmet
	for _, requirement := range requirements {
		one := b.byRequirement[requirement]
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
