package printers

import (
	"cmp"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// valueOf returns the value of a rule of an effective policy, nil if there is none: of a kind
// whose policies are collected in a list, the spec of the policy.
func valueOf(item api.EffectivePolicy, r api.RuleOrigin) any {
	specs, _ := item.Spec.([]any)
	switch {
	case r.Value != nil:
		return r.Value
	case r.Item != nil && *r.Item < len(specs):
		return specs[*r.Item]
	default:
		return valueAt(item, r.Rule)
	}
}

// valueAt returns the value in the spec at the key of a rule.
func valueAt(item api.EffectivePolicy, rule string) any {
	key, err := merge.ParseKey(rule)
	if err != nil {
		return nil
	}
	at := item.Spec
	segments := key.Segments()
	for i, segment := range segments {
		switch value := at.(type) {
		case map[string]any:
			at = value[segment]
		case []any:
			at = itemOf(value, keysBelow(item.Rules, segments[:i]), segment)
		default:
			return nil
		}
	}
	return at
}

// itemOf returns the item of a keyed list, which is in the order of the keys; nil if they
// do not fit.
func itemOf(list []any, keys []string, key string) any {
	if i := slices.Index(keys, key); i >= 0 && len(keys) == len(list) {
		return list[i]
	}
	return nil
}

// keysBelow returns the next segments of the rules below a prefix, sorted.
func keysBelow(rules []api.RuleOrigin, prefix []string) []string {
	var out []string
	for _, r := range rules {
		key, err := merge.ParseKey(r.Rule)
		if segments := key.Segments(); err == nil && len(segments) > len(prefix) && slices.Equal(segments[:len(prefix)], prefix) {
			out = append(out, segments[len(prefix)])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// byPath returns effective policies sorted by path, then policy kind.
func byPath(items []api.EffectivePolicy) []api.EffectivePolicy {
	out := slices.Clone(items)
	slices.SortStableFunc(out, func(a, b api.EffectivePolicy) int {
		return cmp.Or(api.ComparePaths(a.Path, b.Path), api.ComparePolicyKinds(a.PolicyKind, b.PolicyKind))
	})
	return out
}

// redacted stands for a value that the user is not allowed to read.
const redacted = "(redacted)"

// shown returns a value in at most that many characters, or that it is redacted.
func shown(value any, hidden bool, most int) string {
	if hidden {
		return redacted
	}
	return Cut(Compact(value), most)
}
