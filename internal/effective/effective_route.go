package effective

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// route returns what the path's route comes to in a kind that controls fields
// of it; nil in others. Nobody writes it anywhere: it is only shown.
func (e *Effective) route() *api.EffectiveRoute {
	if e.member == nil {
		return nil
	}
	spec, _ := e.Path.Route.Spec().(map[string]any)
	var object any = map[string]any{"spec": spec}
	out := &api.EffectiveRoute{Fields: make([]api.EffectiveField, 0, len(e.member.places))}
	for _, f := range e.member.places {
		shown := api.EffectiveField{Field: fieldAddress(f.at), Rule: f.rule.String()}
		if value, origin, ok := e.valueOf(f.rule); ok {
			from := e.Ref(origin.Policy)
			shown.Value, shown.From, shown.Block = value, &from, origin.Block.String()
			object = setAt(object, f.at, value)
		} else if e.member.sets(f.rule) {
			object = removeAt(object, f.at) // an override took it away
		}
		out.Fields = append(out.Fields, shown)
	}
	slices.SortFunc(out.Fields, func(a, b api.EffectiveField) int { return strings.Compare(a.Field, b.Field) })
	out.Spec = onlyRule(object, e.Path.Rule)
	return out
}

// valueOf returns the effective value at a rule key, or below it, and where it
// came from: the origin of the first rule.
func (e *Effective) valueOf(k merge.Key) (value any, from merge.Origin, ok bool) {
	for _, r := range e.Rules {
		if !k.Holds(r.Key) || r.Value == nil {
			continue
		}
		if !ok {
			from, ok = r.From, true
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

// put returns an object with a value at a place. It edits nothing.
func setAt(object any, at []string, value any) any {
	if len(at) == 0 {
		return value
	}
	if i, ok := parseIndex(at[0]); ok {
		list, _ := object.([]any)
		list = slices.Clone(list)
		for len(list) <= i {
			list = append(list, map[string]any{}) // an HTTPRoute without rules has one
		}
		list[i] = setAt(list[i], at[1:], value)
		return list
	}
	content, _ := object.(map[string]any)
	content = maps.Clone(content)
	if content == nil {
		content = make(map[string]any)
	}
	content[at[0]] = setAt(content[at[0]], at[1:], value)
	return content
}

// without returns an object without what is at a place that it has, which is
// no item of a list itself. It edits nothing.
func removeAt(object any, at []string) any {
	if i, ok := parseIndex(at[0]); ok {
		list, _ := object.([]any)
		list = slices.Clone(list)
		list[i] = removeAt(list[i], at[1:])
		return list
	}
	content, _ := object.(map[string]any)
	content = maps.Clone(content)
	if len(at) == 1 {
		delete(content, at[0])
		return content
	}
	content[at[0]] = removeAt(content[at[0]], at[1:])
	return content
}

// itemOf reads a step into a list.
func parseIndex(step string) (int, bool) {
	text, ok := strings.CutPrefix(step, "[")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimSuffix(text, "]"))
	return i, err == nil
}

// addressOf writes a place as people do.
func fieldAddress(at []string) string { return strings.ReplaceAll(strings.Join(at, "."), ".[", "[") }

// onlyRule returns the spec of a route with one of its rules alone.
func onlyRule(object any, rule int) map[string]any {
	content, _ := object.(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	spec = maps.Clone(spec)
	if rules, _ := spec["rules"].([]any); rule < len(rules) {
		spec["rules"] = []any{rules[rule]}
	}
	return spec
}

// ResolveConflicts finds the fields of routes that several kinds control on one path:
// that of a direct kind wins over that of an inherited one (SEMANTICS section
// 5), else the first by name. Each item names the kinds that say something
// else. The items have the order of CompareItems.
func ResolveConflicts(items []api.EffectivePolicy, direct func(api.PolicyKind) bool) {
	type place struct{ path, field string }
	by := make(map[place][]*api.EffectiveField)
	kind := make(map[*api.EffectiveField]api.PolicyKind)
	for i := range items {
		if items[i].Route == nil {
			continue
		}
		path := pathKey(items[i].Path)
		for j := range items[i].Route.Fields {
			f := &items[i].Route.Fields[j]
			if f.Block == "" || f.Block == merge.Object.String() {
				continue // no policy says anything of it
			}
			at := place{path, f.Field}
			by[at], kind[f] = append(by[at], f), items[i].PolicyKind
		}
	}
	for _, fields := range by {
		for _, f := range fields {
			for _, g := range fields {
				if f != g && !merge.Equal(f.Value, g.Value) {
					f.ConflictsWith = append(f.ConflictsWith, kind[g])
				}
			}
			slices.SortFunc(f.ConflictsWith, api.ComparePolicyKinds)
		}
		applyWinner(fields, func(f *api.EffectiveField) bool { return direct(kind[f]) })
	}
	for i := range items {
		if r := items[i].Route; r != nil {
			for _, f := range r.Fields {
				if len(f.ConflictsWith) > 0 {
					r.Spec, _ = setAt(r.Spec, fieldSteps(f.Field), f.Value).(map[string]any)
				}
			}
		}
	}
}

// stepsOf reads the address of a field as steps into the spec that is shown,
// which has one rule.
func fieldSteps(address string) []string {
	steps := strings.Split(strings.ReplaceAll(strings.TrimPrefix(address, "spec."), "[", ".["), ".")
	if len(steps) > 1 && steps[0] == "rules" {
		steps[1] = "[0]"
	}
	return steps
}

// settle gives all fields the value of the one that wins.
func applyWinner(fields []*api.EffectiveField, direct func(*api.EffectiveField) bool) {
	i := max(slices.IndexFunc(fields, direct), 0)
	winner := *fields[i]
	for _, f := range fields {
		f.Value, f.From, f.Block = winner.Value, winner.From, winner.Block
	}
}

// samePath is a path but for the namespaces, which are levels in some kinds and
// not in others.
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
