package merge

import "sync"

// room is the lists that a fold works in. The next fold uses them again: they
// were the half of what most cost. Nothing of them is in a result.
type buffers struct {
	layers []Layer      // lowest first
	rules  []Effective  // E, sorted by key; none but hollow ones has another below it
	losses []loss       // in the order in which they were booked
	unsets []unsetEntry // in the order in which they joined

	// block and spare are for the rules of the block at hand, and for what E
	// becomes: the lists that are not E take turns with it.
	block, spare []Effective
}

var foldPool = sync.Pool{New: func() any { return new(fold) }}

// roomy is the longest list that waits for the next fold.
const maxPooledLen = 16 << 10

// release gives a fold back. What it points to is not held any longer.
func (f *fold) release() {
	r := buffers{
		layers: reset(f.layers, len(f.layers)),
		rules:  reset(f.rules, f.rulesSeen),
		losses: reset(f.losses, len(f.losses)),
		unsets: reset(f.unsets, len(f.unsets)),
		block:  reset(f.block, f.rulesSeen),
		spare:  reset(f.spare, f.rulesSeen),
	}
	*f = fold{buffers: r}
	foldPool.Put(f)
}

// emptied returns the room of a list of which so much was used at most, or nil
// where it is too much to keep.
func reset[T any](list []T, used int) []T {
	if cap(list) > maxPooledLen {
		return nil
	}
	clear(list[:min(used, cap(list))])
	return list[:0]
}
