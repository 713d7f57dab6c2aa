package explain

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// routeOf returns the path's route with the effective values of the fields that the
// kind controls, nil for a kind that controls none. It is output only and never
// written to the route.
func routeOf(e *effective.Effective) *api.EffectiveRoute {
	if e.Member == nil {
		return nil
	}
	out := &api.EffectiveRoute{Fields: make([]api.EffectiveField, 0, len(e.Member.Fields))}
	for _, f := range e.Member.Fields {
		shown := api.EffectiveField{Field: f.At, Rule: f.Rule.String()}
		if value, origin, ok := valueOf(e, f.Rule); ok {
			from := e.Ref(origin.Policy)
			shown.Value, shown.From, shown.Block = value, &from, origin.Block.String()
		}
		out.Fields = append(out.Fields, shown)
	}
	slices.SortFunc(out.Fields, func(a, b api.EffectiveField) int { return strings.Compare(a.Field, b.Field) })
	out.Spec = withFields(ownRule(e), out.Fields)
	return out
}

// ownRule returns the spec of the path's route with only the rule of the path.
func ownRule(e *effective.Effective) map[string]any {
	spec, _ := e.Path.Route.Spec().(map[string]any)
	spec = maps.Clone(spec)
	if rules, _ := spec["rules"].([]any); e.Path.Rule < len(rules) {
		spec["rules"] = []any{rules[e.Path.Rule]}
	}
	return spec
}

// withFields returns the spec of a route that has one rule with the values of fields; one
// without a value is unset by an override, or redacted.
func withFields(spec map[string]any, fields []api.EffectiveField) map[string]any {
	var out any = spec
	for _, f := range fields {
		out = withField(out, fieldSteps(f.Field), f.Value)
	}
	spec, _ = out.(map[string]any)
	return spec
}

// valueOf returns the effective value at a rule key, and the origin of the first rule
// at or below the key.
func valueOf(e *effective.Effective, k merge.Key) (value any, from merge.Origin, ok bool) {
	for _, r := range e.Rules {
		if k.Holds(r.Key) && r.Value != nil {
			from, ok = r.From, true
			break
		}
	}
	if !ok {
		return nil, merge.Origin{}, false
	}
	value = e.Spec()
	for _, s := range k.Segments() {
		content, _ := value.(map[string]any)
		value = content[s]
	}
	return value, from, true
}

// withField returns a copy of an object with a value at a field, or without the field, which
// is no item of a list, if the value is nil.
func withField(object any, at []string, value any) any {
	if len(at) == 0 {
		return value
	}
	if i, ok := parseIndex(at[0]); ok {
		list, _ := object.([]any)
		list = slices.Clone(list)
		for value != nil && len(list) <= i {
			list = append(list, map[string]any{}) // an HTTPRoute without rules has one
		}
		if i < len(list) {
			list[i] = withField(list[i], at[1:], value)
		}
		return list
	}
	content, _ := object.(map[string]any)
	if value == nil && effective.IsEmpty(content[at[0]]) {
		return object
	}
	content = maps.Clone(content)
	if content == nil {
		content = make(map[string]any)
	}
	if content[at[0]] = withField(content[at[0]], at[1:], value); value == nil && len(at) == 1 {
		delete(content, at[0])
	}
	return content
}

// parseIndex parses a path segment such as [1].
func parseIndex(step string) (int, bool) {
	text, ok := strings.CutPrefix(step, "[")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimSuffix(text, "]"))
	return i, err == nil
}

// ResolveConflicts resolves conflicts between kinds that control the same field of a
// routeOf on one path: the value of a direct kind wins over that of an inherited one
// (SEMANTICS section 5), else that of the first item. It sets ConflictsWith to the
// kinds with another value; a hidden value counts as another one. The items have the order of CompareItems.
func ResolveConflicts(items []api.EffectivePolicy, direct func(api.PolicyKind) bool) {
	for _, fields := range fieldsByPath(items) {
		markConflicts(fields)
		applyWinner(fields, direct)
	}
	for i := range items {
		if r := items[i].Route; r != nil && !r.Redacted {
			r.Spec = withFields(r.Spec, r.Fields)
		}
	}
}

// kindField is a field of a route that a kind controls.
type kindField struct {
	*api.EffectiveField

	kind api.PolicyKind
}

// fieldKey identifies a field of a route on a path.
type fieldKey struct{ path, field string }

// fieldsByPath groups the fields that policies set by path and field, in the order of
// the items.
func fieldsByPath(items []api.EffectivePolicy) map[fieldKey][]kindField {
	out := make(map[fieldKey][]kindField)
	for i := range items {
		if items[i].Route == nil {
			continue
		}
		path := pathKey(items[i].Path)
		for j := range items[i].Route.Fields {
			f := &items[i].Route.Fields[j]
			if f.Block == "" || f.Block == merge.Object.String() {
				continue // no policy sets it
			}
			key := fieldKey{path, f.Field}
			out[key] = append(out[key], kindField{f, items[i].PolicyKind})
		}
	}
	return out
}

// markConflicts sets ConflictsWith of each field to the kinds with another value.
func markConflicts(fields []kindField) {
	for i, f := range fields {
		for j, other := range fields {
			if i != j && (f.Redacted || other.Redacted || !merge.Equal(f.Value, other.Value)) {
				f.ConflictsWith = append(f.ConflictsWith, other.kind)
			}
		}
		slices.SortFunc(f.ConflictsWith, api.ComparePolicyKinds)
	}
}

// applyWinner sets all fields to the value of the first direct kind, or of the first
// kind if none is direct.
func applyWinner(fields []kindField, direct func(api.PolicyKind) bool) {
	i := max(slices.IndexFunc(fields, func(f kindField) bool { return direct(f.kind) }), 0)
	winner := *fields[i].EffectiveField
	for _, f := range fields {
		f.Value, f.From, f.Block, f.Redacted = winner.Value, winner.From, winner.Block, winner.Redacted
	}
}

// fieldSteps splits the address of a field into steps in a spec that has one rule.
func fieldSteps(address string) []string {
	steps := strings.Split(strings.ReplaceAll(strings.TrimPrefix(address, "spec."), "[", ".["), ".")
	if len(steps) > 1 && steps[0] == "rules" {
		steps[1] = "[0]"
	}
	return steps
}

// pathKey identifies a path across kinds. It has no namespaces, which are levels of
// some kinds alone.
func pathKey(path []api.PathElement) string {
	var b strings.Builder
	for _, e := range path {
		if e.Kind != gateway.KindNamespace {
			b.WriteString(e.String())
			b.WriteByte(0)
		}
	}
	return b.String()
}
