package effective

import (
	"iter"
	"slices"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// Override is a rule that an overrides block holds on a path: in force, or to
// be should its condition be met.
type Override struct {
	Policy *merge.Policy
	*merge.Rule
	Level gateway.Level
	// Block is where the policy has it: overrides, or bare where the path reads
	// that as overrides.
	Block merge.Block
	// When is the condition of the block, "" for none.
	When string
	// Atomic tells that the block leaves no rule of another policy below it.
	Atomic bool
}

// AppendHeld appends the overrides of the path: the rules in force that come from
// an overrides block, and those of blocks under a condition unless a higher
// override without one has their place. By layer, then by rule.
func (e *Effective) AppendHeld(to []Override) []Override {
	for i := range e.Layers {
		if !overrules(&e.Layers[i]) || e.again(i) {
			continue
		}
		level := e.Level(e.Layers[i].Policy)
		for o, block := range overrideBlocks(&e.Layers[i]) {
			o.Level = level
			firm := e.firmAbove(o)
			for n := range block.Rules {
				o.Rule = &block.Rules[n]
				if e.holds(o, firm) {
					to = append(to, o)
				}
			}
		}
	}
	return to
}

// overrules reports whether a layer has blocks that are overrides.
func overrules(l *merge.Layer) bool {
	return slices.ContainsFunc(l.Blocks, func(b merge.Rules) bool { return len(b.Rules) > 0 && l.Reading(&b).Block == merge.Overrides })
}

// again reports whether the policy of a layer is read in the same way in one
// before it: it is at two levels of the path.
func (e *Effective) again(layer int) bool {
	l := &e.Layers[layer]
	return slices.ContainsFunc(e.Layers[:layer], func(o merge.Layer) bool { return o.Policy == l.Policy && o.As == l.As })
}

// overrideBlocks yields the blocks of a layer that are overrides, each with what
// its rules have in common.
func overrideBlocks(l *merge.Layer) iter.Seq2[Override, *merge.Rules] {
	return func(yield func(Override, *merge.Rules) bool) {
		for i := range l.Blocks {
			b := &l.Blocks[i]
			as := l.Reading(b)
			if as.Block != merge.Overrides {
				continue
			}
			o := Override{Policy: l.Policy, Level: gateway.Level(l.Level), Block: b.Block, Atomic: as.Strategy == merge.Atomic}
			if b.When != nil {
				o.When = b.When.String()
			}
			if !yield(o, b) {
				return
			}
		}
	}
}

// firm is a block of overrides without a condition.
type firm struct {
	*merge.Rules
	atomic bool
}

// firmAbove returns the blocks that may leave an override no place: those without
// a condition of higher policies. None for an override without a condition
// itself: what is in force tells then.
func (e *Effective) firmAbove(o Override) []firm {
	if o.When == "" {
		return nil
	}
	var out []firm
	for i := range e.Layers {
		if !e.higher(e.Layers[i].Policy, o.Policy) {
			continue
		}
		for above, block := range overrideBlocks(&e.Layers[i]) {
			if above.When == "" && len(block.Rules) > 0 {
				out = append(out, firm{block, above.Atomic})
			}
		}
	}
	return out
}

// holds reports whether an override of the path is in force there, or may be
// once its condition is met: unless a firm one above it leaves it no place.
func (e *Effective) holds(o Override, above []firm) bool {
	if o.When == "" {
		r := e.At(o.Key)
		return r != nil && r.From.Policy == o.Policy && r.From.Block == merge.Overrides && !r.From.Conditional && merge.Equal(r.Value, o.Value)
	}
	return !slices.ContainsFunc(above, func(f firm) bool { return f.atomic || f.At(o.Key) != nil })
}

// Sets reports whether the policy of an override has the same override on this
// path, as high as it was, whether or not a higher one beats it: the same value,
// as a whole block if it was one, under the same condition or under none.
func (e *Effective) Sets(o Override) bool {
	if o.Block == merge.Overrides && slices.ContainsFunc(e.Layers, func(l merge.Layer) bool {
		return l.Policy == o.Policy && gateway.Level(l.Level) <= o.Level
	}) {
		return true // it is the very same policy
	}
	return e.gives(o, func(p Override) bool {
		return p.Policy.Namespace == o.Policy.Namespace && p.Policy.Name == o.Policy.Name &&
			p.Level <= o.Level && p.Policy.Rank <= o.Policy.Rank
	})
}

// Substitutes returns the policies of the same namespace that give the same override
// on this path, as high or higher, unless another value is in force that does not
// come from above. In another namespace other people may take it away again, or may
// have written it to find out the value.
func (e *Effective) Substitutes(o Override) []*merge.Policy {
	var out []*merge.Policy
	e.gives(o, func(p Override) bool {
		if p.Policy.Namespace == o.Policy.Namespace && p.Level <= o.Level && e.stands(p, o.Level) && !slices.Contains(out, p.Policy) {
			out = append(out, p.Policy)
		}
		return false
	})
	return out
}

// stands reports whether the value of an override is in force, whichever of
// several equal ones gives it, or may be once its condition is met; or what beats
// it is an override above a level.
func (e *Effective) stands(o Override, level gateway.Level) bool {
	if o.When != "" {
		return e.holds(o, e.firmAbove(o))
	}
	r := e.At(o.Key)
	return r != nil && r.From.Block == merge.Overrides && (merge.Equal(r.Value, o.Value) || e.Level(r.From.Policy) < level)
}

// gives reports whether some policy on the path has the same override, by which
// is asked.
func (e *Effective) gives(o Override, by func(Override) bool) bool {
	for i := range e.Layers {
		for p, block := range overrideBlocks(&e.Layers[i]) {
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
