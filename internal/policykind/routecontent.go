package policykind

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// routeIdentifier identifies routes: one, those of a kind in a namespace, or those of a kind.
type routeIdentifier struct{ kind, namespace, name string }

// closeness returns how closely it identifies a route, 0 if it does not.
func (i routeIdentifier) closeness(r api.Ref) int {
	switch {
	case i.kind != r.Kind || i.namespace != "" && i.namespace != r.Namespace || i.name != "" && (i.name != r.Name || i.namespace == ""):
		return 0
	case i.name != "":
		return 3
	case i.namespace != "":
		return 2
	default:
		return 1
	}
}

// PartFor returns which of the policy's Parts applies on the paths of a route, from 1 on; 0
// if its Blocks do.
func (p *Policy) PartFor(r api.Ref) int {
	part, best := 0, 0
	for i, id := range p.routes {
		if n := id.closeness(r); n > best {
			part, best = i+1, n
		}
	}
	return part
}

// maxPartRules is the maximum number of rules of all parts of a policy, each with those of
// the policy's block.
const maxPartRules = 1 << 14

// routeContents reads the content for single routes, and adds the rules of the blocks that
// it does not replace.
func (r *reader) routeContents(root *field.Path, spec map[string]any) {
	c, p := r.kind.RouteContents, r.policy
	if c == nil {
		return
	}
	value, at := lookup(root, spec, c.Field)
	list, ok := value.([]any)
	if value != nil && !ok {
		r.wrongType(at, value, "a list")
	}
	blocks, places, rules := p.Blocks, p.fields.blocks, 0
	for i, entry := range list {
		item, _ := entry.(map[string]any)
		value, _ := lookup(root, item, c.Route)
		route, _ := value.(map[string]any)
		value, at := lookup(at.Index(i), item, c.Content)
		content, ok := value.(map[string]any)
		if !ok {
			r.wrongType(at, value, "an object")
			continue
		}
		var id routeIdentifier
		id.kind, _ = route["kind"].(string)
		id.namespace, _ = route["namespace"].(string)
		id.name, _ = route["name"].(string)
		p.Blocks = nil
		r.block(at, content, merge.Bare, blockStrategy{Strategy: r.kind.strategies[0]})
		part := withBlocks(p.Blocks, blocks)
		for _, b := range part {
			rules += len(b.Rules)
		}
		if rules > maxPartRules {
			r.invalid(at, len(list), "must have at most %d fields for all routes", maxPartRules)
			break
		}
		p.Parts, p.routes = append(p.Parts, part), append(p.routes, id)
	}
	p.Blocks, p.fields.blocks = blocks, places
}

// PartMerged returns which of the policy's Parts applies where policies are merged, 0 if its
// Blocks do.
func (p *Policy) PartMerged() int {
	return slices.IndexFunc(p.Kind.IgnoreOn, func(e api.IgnoredRules) bool { return e.Merged }) + 1
}

// ignoreOn adds the parts of the policy without the rules that have no effect on some paths.
func (r *reader) ignoreOn() {
	p := r.policy
	for i, e := range r.kind.IgnoreOn {
		var part []merge.Rules
		applies := e.Target == "" || slices.ContainsFunc(p.Targets, func(t Target) bool { return t.Ref.Kind == e.Target })
		for _, b := range p.Blocks {
			b.Rules = slices.DeleteFunc(slices.Clone(b.Rules), func(rule merge.Rule) bool {
				return applies && slices.ContainsFunc(r.kind.ignoredOn[i], func(s subtree) bool { return s.contains(rule.Key) })
			})
			if len(b.Rules) > 0 {
				part = append(part, b)
			}
		}
		p.Parts, p.routes = append(p.Parts, part), append(p.routes, routeIdentifier{kind: e.Route})
	}
}

// withBlocks returns the block of a part, if it has rules, with the rules of the policy's
// block that it does not replace.
func withBlocks(part, all []merge.Rules) []merge.Rules {
	if len(part) == 0 || len(all) == 0 {
		return slices.Concat(part, all)
	}
	out := part[0]
	for _, rule := range all[0].Rules {
		if !replaces(&part[0], rule.Key) {
			out.Rules = append(out.Rules, rule)
		}
	}
	slices.SortFunc(out.Rules, func(a, b merge.Rule) int { return a.Key.Compare(b.Key) })
	return []merge.Rules{out}
}

// replaces reports whether a block has a rule at a key, above it or below it.
func replaces(b *merge.Rules, k merge.Key) bool {
	for n := range k.Segments() {
		at, _ := k.Ancestor(n + 1)
		if r := b.At(at); r != nil && !r.EmptyMap {
			return true
		}
	}
	i, _ := slices.BinarySearchFunc(b.Rules, k, func(r merge.Rule, k merge.Key) int { return r.Key.Compare(k) })
	return i < len(b.Rules) && k.Holds(b.Rules[i].Key)
}
