package constraint

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/pattern"
	"overrule.dev/overrule/merge"
)

// rule is a compiled rule, which requires something of the values at a path.
type rule struct {
	at           string // field path in the constraint
	path         place
	required     bool
	requirements []requirement
	message      string
}

// requirement is what a rule requires of each value.
type requirement struct {
	name string // of its field: max
	// types are those in the schema of a value that can meet it, nil for any.
	types []string
	cost  uint64 // of evaluating it, beyond that of reading the value
	// fault returns what is wrong with a value, as in "is above the maximum of 100",
	// empty if nothing is, and its distance from the bound, nil if it has none.
	fault func(v any) (text string, beyond *big.Rat)
}

func compileRule(r *api.ConstraintRule, at *field.Path) (out rule, errs field.ErrorList) {
	out = rule{at: at.String(), required: r.Required, message: clean(r.Message)}
	var err error
	if out.path, err = parsePlace(r.Path); err != nil {
		errs = append(errs, field.Invalid(at.Child("path"), r.Path, err.Error()))
	}
	if !r.Required && r.Min == nil && r.Max == nil && r.Enum == nil && r.Pattern == "" {
		errs = append(errs, field.Required(at, "must set at least one of min, max, enum, pattern, required"))
	}
	errs = append(errs, out.addBounds(r, at)...)
	errs = append(errs, out.addEnum(r, at.Child("enum"))...)
	return out, append(errs, out.addPattern(r.Pattern, at.Child("pattern"))...)
}

func (r *rule) addBounds(from *api.ConstraintRule, at *field.Path) field.ErrorList {
	if from.Min == nil && from.Max == nil {
		return nil
	}
	least, greatest, of, errs := boundsOf(from, at)
	if least != nil {
		r.addBound("min", "below the minimum of "+from.Min.String(), of, func(n *big.Rat) *big.Rat { return n.Sub(least, n) })
	}
	if greatest != nil {
		r.addBound("max", "above the maximum of "+from.Max.String(), of, func(n *big.Rat) *big.Rat { return n.Sub(n, greatest) })
	}
	return errs
}

// addBound adds a bound. beyond returns how far a number is out of it, at most 0 for none.
func (r *rule) addBound(name, breach string, of sort, beyond func(*big.Rat) *big.Rat) {
	_, bound, _ := strings.Cut(breach, " ")
	r.add(name, 0, func(v any) (string, *big.Rat) {
		n := of(v)
		if n == nil {
			return "cannot be compared with " + bound, nil
		}
		if n = beyond(n); n.Sign() <= 0 {
			return "", nil
		}
		return "is " + breach, n
	}, "integer", "number", "string")
}

func (r *rule) add(name string, cost int, fault func(any) (string, *big.Rat), types ...string) {
	r.requirements = append(r.requirements, requirement{name, types, uint64(cost), fault}) //nolint:gosec // a length
}

func (r *rule) addEnum(from *api.ConstraintRule, at *field.Path) (errs field.ErrorList) {
	if from.Enum == nil {
		return nil
	}
	if len(from.Enum) == 0 {
		errs = append(errs, field.Required(at, "must list the allowed values"))
	}
	allowed := make([]any, len(from.Enum))
	for i := range allowed {
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(from.Enum[i].Raw, &allowed[i]); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), string(from.Enum[i].Raw), err.Error()))
		}
	}
	text := "is not one of " + compact(allowed)
	r.add("enum", len(allowed), func(v any) (string, *big.Rat) {
		if slices.ContainsFunc(allowed, func(a any) bool { return merge.Equal(a, v) }) {
			return "", nil
		}
		return text, nil
	})
	return errs
}

func (r *rule) addPattern(text string, at *field.Path) field.ErrorList {
	switch {
	case text == "":
		return nil
	case len(text) > maxPattern:
		return field.ErrorList{field.TooLong(at, text[:20]+"…", maxPattern)}
	case pattern.Cost(text) > pattern.MaxCost:
		return field.ErrorList{field.Invalid(at, text, "takes too long to compile; "+pattern.Advice)}
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return field.ErrorList{field.Invalid(at, text, "must be a regular expression in RE2 syntax: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))}
	}
	r.add("pattern", 0, func(v any) (string, *big.Rat) {
		if s, ok := v.(string); ok && expression.MatchString(s) {
			return "", nil
		}
		return "does not match " + text, nil
	}, "string")
	return nil
}

// evaluate adds the requirements that a spec does not meet to a result, and returns the
// number of values that it visited. Messages do not quote values that are opaque in what
// is shown.
func (r *rule) evaluate(spec any, shown func() *cel.Variables, out *Result) (cost uint64) {
	var w walk
	if r.required {
		out.add(r, "required", r.missing(&w, spec), shown)
	}
	for i := range r.requirements {
		q := &r.requirements[i]
		var found []violation
		w.each(spec, nil, r.path, func(v any, at place) {
			if v == cel.Opaque {
				return
			}
			text, _ := v.(string)
			w.visited += q.cost + uint64(len(text))/10
			if fault, beyond := q.fault(v); fault != "" {
				found = append(found, violation{slices.Clone(at), fault, beyond})
			}
		})
		out.add(r, q.name, found, shown)
	}
	out.Undecided = out.Undecided || w.opaque
	return w.visited
}

// missing returns a violation for each object that could have a required value and does
// not, or one if there is no such object.
func (r *rule) missing(w *walk, spec any) (found []violation) {
	const fault = "is missing"
	last, parents := len(r.path)-1, 0
	var below walk // the presence of an opaque value is sufficient
	w.each(spec, nil, r.path[:last], func(parent any, at place) {
		parents++
		has := parent == cel.Opaque
		below.each(parent, at, r.path[last:], func(any, place) { has = true })
		if !has {
			found = append(found, violation{at: append(slices.Clone(at), r.path[last]), fault: fault})
		}
	})
	if parents == 0 && !w.opaque { // else an opaque value may have it
		found = []violation{{at: r.path, fault: fault}}
	}
	w.visited += below.visited
	return found
}
