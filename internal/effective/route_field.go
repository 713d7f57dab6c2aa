package effective

import (
	"fmt"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// Member is the part of a route's rule that policies of a kind control together: the
// rule, or one item of a list in it.
type Member struct {
	// name of the item, as in filters[1]; empty for the rule itself.
	name string
	// fields has the route's own values as the lowest policy.
	fields policykind.Policy
	// Fields has all fields that are controlled, set or not, but those of items of a list
	// that do not exist.
	Fields []Field
}

// Field is where a member has a field that the kind controls.
type Field struct {
	Rule merge.Key
	At   string // in the route, as in spec.rules[0].filters
}

type memberKey struct {
	kind *policykind.Kind
	rule int
}

// membersOf returns the members of a path's rule that a kind controls, none if the rule
// does not have the list. controlled is false if the kind controls no fields of this
// kind of routes.
func membersOf(k *policykind.Kind, p gateway.Path) (members []Member, controlled bool) {
	if p.Rule < 0 || !slices.ContainsFunc(k.Controls(), func(f policykind.Field) bool { return slices.Contains(f.Kinds, p.Route.Kind) }) {
		return nil, false
	}
	out := p.Route.Memoize(memberKey{k, p.Rule}, func() any { return readMembers(k, p.Route, p.Rule) })
	members, _ = out.([]Member)
	return members, true
}

func readMembers(k *policykind.Kind, r *gateway.Route, rule int) []Member {
	values, places := make(map[string][]merge.Rule), make(map[string][]Field)
	var names []string
	for _, f := range k.Controls() {
		if !slices.Contains(f.Kinds, r.Kind) {
			continue
		}
		if !f.InItems() && !slices.Contains(names, "") {
			names = append(names, "")
		}
		at := fieldCursor{rule: rule}
		if f.Unless != nil && slices.ContainsFunc(at.find(map[string]any{"spec": r.Spec()}, f.Unless), func(v fieldValue) bool { return v.value != nil }) {
			continue
		}
		for _, found := range at.find(map[string]any{"spec": r.Spec()}, f.Route) {
			if !slices.Contains(names, found.member) {
				names = append(names, found.member)
			}
			if slices.ContainsFunc(values[found.member], func(r merge.Rule) bool { return f.Rule.Holds(r.Key) }) {
				continue // another field of the rule is set
			}
			values[found.member] = append(values[found.member], k.FieldRules(f, found.value)...)
			unset := slices.DeleteFunc(places[found.member], func(p Field) bool { return p.Rule == f.Rule })
			places[found.member] = append(unset, Field{f.Rule, found.at})
		}
	}
	out := make([]Member, 0, len(names))
	for _, name := range names {
		m := Member{name: name, fields: policykind.Policy{Version: policykind.NextVersion()}, Fields: places[name]}
		m.fields.Namespace, m.fields.Name, m.fields.Created = r.Namespace, r.Name, merge.Newest
		if rules := values[name]; len(rules) > 0 {
			slices.SortFunc(rules, func(a, b merge.Rule) int { return a.Key.Compare(b.Key) })
			m.fields.Blocks = []merge.Rules{{Block: merge.Object, Strategy: merge.Merge, Rules: rules}}
		}
		out = append(out, m)
	}
	return out
}

// fieldCursor is a position in a route.
type fieldCursor struct {
	rule   int // index in spec.rules
	at     string
	member string
}

// fieldValue is a field of a route and its value, nil if it is not set.
type fieldValue struct {
	fieldCursor
	value any
}

// find returns the values of a field: one, or one for each item of a list that has the
// object which contains the field.
func (c fieldCursor) find(object any, route []policykind.Segment) []fieldValue {
	if len(route) == 0 {
		if IsEmpty(object) {
			object = nil
		}
		return []fieldValue{{c, object}}
	}
	s, rest := route[0], route[1:]
	if list, ok := object.([]any); ok {
		if object, c = c.firstWith(list, s.Name); object == nil {
			return nil
		}
	}
	content, ok := object.(map[string]any)
	if !ok && c.member != "" {
		return nil // this item has no such object
	}
	value := content[s.Name]
	next := c
	next.at = strings.TrimPrefix(c.at+"."+s.Name, ".")
	if !s.List {
		return next.find(value, rest)
	}
	if list, _ := value.([]any); next.at == "spec.rules" {
		return next.findRule(list, rest)
	}
	return next.findItems(value, rest)
}

func (c fieldCursor) findRule(list []any, rest []policykind.Segment) []fieldValue {
	var rule any = map[string]any{} // an HTTPRoute without rules has one
	if c.rule < len(list) {
		rule = list[c.rule]
	}
	c.at = fmt.Sprintf("%s[%d]", c.at, c.rule)
	return c.find(rule, rest)
}

func (c fieldCursor) findItems(value any, rest []policykind.Segment) []fieldValue {
	var out []fieldValue
	list, _ := value.([]any)
	for i, item := range list {
		next := c
		next.at = fmt.Sprintf("%s[%d]", c.at, i)
		next.member = next.memberName()
		out = append(out, next.find(item, rest)...)
	}
	return out
}

// firstWith returns the first item of a list that has a field.
func (c fieldCursor) firstWith(list []any, name string) (any, fieldCursor) {
	for i, item := range list {
		if content, _ := item.(map[string]any); content[name] != nil {
			c.at = fmt.Sprintf("%s[%d]", c.at, i)
			return content, c
		}
	}
	return nil, c
}

// memberName returns the name of an item: its field path below the rule.
func (c fieldCursor) memberName() string {
	at := strings.TrimPrefix(c.at, "spec.")
	if rule, below, ok := strings.Cut(at, "."); ok && strings.HasPrefix(rule, "rules[") {
		return below
	}
	return at
}

// IsEmpty reports whether a value counts as unset: null, or an empty string, list or
// object. The 2023 text counts an empty list as unset.
func IsEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	default:
		return false
	}
}
