package policykind

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// ruleGroup is a compiled group of rules.
type ruleGroup struct {
	rules []subtree
	group merge.Group
	// own is set if the key of a rule is that of its policy, else reference is the field
	// with the key, nil if rules have none.
	own                bool
	reference, disable fieldPath
	// agree is the field in which rules must agree, and variants its values.
	agree    fieldPath
	variants []string
}

func (g *ruleGroup) keyed() bool { return g.own || g.reference != nil }

// groups compiles the groups of rules, and the levels that count as one.
func (c *compiler) groups() {
	k, all := c.kind, c.spec.Child("groups")
	if len(k.Groups) > 0 && k.SameTarget == api.Collect {
		c.forbidden(all, "a kind that collects has one rule for each policy; remove groups, or change spec.sameTarget")
	}
	for i, g := range k.Groups {
		at := all.Index(i)
		paths := c.fieldPaths(at.Child("rules"), g.Rules, anywhere)
		one := ruleGroup{own: g.Key == "."}
		oneOf(c, at.Child("one"), g.One, "", api.OneSameLevel, api.OneAllLevels, api.OneHighestLevel, api.OneChoice)
		switch g.One {
		case api.OneSameLevel:
			one.group.One = merge.ExcludeSameTier
		case api.OneAllLevels:
			one.group.One = merge.ExcludeOtherTiers
		case api.OneHighestLevel:
			one.group.One = merge.ExcludeLowerTiers
		case api.OneChoice:
			one.group.One = merge.ExcludeOtherVariants
		}
		if g.Key != "" && !one.own {
			one.reference = c.singlePath(at.Child("key"), g.Key, notChecked)
		}
		switch {
		case g.Disable != "" && g.Key == "":
			c.forbidden(at.Child("disable"), "requires key; set it, or remove disable")
		case g.Disable != "":
			one.disable = c.singlePath(at.Child("disable"), g.Disable, notChecked)
		case g.Key == "" && g.One == "":
			c.required(at, "set key, one, or both of them")
		}
		if a := g.Agree; a != nil {
			one.agree, one.variants = c.singlePath(at.Child("agree", "field"), a.Field, notChecked), a.Values
		}
		for _, p := range paths {
			if one.reference != nil {
				k.addPath(at.Child("key"), slices.Concat(p, one.reference), anywhere)
			}
			if one.disable != nil {
				k.addPath(at.Child("disable"), slices.Concat(p, one.disable), anywhere)
			}
		}
		if !one.keyed() {
			k.addGroup(one, paths)
			continue
		}
		k.wholeMaps = append(k.wholeMaps, paths...)
		for _, p := range paths { // each is a group of its own
			k.addGroup(one, []fieldPath{p})
		}
	}
	c.joinedLevels()
}

func (k *Kind) addGroup(g ruleGroup, paths []fieldPath) {
	g.rules = subtrees(paths)
	g.group.ID = uint16(len(k.groups) + 1) //nolint:gosec // the schema limits the number
	k.groups = append(k.groups, g)
}

func (c *compiler) joinedLevels() {
	at, seen := c.spec.Child("joinedLevels"), make(map[api.LevelName]bool)
	for i, joined := range c.kind.JoinedLevels {
		c.joined(at.Index(i), joined, seen)
	}
	c.joined(c.spec.Child("joinedWithTLS"), c.kind.JoinedWithTLS, make(map[api.LevelName]bool))
}

func (c *compiler) joined(at *field.Path, levels []api.LevelName, seen map[api.LevelName]bool) {
	for j, l := range levels {
		oneOf(c, at.Index(j), l, c.kind.Levels...)
		if seen[l] {
			c.errs = append(c.errs, field.Duplicate(at.Index(j), l))
		}
		seen[l] = true
	}
}

// group returns the group of a rule, nil if it has none.
func (k *Kind) group(rule merge.Key) *ruleGroup {
	for i := range k.groups {
		g := &k.groups[i]
		if slices.ContainsFunc(g.rules, func(s subtree) bool { return s.contains(rule) }) {
			return g
		}
	}
	return nil
}

// setGroups sets the groups of the rules of a policy, and their keys. It edits the list.
func (k *Kind) setGroups(p *merge.Policy, rules []merge.Rule) {
	if len(k.groups) == 0 {
		return
	}
	for i := range rules {
		r := &rules[i]
		g := k.group(r.Key)
		if g == nil {
			continue
		}
		r.Group = g.group
		if r.Group.One == merge.ExcludeOtherVariants {
			r.Group.Variant = uint8(1 + slices.IndexFunc(g.rules, func(s subtree) bool { return s.contains(r.Key) })) //nolint:gosec // the schema limits the number
		}
		if len(g.variants) > 0 {
			value, _ := g.agree.lookup(r.Value)
			text, _ := value.(string)
			r.Group.Variant = uint8(1 + slices.Index(g.variants, text)) //nolint:gosec // the schema limits the number
		}
		if name := g.keyOf(p, r.Value); name != "" {
			r.Key = r.Key.Child(name)
		} else if g.disable != nil {
			_, r.Group.Disables = g.disable.lookup(r.Value)
		}
	}
}

// keyOf returns the key of a rule in its group, namespace/name, empty if it has none.
func (g *ruleGroup) keyOf(p *merge.Policy, value any) string {
	if g.own {
		return p.Namespace + "/" + p.Name
	}
	found, _ := g.reference.lookup(value)
	reference, _ := found.(map[string]any)
	name, _ := reference["name"].(string)
	if g.reference == nil || name == "" {
		return ""
	}
	namespace, _ := reference["namespace"].(string)
	return cmp.Or(namespace, p.Namespace) + "/" + name
}

// restoreGroups replaces the values by key in a spec that was built from rules.
func (k *Kind) restoreGroups(spec map[string]any) {
	for i := range k.groups {
		g := &k.groups[i]
		if !g.keyed() {
			continue
		}
		for _, s := range g.rules {
			restore(spec, s.fieldPath, joinKeyed)
		}
	}
}

// joinKeyed returns the value of the rules with different keys: that of the only one, all
// items if they are lists, else the list of them. A value without keys is returned as it is.
func joinKeyed(values map[string]any) any {
	var out []any
	for _, key := range sortedKeys(values) {
		switch list, isList := values[key].([]any); {
		case !strings.Contains(key, "/"):
			return values
		case isList:
			out = append(out, list...)
		case len(values) == 1:
			return values[key]
		default:
			out = append(out, values[key])
		}
	}
	return out
}

// HasOwnKey reports whether the last segment of a rule's key is that of its group, which the
// spec of the kind does not have.
func (k *Kind) HasOwnKey(r *merge.Rule) bool {
	if r.Group.ID == 0 || !k.groups[r.Group.ID-1].keyed() {
		return false
	}
	segments := r.Key.Segments()
	return strings.Contains(segments[len(segments)-1], "/")
}

// OneOfEachKey returns the rules without those that stand beside another one of their
// group and are no lists, which the schema of the kind has no place for.
func (k *Kind) OneOfEachKey(rules []merge.Effective) []merge.Effective {
	if len(k.groups) == 0 {
		return rules
	}
	seen := make(map[uint16]bool)
	return slices.DeleteFunc(slices.Clone(rules), func(e merge.Effective) bool {
		if !k.HasOwnKey(e.Rule) {
			return false
		}
		g := e.Group.ID
		if _, isList := merge.Plain(e.Value).([]any); isList {
			return false
		}
		again := seen[g]
		seen[g] = true
		return again
	})
}
