package policykind

import (
	"slices"

	"overrule.dev/overrule/merge"
)

// protectionGroup is a group of rules that protect, compiled.
type protectionGroup struct {
	name  string
	rules []subtree
}

// protection compiles the groups of rules that protect: those of spec.protection, and each
// group of alternatives, by the last segment of its path.
func (c *compiler) protection() {
	k, at := c.kind, c.spec.Child("protection")
	for i, g := range k.Protection {
		if g.Name == "" {
			c.required(at.Index(i).Child("name"), "set the name of the group, such as authentication")
		}
		if len(g.Rules) == 0 {
			c.required(at.Index(i).Child("rules"), "set the field paths of the rules of the group")
		}
		k.protection = append(k.protection, protectionGroup{g.Name, subtrees(c.fieldPaths(at.Index(i).Child("rules"), g.Rules, anywhere))})
	}
	for i := range k.alternatives {
		if path := k.alternatives[i].fieldPath; len(path) > 0 {
			k.protection = append(k.protection, protectionGroup{path[len(path)-1], k.alternatives[i : i+1]})
		}
	}
}

// ProtectionGroup returns the group of rules that protect to which a rule belongs, "" for
// none, and the name of the rule in messages: in kinds whose rules are leaves that of the
// profile, such as jwt for jwt.providers.
func (k *Kind) ProtectionGroup(rule merge.Key) (group, name string) {
	for _, g := range k.protection {
		i := slices.IndexFunc(g.rules, func(s subtree) bool { return s.contains(rule) })
		if i < 0 {
			continue
		}
		if member, _ := rule.Ancestor(len(g.rules[i].fieldPath)); k.rulesAreLeaves {
			return g.name, member.String()
		}
		return g.name, rule.String()
	}
	return "", ""
}

// HasProtection reports whether the kind has groups of rules that protect.
func (k *Kind) HasProtection() bool { return len(k.protection) > 0 }

// Protects reports whether a rule keeps requests out, or decides whether others do: it
// belongs to a group of rules that protect, or is a gate.
func (k *Kind) Protects(rule merge.Key) bool {
	group, _ := k.ProtectionGroup(rule)
	return group != "" || k.IsGate(rule)
}
