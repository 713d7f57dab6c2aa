package effective

import (
	"iter"
	"slices"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// Override is a rule of an overrides block on a path: in force, or in force once its
// condition is met.
type Override struct {
	Policy *merge.Policy
	*merge.Rule
	Level gateway.Level
	// Block of the policy: overrides, or bare if the path applies that as overrides.
	Block merge.Block
	// When is the condition of the block, "" for none.
	When string
	// Atomic is set if the block replaces all rules of lower policies.
	Atomic bool
}

// AppendOverrides appends the overrides of the path: the rules in force that come from
// an overrides block, and those of blocks with a condition unless a higher override
// without one takes precedence. They are in the order of layers, then of rules.
func (e *Effective) AppendOverrides(to []Override) []Override {
	for i := range e.Layers {
		if !HasOverrides(&e.Layers[i]) || e.isRepeated(i) {
			continue
		}
		level := e.Level(e.Layers[i].Policy)
		for o, block := range OverrideBlocks(&e.Layers[i]) {
			o.Level = level
			firm := e.unconditionalAbove(o)
			for n := range block.Rules {
				o.Rule = &block.Rules[n]
				if e.mayBeInForce(o, firm) {
					to = append(to, o)
				}
			}
		}
	}
	return to
}

// HasOverrides reports whether a layer has blocks that are applied as overrides.
func HasOverrides(l *merge.Layer) bool {
	return slices.ContainsFunc(l.In(l.Part), func(b merge.Rules) bool { return l.Reading(&b).Block == merge.Overrides })
}

// isRepeated reports whether an earlier layer has the same policy with the same reading:
// the policy is at two levels of the path.
func (e *Effective) isRepeated(layer int) bool {
	l := &e.Layers[layer]
	return slices.ContainsFunc(e.Layers[:layer], func(o merge.Layer) bool { return o.Policy == l.Policy && o.As == l.As })
}

// OverrideBlocks yields the blocks of a layer that are applied as overrides, each with
// an Override that has what is common to its rules.
func OverrideBlocks(l *merge.Layer) iter.Seq2[Override, *merge.Rules] {
	return func(yield func(Override, *merge.Rules) bool) {
		blocks := l.In(l.Part)
		for i := range blocks {
			b := &blocks[i]
			as := l.Reading(b)
			if as.Block != merge.Overrides {
				continue
			}
			o := Override{Policy: l.Policy, Level: gateway.Level(l.Level), Block: b.Block, When: b.Condition(), Atomic: as.Strategy == merge.Atomic}
			if !yield(o, b) {
				return
			}
		}
	}
}

// unconditional is a block of overrides without a condition.
type unconditional struct {
	*merge.Rules
	atomic bool
}

// unconditionalAbove returns the blocks without a condition of higher policies, which
// can take precedence over an override. It returns nil for an override without a
// condition: the effective rules decide then.
func (e *Effective) unconditionalAbove(o Override) []unconditional {
	if o.When == "" {
		return nil
	}
	var out []unconditional
	for i := range e.Layers {
		if !e.higher(e.Layers[i].Policy, o.Policy) {
			continue
		}
		for above, block := range OverrideBlocks(&e.Layers[i]) {
			if above.When == "" {
				out = append(out, unconditional{block, above.Atomic})
			}
		}
	}
	return out
}

// mayBeInForce reports whether an override of the path is in force there, or would be
// once its condition is met: no block above takes precedence.
func (e *Effective) mayBeInForce(o Override, above []unconditional) bool {
	if o.When == "" {
		r := e.At(o.Key)
		return r != nil && r.From.Policy == o.Policy && r.From.Block == merge.Overrides && !r.From.Conditional && merge.Equal(r.Value, o.Value)
	}
	return !slices.ContainsFunc(above, func(f unconditional) bool { return f.atomic || f.At(o.Key) != nil })
}

// Keeps reports whether the policy of an override has the same override on this path, at
// the same level or a higher one, whether or not another override takes precedence: the
// same value, atomic if it was, with the same condition or with none.
func (e *Effective) Keeps(o Override) bool {
	if o.Block == merge.Overrides && slices.ContainsFunc(e.Layers, func(l merge.Layer) bool {
		return l.Policy == o.Policy && l.Part == 0 && gateway.Level(l.Level) <= o.Level
	}) {
		return true // it is the same version of the policy
	}
	return e.hasSameOverride(o, func(p Override) bool {
		return p.Policy.Same(o.Policy) && p.Level <= o.Level && p.Policy.Rank <= o.Policy.Rank
	})
}

// GivesWayTo returns the policy to whose rule an override of a policy on this path gives way
// although that is neither an override nor higher: by a group of rules, say. It is nil if there
// is none.
func (e *Effective) GivesWayTo(o Override) *merge.Policy {
	if r := e.At(o.Key); o.When != "" || r != nil && r.From.Block == merge.Overrides {
		return nil
	}
	i := slices.IndexFunc(e.Outcomes, func(x merge.Outcome) bool { return x.Policy.Same(o.Policy) })
	if i < 0 {
		return nil
	}
	l := e.Outcomes[i].LostAt(o.Key)
	if l == nil || l.Block != merge.Overrides || l.To.Policy == nil || l.To.Block == merge.Overrides || e.Level(l.To.Policy) < o.Level {
		return nil
	}
	return l.To.Policy
}

// Substitutes returns the policies of the same namespace that have the same override on
// this path, at the same level or a higher one, unless another value that does not come
// from above is in force. Policies of other namespaces do not count: other users can
// remove them, or may have written them to find out the value.
func (e *Effective) Substitutes(o Override) []*merge.Policy {
	var out []*merge.Policy
	e.hasSameOverride(o, func(p Override) bool {
		if p.Policy.Namespace == o.Policy.Namespace && p.Level <= o.Level && e.remainsInForce(p, o.Level) && !slices.Contains(out, p.Policy) {
			out = append(out, p.Policy)
		}
		return false
	})
	return out
}

// remainsInForce reports whether the value of an override is in force, from whichever
// policy, or would be once its condition is met; or an override above the level takes
// precedence.
func (e *Effective) remainsInForce(o Override, level gateway.Level) bool {
	if o.When != "" {
		return e.mayBeInForce(o, e.unconditionalAbove(o))
	}
	r := e.At(o.Key)
	return r != nil && r.From.Block == merge.Overrides && (merge.Equal(r.Value, o.Value) || e.Level(r.From.Policy) < level)
}

// hasSameOverride reports whether some policy on the path has the same override, and by
// returns true for it.
func (e *Effective) hasSameOverride(o Override, by func(Override) bool) bool {
	for i := range e.Layers {
		for p, block := range OverrideBlocks(&e.Layers[i]) {
			p.Rule = block.At(o.Key)
			if p.Rule == nil || o.Atomic && !p.Atomic || p.When != "" && p.When != o.When {
				continue
			}
			if p.EmptyMap == o.EmptyMap && merge.Equal(p.Value, o.Value) && by(p) {
				return true
			}
		}
	}
	return false
}
