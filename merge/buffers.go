package merge

import "sync"

// buffers are the working lists of a fold. They are reused by later folds, which saves
// half of the cost of most. A result does not refer to them.
type buffers struct {
	layers []Layer      // lowest first
	rules  []Effective  // E, sorted by key; only empty maps have rules below them
	losses []loss       // in the order in which they were recorded
	unsets []unsetEntry // in the order in which they were added
	claims []claim      // of groups, in the order in which they were made

	// block has the rules of the current block, spare is for the next E. They are
	// swapped with rules.
	block, spare []Effective
}

var foldPool = sync.Pool{New: func() any { return new(fold) }}

// maxPooledLen is the maximum capacity of a list that is reused.
const maxPooledLen = 16 << 10

// release clears a fold and returns it to the pool.
func (f *fold) release() {
	r := buffers{
		layers: reset(f.layers, len(f.layers)),
		rules:  reset(f.rules, f.rulesSeen),
		losses: reset(f.losses, len(f.losses)),
		unsets: reset(f.unsets, len(f.unsets)),
		claims: reset(f.claims, len(f.claims)),
		block:  reset(f.block, f.rulesSeen),
		spare:  reset(f.spare, f.rulesSeen),
	}
	*f = fold{buffers: r}
	foldPool.Put(f)
}

// reset returns an empty list with the same memory, of which at most used items were
// set, or nil if the list is too large to reuse.
func reset[T any](list []T, used int) []T {
	if cap(list) > maxPooledLen {
		return nil
	}
	clear(list[:min(used, cap(list))])
	return list[:0]
}
