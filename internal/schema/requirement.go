package schema

import (
	"maps"
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// ask is something that the schema asks of several rules at once: of those
// below an address.
type requirement struct {
	at []string // below the place; * is any name
	// fields of the node there that it is about, nil for all.
	fields []string
}

// asks books what is asked of a node.
func (j *reducer) require(at []string, m fieldRefs) {
	n := len(j.location)
	if len(at) < n {
		j.requirements = append(j.requirements, requirement{}) // of all rules
		return
	}
	a := requirement{at: slices.Clone(at[n:])}
	if m != nil {
		a.fields = slices.Sorted(maps.Keys(m))
	}
	j.requirements = append(j.requirements, a)
}

// of reports whether a rule is among those that are asked: below the node, the
// node itself, or what it is in.
func (a requirement) covers(rule []string) bool {
	n := min(len(a.at), len(rule))
	return matchAddress(a.at[:n], rule[:n]) && (a.fields == nil || len(rule) <= n || slices.Contains(a.fields, rule[n]))
}

// block is the rules of a block of a policy.
type blockRules struct {
	rules []merge.Rule
	keys  [][]string
}

// met reports whether rules of several blocks meet in something that the place
// asks. What a single block says there, and is in force as it says it, was
// checked when its policy was written.
func (p *location) spansBlocks(e *effective.Effective) bool {
	var blocks []blockRules
	for _, o := range e.Outcomes {
		for _, rules := range o.Policy.Blocks {
			b := blockRules{rules: rules.Rules}
			for i := range b.rules {
				b.keys = append(b.keys, b.rules[i].Key.Segments())
			}
			blocks = append(blocks, b)
		}
	}
	force := inForce(e)
	return slices.ContainsFunc(p.requirements, func(a requirement) bool { return a.spansBlocks(blocks, force) })
}

// inForce returns the rules that are.
func inForce(e *effective.Effective) map[*merge.Rule]bool {
	out := make(map[*merge.Rule]bool, len(e.Rules))
	for _, r := range e.Rules {
		out[r.Rule] = true
	}
	return out
}

func (a requirement) spansBlocks(blocks []blockRules, force map[*merge.Rule]bool) bool {
	var first *blockRules
	for i := range blocks {
		b := &blocks[i]
		for k := range b.rules {
			switch {
			case !a.covers(b.keys[k]):
			case first != nil && first != b || !force[&b.rules[k]]:
				return true
			default:
				first = b
			}
		}
	}
	return false
}
