package constraint

import (
	"encoding/json"
	"fmt"
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

// rule is a compiled rule, which requires something of single values.
type rule struct {
	at       string // field path in the constraint
	path     address
	text     string // of path
	required bool
	bounds   *bounds
	enum     []any
	hasEnum  bool
	pattern  *regexp.Regexp
	message  string
}

// maxPattern bounds the length of a regular expression, in bytes.
const maxPattern = 1024

func compileRule(r *api.ConstraintRule, at *field.Path) (out rule, errs field.ErrorList) {
	out = rule{at: at.String(), required: r.Required, message: r.Message}
	var err error
	if out.path, err = parseAddress(r.Path); err != nil {
		errs = append(errs, field.Invalid(at.Child("path"), r.Path, err.Error()))
	}
	out.text = out.path.String()
	if !r.Required && r.Min == nil && r.Max == nil && r.Enum == nil && r.Pattern == "" {
		errs = append(errs, field.Required(at, "must set at least one of min, max, enum, pattern, required"))
	}
	errs = append(errs, out.bound(r, at)...)
	for i := range r.Enum {
		var v any
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(r.Enum[i].Raw, &v); err != nil {
			errs = append(errs, field.Invalid(at.Child("enum").Index(i), string(r.Enum[i].Raw), err.Error()))
		}
		out.enum = append(out.enum, v)
	}
	if out.hasEnum = r.Enum != nil; out.hasEnum && len(r.Enum) == 0 {
		errs = append(errs, field.Required(at.Child("enum"), "must list the allowed values"))
	}
	return out, append(errs, out.match(r.Pattern, at.Child("pattern"))...)
}

func (r *rule) bound(from *api.ConstraintRule, at *field.Path) (errs field.ErrorList) {
	if from.Min == nil && from.Max == nil {
		return nil
	}
	var ofMin, ofMax error
	if r.bounds, ofMin, ofMax = boundsOf(from.Min, from.Max); ofMin != nil {
		errs = append(errs, field.Invalid(at.Child("min"), textOf(from.Min), ofMin.Error()))
	}
	if ofMax != nil {
		errs = append(errs, field.Invalid(at.Child("max"), textOf(from.Max), ofMax.Error()))
	}
	return errs
}

func (r *rule) match(text string, at *field.Path) field.ErrorList {
	switch {
	case text == "":
		return nil
	case len(text) > maxPattern:
		return field.ErrorList{field.TooLong(at, text[:20]+"…", maxPattern)}
	case pattern.Cost(text) > pattern.MaxCost:
		return field.ErrorList{field.Invalid(at, text, "takes too long to compile; "+pattern.Advice)}
	}
	var err error
	if r.pattern, err = regexp.Compile(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, "must be a regular expression in RE2 syntax: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))}
	}
	return nil
}

// maxPatternCost bounds the total cost of the patterns of a constraint: that of 64 plain
// ones of maximum length.
const maxPatternCost = 64 * maxPattern

// checkPatterns rejects patterns that take too long to compile together.
func checkPatterns(rules []api.ConstraintRule, at *field.Path) field.ErrorList {
	cost := 0
	for i := range rules {
		if cost += pattern.Cost(rules[i].Pattern); cost > maxPatternCost {
			return field.ErrorList{field.Invalid(at.Index(i).Child("pattern"), rules[i].Pattern,
				"all patterns of a constraint together take too long to compile; "+pattern.Advice)}
		}
	}
	return nil
}

// evaluate adds the requirements that a spec does not meet to a result, and returns the
// number of values that it visited. Messages do not quote values that are opaque in what
// is shown.
func (r *rule) evaluate(spec any, shown func() *cel.Variables, out *Result) (cost uint64) {
	var f finder
	b := violations{shown: shown}
	if r.required {
		r.checkRequired(&f, spec, &b)
	}
	for _, v := range r.values(&f, spec) {
		if r.bounds != nil {
			r.checkBounds(v, &b)
		}
		if r.hasEnum {
			f.visited += uint64(len(r.enum))
			r.checkEnum(v, &b)
		}
		if r.pattern != nil {
			f.visited += r.checkPattern(v, &b)
		}
	}
	if f.opaque {
		out.Undecided = append(out.Undecided, r.at)
	}
	out.Unmet = append(out.Unmet, b.unmet(r)...)
	return f.visited
}

// values returns the values whose content the rule restricts.
func (r *rule) values(f *finder, spec any) []match {
	if r.bounds == nil && !r.hasEnum && r.pattern == nil {
		return nil
	}
	return slices.DeleteFunc(f.at(r.path, match{value: spec}), func(v match) bool { return v.value == cel.Opaque })
}

// checkRequired adds a violation for each object that could have the value and does not,
// or one if there is no such object.
func (r *rule) checkRequired(f *finder, spec any, b *violations) {
	last := len(r.path) - 1
	parents := f.at(r.path[:last], match{value: spec})
	if len(parents) == 0 && !f.opaque { // else an opaque value may have it
		b.add("required", r.text, "is missing", nil)
	}
	above := f.opaque
	for _, p := range parents {
		if p.value == cel.Opaque || len(f.at(r.path[last:], p)) > 0 {
			continue
		}
		at := r.path[last].String()
		if above := p.at.String(); above != "" && at[0] != '[' {
			at = above + "." + at
		} else {
			at = above + at
		}
		b.add("required", at, "is missing", nil)
	}
	f.opaque = above // the presence of an opaque value is sufficient
}

// checkBounds adds a violation for a value that is out of bounds, or cannot be compared
// with them.
func (r *rule) checkBounds(v match, b *violations) {
	n := r.bounds.of(quantitiesOf(v.value))
	if least := r.bounds.min; least != nil {
		switch {
		case n == nil:
			b.add("min", v.at.String(), fmt.Sprintf("%scannot be compared with the minimum of %s", b.describe(v, "which "), r.bounds.minText), nil)
		case n.Cmp(least) < 0:
			b.add("min", v.at.String(), fmt.Sprintf("%sbelow the minimum of %s", b.describe(v, "is "), r.bounds.minText), new(big.Rat).Sub(least, n))
		}
	}
	if greatest := r.bounds.max; greatest != nil {
		switch {
		case n == nil:
			b.add("max", v.at.String(), fmt.Sprintf("%scannot be compared with the maximum of %s", b.describe(v, "which "), r.bounds.maxText), nil)
		case n.Cmp(greatest) > 0:
			b.add("max", v.at.String(), fmt.Sprintf("%sabove the maximum of %s", b.describe(v, "is "), r.bounds.maxText), new(big.Rat).Sub(n, greatest))
		}
	}
}

func (r *rule) checkEnum(v match, b *violations) {
	if !slices.ContainsFunc(r.enum, func(e any) bool { return merge.Equal(e, v.value) }) {
		b.add("enum", v.at.String(), fmt.Sprintf("%snot one of %s", b.describe(v, "is "), compact(r.enum)), nil)
	}
}

// checkPattern adds a violation for a value that does not match the pattern, and returns
// the cost.
func (r *rule) checkPattern(v match, b *violations) uint64 {
	text, ok := v.value.(string)
	if !ok || !r.pattern.MatchString(text) {
		b.add("pattern", v.at.String(), fmt.Sprintf("%sdoes not match %s", b.describe(v, "which "), r.pattern), nil)
	}
	return uint64(len(text)) / 10
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
