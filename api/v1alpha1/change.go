package v1alpha1

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ChangeList is the output of the command diff.
type ChangeList struct {
	TypeMeta `json:",inline"`
	Items    []Change `json:"items"`
}

// Change is the difference that a change makes to one effective policy.
type Change struct {
	Object     Ref           `json:"object"`
	Operation  string        `json:"operation"`
	PolicyKind PolicyKind    `json:"policyKind"`
	Path       []PathElement `json:"path"`
	Rules      []RuleChange  `json:"rules"`
	// Lost names the rules that the path loses: in force before the change, and neither they
	// nor another value of the same rules after it. A group of rules has one name, such as
	// authentication. Those that protect come first, and are in LostProtection as well.
	Lost           []string `json:"lost,omitempty"`
	LostProtection []string `json:"lostProtection,omitempty"`
	// Gained are the rules of policies that a new path gets.
	Gained []GainedRules `json:"gained,omitempty"`
	// Unreached is set if no request reaches the path after the change: it loses and gets
	// nothing.
	Unreached bool `json:"unreached,omitempty"`
}

// ChangesText says what the paths of changes lose, and what new paths get: " (2 lose jwt);
// 1 new path gets cors of SecurityPolicy infra/edge"; "" for nothing.
func ChangesText(changes []Change) string {
	lost, gained := make(LostCounts), make(map[GainedRules]bool)
	paths, unreached := 0, 0
	for i := range changes {
		c := &changes[i]
		if c.Unreached {
			unreached++
		}
		for _, name := range c.Lost {
			lost.Add(LostRules{Rules: name, Paths: 1, Protects: slices.Contains(c.LostProtection, name)})
		}
		for _, g := range c.Gained {
			gained[g] = true
		}
		paths += min(len(c.Gained), 1)
	}
	text := LostText(lost.Sorted())
	if paths == 0 {
		return text + UnreachedText(unreached, len(changes))
	}
	subject := "1 new path gets"
	if paths > 1 {
		subject = fmt.Sprintf("%d new paths get", paths)
	}
	all := slices.SortedFunc(maps.Keys(gained), func(a, b GainedRules) int {
		return cmp.Or(CompareRefs(a.Policy, b.Policy), strings.Compare(a.Rules, b.Rules))
	})
	return fmt.Sprintf("%s; %s %s", text, subject, GainedText(all)) + UnreachedText(unreached, len(changes))
}

// UnreachedText says that no request reaches a number of all paths that change; "" for none.
func UnreachedText(n, all int) string {
	switch {
	case n == 0:
		return ""
	case n < all:
		return fmt.Sprintf("; no request reaches %d of them", n)
	case n == 1:
		return "; no request reaches it"
	default:
		return "; no request reaches them"
	}
}

// RuleChange is the difference of one rule. Before is absent if the rule is added,
// After if it is removed.
type RuleChange struct {
	Rule   string     `json:"rule"`
	Before *RuleValue `json:"before,omitempty"`
	After  *RuleValue `json:"after,omitempty"`
}

// RuleValue is the value of a rule and its origin.
type RuleValue struct {
	Value any `json:"value"`
	// Redacted is set if the value is omitted; it is null then.
	Redacted bool   `json:"redacted,omitempty"`
	From     Ref    `json:"from"`
	Block    string `json:"block"`
}
