package commands

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// findingField returns the field of the written manifest that a finding is about, for
// manifest.Object.Locate; "" for the whole object. old is the manifest before the write,
// nil if there is none or it is not known.
func findingField(f guard.Finding, o, old *manifest.Object, written snapshot.Object) string {
	if f.Field != "" {
		return f.Field
	}
	p, isPolicy := written.(*policykind.Policy)
	var at string
	switch {
	case isPolicy:
		at = policyField(f, o, p)
	case f.Code == api.ReasonNoPath, f.Code == api.ReasonTargetNotFound, f.Code == api.ReasonUnreached:
		at = firstField(o, "spec.parentRefs", "spec.targetRefs", "spec.targetRef")
	}
	if at == "" && old != nil {
		at = changedField(old.Content(), o.Content())
	}
	return at
}

// policyField returns the field of a policy that a finding about it concerns.
func policyField(f guard.Finding, o *manifest.Object, p *policykind.Policy) string {
	switch f.Code { //nolint:exhaustive // the others are about a rule
	case api.ReasonInvalid:
		return invalidField(p.Invalid)
	case api.ReasonTargetNotFound, api.ReasonConflicted, api.ReasonNoPath, api.ReasonUnreached:
		return targetField(o, p.Kind, f.What)
	case api.ReasonUnsetOverride:
		if at := unsetField(o, p.Kind, f.Rule); at != "" {
			return at
		}
	}
	return ruleField(o, p.Kind, f.Rule)
}

// invalidField returns the field of the first field error.
func invalidField(err error) string {
	all := []error{err}
	if list, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		all = list.Errors()
	}
	for _, e := range all {
		if at, ok := errors.AsType[*field.Error](e); ok {
			return at.Field
		}
	}
	return ""
}

// targetField returns the target reference whose name is in a message, else the first
// field with targets.
func targetField(o *manifest.Object, k *policykind.Kind, message string) string {
	for _, name := range slices.Concat(k.Targets.Fields, k.Targets.Selectors) {
		value, found := nested(o, "spec", name)
		if !found {
			continue
		}
		list, _ := value.([]any)
		at, longest := "spec."+name, ""
		for i, item := range list {
			target, _ := item.(map[string]any)
			if called, _ := target["name"].(string); len(called) > len(longest) && hasName(message, called) {
				at, longest = fmt.Sprintf("spec.%s[%d]", name, i), called
			}
		}
		return at
	}
	return ""
}

// hasName reports whether a message has a name of an object, not as a part of another one.
func hasName(message, name string) bool {
	partOfName := func(r rune) bool { return r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for start := 0; ; start++ {
		at := strings.Index(message[start:], name)
		if at < 0 {
			return false
		}
		start += at
		last, _ := utf8.DecodeLastRuneInString(message[:start])
		next, _ := utf8.DecodeRuneInString(message[start+len(name):])
		if !partOfName(last) && !partOfName(next) {
			return true
		}
	}
}

// unsetField returns the entry of a list of unset rules that names a rule.
func unsetField(o *manifest.Object, k *policykind.Kind, rule string) string {
	for _, name := range k.Unset {
		value, _ := nested(o, "spec", name)
		list, _ := value.([]any)
		for i, item := range list {
			text, _ := item.(string)
			if text != "" && (text == rule || strings.HasPrefix(rule, text+".") || strings.HasSuffix(rule, "."+text)) {
				return fmt.Sprintf("spec.%s[%d]", name, i)
			}
		}
	}
	return ""
}

// ruleField returns the field of a rule in a policy: in the block that has most of it. It
// is "" if the policy has nothing of it.
func ruleField(o *manifest.Object, k *policykind.Kind, rule string) string {
	key, err := merge.ParseKey(rule)
	if rule == "" || err != nil {
		return ""
	}
	best, depth := "", 0
	for _, block := range append(slices.Concat(k.Blocks.Overrides, k.Blocks.Defaults), "") {
		base := strings.Trim(strings.Join([]string{"spec", k.Content, block}, "."), ".")
		base = strings.ReplaceAll(base, "..", ".")
		value, _ := nested(o, base)
		if n := depthOf(value, key.Segments()); n > depth {
			best, depth = base+"."+strings.TrimPrefix(rule, "."), n
			if strings.HasPrefix(rule, "[") {
				best = base + rule
			}
		}
	}
	return best
}

// depthOf returns how many of the segments of a path a value has.
func depthOf(value any, segments []string) int {
	for i, s := range segments {
		fields, _ := value.(map[string]any)
		next, found := fields[s]
		if !found {
			return i
		}
		value = next
	}
	return len(segments)
}

// nested returns the value of a field, whose names are joined by dots.
func nested(o *manifest.Object, names ...string) (any, bool) {
	value, found, err := unstructured.NestedFieldNoCopy(o.Content(), strings.Split(strings.Join(names, "."), ".")...)
	return value, found && err == nil
}

// firstField returns the first field that an object has, "" if it has none.
func firstField(o *manifest.Object, names ...string) string {
	for _, name := range names {
		if _, found := nested(o, name); found {
			return name
		}
	}
	return ""
}

// changedField returns the first field that differs between two manifests of an object,
// with those of spec first; "" if only removed fields differ.
func changedField(before, after map[string]any) string {
	order := func(a, b string) int {
		return cmp.Or(-cmp.Compare(btoi(a == "spec"), btoi(b == "spec")), strings.Compare(a, b))
	}
	return changedIn(before, after, order)
}

func changedIn(before, after map[string]any, order func(a, b string) int) string {
	for _, name := range slices.SortedFunc(maps.Keys(after), order) {
		was, is := before[name], after[name]
		if reflect.DeepEqual(was, is) {
			continue
		}
		return strings.TrimSuffix(name+below(was, is), ".")
	}
	return ""
}

// below returns the rest of the path to the first difference of two values.
func below(was, is any) string {
	if a, ok := was.(map[string]any); ok {
		if b, ok := is.(map[string]any); ok {
			if at := changedIn(a, b, strings.Compare); at != "" {
				return "." + at
			}
		}
	}
	a, ok := was.([]any)
	b, isList := is.([]any)
	for i := range b {
		if ok && isList && (i >= len(a) || !reflect.DeepEqual(a[i], b[i])) {
			if i < len(a) {
				return fmt.Sprintf("[%d]%s", i, below(a[i], b[i]))
			}
			return fmt.Sprintf("[%d]", i)
		}
	}
	return ""
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// routeRuleField returns the field of a rule of a route on a path, "" for none.
func routeRuleField(path []api.PathElement) string {
	for _, e := range path {
		if e.Index != nil && strings.HasSuffix(e.Kind, "Rule") {
			return fmt.Sprintf("spec.rules[%d]", *e.Index)
		}
	}
	return ""
}
