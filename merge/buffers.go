package merge

import "sync"

// room is the lists that a fold works in. The next fold uses them again: they
// were the half of what most cost. Nothing of them is in a result.
type room struct {
	layers []Layer     // lowest first
	rules  []Effective // E, sorted by key; none but hollow ones has another below it
	losses []loss      // in the order in which they were booked
	unsets []unsetBy   // in the order in which they joined

	// block and spare are for the rules of the block at hand, and for what E
	// becomes: the lists that are not E take turns with it.
	block, spare []Effective
}

var folds = sync.Pool{New: func() any { return new(fold) }}

// roomy is the longest list that waits for the next fold.
const roomy = 16 << 10

// release gives a fold back. What it points to is not held any longer.
func (f *fold) release() {
	r := room{
		layers: emptied(f.layers, len(f.layers)),
		rules:  emptied(f.rules, f.seen),
		losses: emptied(f.losses, len(f.losses)),
		unsets: emptied(f.unsets, len(f.unsets)),
		block:  emptied(f.block, f.seen),
		spare:  emptied(f.spare, f.seen),
	}
	*f = fold{room: r}
	folds.Put(f)
}

// emptied returns the room of a list of which so much was used at most, or nil
// where it is too much to keep.
func emptied[T any](list []T, used int) []T {
	if cap(list) > roomy {
		return nil
	}
	clear(list[:min(used, cap(list))])
	return list[:0]
}
