package merge_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// The fold agrees with a slow reference that follows the text of SEMANTICS section 3.
func FuzzFoldReference(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte, _ uint64) {
		layers := (&generator{data: data, tidy: true}).layers(t)
		assert.Equal(t, reference(layers), effectiveOf(fold(t, layers...)))
	})
}

type held struct {
	merge.Rule
	from merge.Origin
}

// reference is the fold as specified, without losses and optimizations.
func reference(layers []merge.Layer) []string {
	layers = slices.Clone(layers)
	slices.SortFunc(layers, func(a, b merge.Layer) int { return cmp.Or(cmp.Compare(a.Level, b.Level), merge.Compare(a, b)) })
	var s slow
	for len(layers) > 0 { // from the lowest up
		n := len(layers) - 1
		last := layers[n]
		for last.SameTarget != hierarchical && n > 0 && layers[n-1].Level == last.Level && layers[n-1].SameTarget == last.SameTarget {
			n--
		}
		s.group(layers[n:])
		layers = layers[:n]
	}
	slices.SortFunc(s.e, func(a, b held) int { return a.Key.Compare(b.Key) })
	var out []string
	for _, h := range s.e {
		out = append(out, fmt.Sprintf("%s=%v %s", h.Key, h.Value, at(h.from)))
	}
	return out
}

// slow is the state of the reference.
type slow struct {
	e     []held
	unset []entry
}

type entry struct {
	merge.Name
	by *merge.Policy
}

// read is a block with its origin, as it is applied on its path.
type read struct {
	merge.Rules
	from merge.Origin
}

// group applies the policies of one target, the highest first in the list.
func (s *slow) group(layers []merge.Layer) {
	isOverride := func(b read) bool { return b.Block == merge.Overrides }
	isNone := func(b read) bool { return b.Block != merge.Overrides }
	var weak, strong []read
	for i := range layers {
		weak = append(weak, slices.DeleteFunc(readings(layers[i]), isOverride)...)
		strong = append(strong, slices.DeleteFunc(readings(layers[len(layers)-1-i]), isNone)...)
	}
	switch layers[0].SameTarget {
	case collect:
		s.collect(weak, strong)
	case oldestWins:
		s.one(append(weak, strong...))
	default: // a single one
		s.one(readings(layers[0]))
	}
	for _, l := range layers {
		for _, n := range l.Unset {
			s.unset = append(s.unset, entry{n, l.Policy})
		}
	}
}

// readings returns the blocks of a layer in their order: the object's,
// defaults, bare, overrides.
func readings(l merge.Layer) []read {
	blocks := slices.Clone(l.Blocks)
	slices.SortStableFunc(blocks, func(a, b merge.Rules) int {
		return cmp.Compare((a.Block+1)%(merge.Object+1), (b.Block+1)%(merge.Object+1))
	})
	var out []read
	for _, b := range blocks {
		if b.Block == merge.Bare && l.As != nil {
			if l.As.By != nil {
				continue // another policy replaces it
			}
			b.Strategy = l.As.Strategy
		}
		if len(b.Rules) > 0 {
			out = append(out, read{b, merge.Origin{Policy: l.Policy, Block: b.Block, Conditional: b.When != nil}})
		}
	}
	return out
}

// one applies blocks one after another.
func (s *slow) one(blocks []read) {
	for _, b := range blocks {
		if b.When != nil && !takesPart(b.Rules, s.e) {
			continue
		}
		left := s.left(b)
		switch {
		case b.Block == merge.Overrides && b.Strategy == merge.Atomic:
			s.e = left
		case b.Block == merge.Overrides:
			s.e = set(s.e, left)
		case len(s.e) == 0:
			s.e = left
		case b.Strategy != merge.Atomic:
			s.e = add(s.e, left)
		}
	}
}

// collect applies blocks independently of each other.
func (s *slow) collect(weak, strong []read) {
	there, siblings := s.e, []held(nil)
	for _, b := range weak {
		if (b.When == nil || takesPart(b.Rules, there)) && (len(there) == 0 || b.Strategy != merge.Atomic) {
			siblings = add(siblings, s.left(b))
		}
	}
	added := add(there, siblings)[len(there):]
	seen := slices.Concat(there, added)
	var sets []held
	for _, b := range strong {
		if b.When == nil || takesPart(b.Rules, seen) {
			sets = set(sets, s.left(b))
			if b.Strategy == merge.Atomic {
				there = nil
			}
		}
	}
	s.e = set(slices.Concat(there, added), sets)
}

// left returns the rules of a block that are not unset.
func (s *slow) left(b read) []held {
	var left []held
	for _, r := range b.Rules.Rules {
		gone := b.Block != merge.Overrides && slices.ContainsFunc(s.unset, func(u entry) bool { return u.by != b.from.Policy && u.Matches(r.Key) })
		if !gone {
			left = append(left, held{r, b.from})
		}
	}
	return left
}

func takesPart(b merge.Rules, e []held) bool {
	spec := map[string]any{}
	slices.SortFunc(e, func(a, b held) int { return a.Key.Compare(b.Key) })
	for _, h := range e {
		at, segments := spec, h.Key.Segments()
		for _, s := range segments[:len(segments)-1] {
			if _, ok := at[s]; !ok && h.Value != nil {
				at[s] = map[string]any{}
			}
			at, _ = at[s].(map[string]any)
		}
		if h.Value != nil {
			at[segments[len(segments)-1]] = h.Value
			if h.EmptyMap {
				at[segments[len(segments)-1]] = map[string]any{}
			}
		}
	}
	a := b.When.Evaluate(spec)
	if a.Err != nil {
		return b.Block == merge.Overrides
	}
	return a.Met && a.Missing == ""
}

// set sets each rule of an override in E, and removes the rules in its place.
func set(e, block []held) []held {
	block = slices.Clone(block) // the empty maps last
	slices.SortStableFunc(block, func(a, b held) int { return cmp.Compare(btoi(a.EmptyMap), btoi(b.EmptyMap)) })
	for _, h := range block {
		if h.EmptyMap && slices.ContainsFunc(e, func(o held) bool { return !o.EmptyMap && o.Key.Holds(h.Key) }) {
			continue // replaces nothing
		}
		e = slices.DeleteFunc(slices.Clone(e), func(o held) bool { return collide(o.Rule, h.Rule) })
		e = append(e, h)
	}
	return e
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// add adds each rule whose place in E is free.
func add(e, block []held) []held {
	had := slices.Clone(e)
	e = slices.Clone(e)
	for _, h := range block {
		if !slices.ContainsFunc(had, func(o held) bool { return collide(o.Rule, h.Rule) }) {
			e = append(e, h)
		}
	}
	return e
}
