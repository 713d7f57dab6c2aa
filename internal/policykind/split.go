package policykind

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/merge"
)

// splitter takes the content of a block apart into rules.
type splitter struct {
	kind  *Kind
	rules []merge.Rule
	errs  field.ErrorList
}

// walk goes down while some pattern goes on; live are those that match so far.
func (s *splitter) walk(at *field.Path, key merge.Key, value any, depth int, live []address) {
	content, isMap := value.(map[string]any)
	switch {
	case depth > 0 && s.kind.leaves:
		s.leaf(key, value, depth)
		return
	case depth > 0 && ends(live, depth):
		s.rules = append(s.rules, merge.Rule{Key: key, Value: value})
		return
	case value == nil:
		return // an absent container
	case !isMap:
		s.errs = append(s.errs, field.TypeInvalid(at, typeName(value), "must be a map of rules by name"))
		return
	}
	for name, child := range content {
		s.walk(at.Child(name), key.Child(name), child, depth+1, matching(live, depth, name))
	}
}

// leaf goes down to the leaves, or to a map that is one value.
func (s *splitter) leaf(key merge.Key, value any, depth int) {
	if items := s.items(key, value); items != nil {
		value = items
	}
	content, isMap := value.(map[string]any)
	if !isMap || slices.ContainsFunc(s.kind.whole, func(p address) bool { return p.is(key) }) {
		s.rules = append(s.rules, merge.Rule{Key: key, Value: value})
		return
	}
	if len(content) == 0 {
		s.rules = append(s.rules, merge.Rule{Key: key, Value: content, Hollow: true})
	}
	for name, child := range content {
		s.leaf(key.Child(name), child, depth+1)
	}
}

// items takes a list apart whose items are told apart by a key. A list that
// lacks the key of an item, or has one twice, or is empty, is one value.
func (s *splitter) items(key merge.Key, value any) map[string]any {
	list, ok := value.([]any)
	i := slices.IndexFunc(s.kind.lists, func(l keyedList) bool { return l.at.is(key) })
	if !ok || i < 0 || len(list) == 0 {
		return nil
	}
	out := make(map[string]any, len(list))
	for _, entry := range list {
		item, _ := entry.(map[string]any)
		name, ok := item[s.kind.lists[i].key].(string)
		if _, twice := out[name]; !ok || twice {
			return nil
		}
		out[name] = item
	}
	return out
}

// ends reports whether a rule ends here: a pattern does, or none goes on.
func ends(live []address, depth int) bool {
	return len(live) == 0 || slices.ContainsFunc(live, func(p address) bool { return len(p) == depth })
}

// matching returns the patterns that go on with a segment.
func matching(live []address, depth int, segment string) []address {
	var out []address
	for _, p := range live {
		if len(p) > depth && (p[depth] == "*" || p[depth] == segment) {
			out = append(out, p)
		}
	}
	return out
}

// FieldRules returns the rules that a route's own value of a field stands for,
// none where it is unset.
func (k *Kind) FieldRules(f Field, value any) []merge.Rule {
	if value == nil {
		return nil
	}
	if !k.leaves {
		return []merge.Rule{{Key: f.Rule, Value: value}}
	}
	split := splitter{kind: k}
	split.leaf(f.Rule, value, 1)
	return split.rules
}
