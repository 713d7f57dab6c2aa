package ratelimit

import "math/bits"

// bitset is a set of the matches of a route, by index.
type bitset []uint64

const wordSize = 64

func newBitset(n int) bitset { return make(bitset, (n+wordSize-1)/wordSize) }

func (s bitset) add(i int) { s[i/wordSize] |= 1 << (i % wordSize) }

func (s bitset) has(i int) bool { return s[i/wordSize]&(1<<(i%wordSize)) != 0 }

// intersect removes what is not in o, which may be nil.
func (s bitset) intersect(o bitset) {
	for i := range s {
		if o == nil {
			s[i] = 0
		} else {
			s[i] &= o[i]
		}
	}
}

// union adds the members of o, which may be nil. It reports whether o has any.
func (s bitset) union(o bitset) bool {
	some := uint64(0)
	for i := range o {
		s[i] |= o[i]
		some |= o[i]
	}
	return some != 0
}

// next returns the first member from i on, -1 if there is none.
func (s bitset) next(i int) int {
	for w := i / wordSize; w < len(s); w++ {
		rest := s[w]
		if w == i/wordSize {
			rest &= ^uint64(0) << (i % wordSize)
		}
		if rest != 0 {
			return w*wordSize + bits.TrailingZeros64(rest)
		}
	}
	return -1
}
