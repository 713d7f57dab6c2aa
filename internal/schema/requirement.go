package schema

import (
	"maps"
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// requirement is the scope of a cross-rule validation: the rules below a node of
// the schema that it applies to together.
type requirement struct {
	at []string // of the node, below the location; * is any name
	// fields of the node that the validation refers to, nil for all.
	fields []string
}

// require adds the requirement of a validation of a node, which refers to some of
// its fields.
func (red *reducer) require(at []string, refs fieldRefs) {
	n := len(red.location)
	if len(at) < n {
		red.requirements = append(red.requirements, requirement{}) // of all rules
		return
	}
	r := requirement{at: slices.Clone(at[n:])}
	if refs != nil {
		r.fields = slices.Sorted(maps.Keys(refs))
	}
	red.requirements = append(red.requirements, r)
}

// covers reports whether the requirement applies to a rule: one below the node, the
// node itself, or one that contains the node.
func (r requirement) covers(rule []string) bool {
	n := min(len(r.at), len(rule))
	return pathsMatch(r.at[:n], rule[:n]) && (r.fields == nil || len(rule) <= n || slices.Contains(r.fields, rule[n]))
}

// blockRules are the rules of a block of a policy.
type blockRules struct {
	rules []merge.Rule
	keys  [][]string
}

// spansBlocks reports whether some requirement of the location applies to rules of
// more than one block. A requirement on the rules of one block, all of them in
// force, was validated when the policy was written.
func (l *location) spansBlocks(e *effective.Effective) bool {
	var blocks []blockRules
	for _, o := range e.Outcomes {
		for _, rules := range o.Blocks() {
			b := blockRules{rules: rules.Rules}
			for i := range b.rules {
				b.keys = append(b.keys, b.rules[i].Key.Segments())
			}
			blocks = append(blocks, b)
		}
	}
	inForce := rulesInForce(e)
	return slices.ContainsFunc(l.requirements, func(r requirement) bool { return r.spansBlocks(blocks, inForce) })
}

func rulesInForce(e *effective.Effective) map[*merge.Rule]bool {
	out := make(map[*merge.Rule]bool, len(e.Rules))
	for _, r := range e.Rules {
		out[r.Rule] = true
	}
	return out
}

// spansBlocks reports whether the requirement applies to rules of more than one
// block, or to a rule that is not in force.
func (r requirement) spansBlocks(blocks []blockRules, inForce map[*merge.Rule]bool) bool {
	var first *blockRules
	for i := range blocks {
		b := &blocks[i]
		for k := range b.rules {
			switch {
			case !r.covers(b.keys[k]):
			case first != nil && first != b || !inForce[&b.rules[k]]:
				return true
			default:
				first = b
			}
		}
	}
	return false
}
