package v1alpha1

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LostRules are rules that a number of paths lose.
type LostRules struct {
	// Rules is the name of a group of rules, such as jwt or authentication, or a rule key.
	Rules string `json:"rules"`
	Paths int    `json:"paths"`
	// Protects is set if they keep requests out: authentication or authorization, say.
	Protects bool `json:"protects,omitempty"`
}

// LostCounts are rules that paths lose, by their name.
type LostCounts map[string]LostRules

// Add adds rules that a number of paths lose.
func (c LostCounts) Add(l LostRules) {
	known := c[l.Rules]
	c[l.Rules] = LostRules{Rules: l.Rules, Paths: known.Paths + l.Paths, Protects: known.Protects || l.Protects}
}

// GainedRules are rules of a policy that a new route gets on a number of paths.
type GainedRules struct {
	// Rules is the name of a group of rules, such as jwt or authentication.
	Rules  string `json:"rules"`
	Policy Ref    `json:"policy"`
	Paths  int    `json:"paths"`
}

// Sorted returns the rules: those that protect first, then what most paths lose.
func (c LostCounts) Sorted() []LostRules {
	return slices.SortedFunc(maps.Values(c), func(a, b LostRules) int {
		if a.Protects != b.Protects {
			if a.Protects {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Paths, a.Paths), strings.Compare(a.Rules, b.Rules))
	})
}

// LostText says what paths lose, in parentheses after a space: " (2 lose jwt, 1 loses cors)";
// "" for nothing.
func LostText(lost []LostRules) string {
	const most = 3
	var parts []string
	for i, l := range lost {
		if i == most {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s %s", l.Paths, l.Verb(), l.Rules))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Verb returns "loses" for one path, else "lose".
func (l LostRules) Verb() string {
	if l.Paths == 1 {
		return "loses"
	}
	return "lose"
}

// GainedText names rules, which must be sorted by policy, by their policies: "jwt and cors of
// SecurityPolicy infra/edge".
func GainedText(gained []GainedRules) string {
	const most = 3
	var parts []string
	for len(gained) > 0 {
		n := 0
		var names []string
		for ; n < len(gained) && gained[n].Policy == gained[0].Policy; n++ {
			names = append(names, gained[n].Rules)
		}
		parts = append(parts, fmt.Sprintf("%s of %s", NamesText(names), gained[0].Policy))
		gained = gained[n:]
	}
	if len(parts) > most {
		parts = append(parts[:most-1], fmt.Sprintf("rules of %d more policies", len(parts)-most+1))
	}
	return JoinNames(parts)
}

// ChangesSummary says how many effective policies change, with details, and what requests
// lose that move to another route, rule or listener, "" for nothing.
func ChangesSummary(n int, details, moved string) string {
	text := fmt.Sprintf("%d effective policies change", n)
	switch {
	case n == 0 && moved != "":
		return moved
	case n == 0:
		text = "no effective policy changes"
	case n == 1:
		text = "1 effective policy changes"
	}
	if text += details; moved != "" {
		text += "; " + moved
	}
	return text
}
