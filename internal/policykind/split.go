package policykind

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/merge"
)

// splitter splits the content of a block into rules.
type splitter struct {
	kind *Kind
	// wholeLists is set if the lists of the kind are one value each.
	wholeLists bool
	rules      []merge.Rule
	errs       field.ErrorList
}

// walk descends while a pattern continues. patterns are those that match so far.
func (s *splitter) walk(at *field.Path, key merge.Key, value any, depth int, patterns []fieldPath) {
	content, isMap := value.(map[string]any)
	switch {
	case depth > 0 && s.kind.rulesAreLeaves:
		s.walkLeaves(key, value, depth)
		return
	case depth > 0 && ruleEndsAt(patterns, depth):
		s.rules = append(s.rules, merge.Rule{Key: key, Value: value})
		return
	case value == nil:
		return // an absent container
	case !isMap:
		s.errs = append(s.errs, field.TypeInvalid(at, decode.TypeName(value), "must be a map of rules by name"))
		return
	}
	for name, child := range content {
		s.walk(at.Child(name), key.Child(name), child, depth+1, matching(patterns, depth, name))
	}
}

// walkLeaves descends to the leaves, or to a map that is one value.
func (s *splitter) walkLeaves(key merge.Key, value any, depth int) {
	if items := s.keyedItems(key, value); items != nil {
		value = items
	}
	content, isMap := value.(map[string]any)
	if !isMap || slices.ContainsFunc(s.kind.wholeMaps, func(p fieldPath) bool { return p.matches(key) }) {
		s.rules = append(s.rules, merge.Rule{Key: key, Value: value, ItemDepth: s.itemDepth(key)})
		return
	}
	if len(content) == 0 {
		s.rules = append(s.rules, merge.Rule{Key: key, Value: content, EmptyMap: true})
	}
	for name, child := range content {
		s.walkLeaves(key.Child(name), child, depth+1)
	}
}

// itemDepth returns the number of segments of an item of a keyed list of which a leaf is the
// key, 0 if it is none.
func (s *splitter) itemDepth(leaf merge.Key) int {
	if len(s.kind.Unset) == 0 {
		return 0 // it is read by unset alone
	}
	for _, l := range s.kind.lists {
		if slices.Concat(l.path, fieldPath{"*"}, l.key).matches(leaf) {
			return len(l.path) + 1
		}
	}
	return 0
}

// keyedItems returns the items of a keyed list by their key. It is nil for a list
// that is one value: it is not keyed, is empty, or a key is missing or duplicate.
func (s *splitter) keyedItems(key merge.Key, value any) map[string]any {
	list, ok := value.([]any)
	i := slices.IndexFunc(s.kind.lists, func(l keyedList) bool { return l.path.matches(key) })
	if !ok || i < 0 || len(list) == 0 || s.wholeLists {
		return nil
	}
	out := make(map[string]any, len(list))
	for _, entry := range list {
		name := s.kind.lists[i].keyOf(entry)
		if _, twice := out[name]; name == "" || twice {
			return nil
		}
		out[name] = entry
	}
	return out
}

// keyOf returns the key of an item, "" if it has none.
func (l *keyedList) keyOf(item any) string {
	if _, ok := item.(map[string]any); !ok {
		return ""
	}
	value, ok := l.key.lookup(item)
	if !ok || len(l.key) == 0 {
		return l.defaultKey
	}
	switch value.(type) {
	case string, int64, float64:
		return fmt.Sprint(value)
	default:
		return ""
	}
}

// ruleEndsAt reports whether a rule ends at a depth: no pattern continues.
func ruleEndsAt(patterns []fieldPath, depth int) bool {
	return !slices.ContainsFunc(patterns, func(p fieldPath) bool { return len(p) > depth })
}

// matching returns the patterns that continue with a segment.
func matching(patterns []fieldPath, depth int, segment string) []fieldPath {
	var out []fieldPath
	for _, p := range patterns {
		if len(p) > depth && (p[depth] == "*" || p[depth] == segment) {
			out = append(out, p)
		}
	}
	return out
}

// FieldRules returns the rules of a route's own value of a field, none if it is
// unset.
func (k *Kind) FieldRules(f Field, value any) []merge.Rule {
	if value == nil {
		return nil
	}
	if !k.rulesAreLeaves {
		return []merge.Rule{{Key: f.Rule, Value: value}}
	}
	split := splitter{kind: k}
	split.walkLeaves(f.Rule, value, 1)
	return split.rules
}
