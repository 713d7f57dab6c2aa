package ratelimit

import "math/bits"

// set is a set of the matches of a route, a bit for each.
type set []uint64

const word = 64

func newSet(n int) set { return make(set, (n+word-1)/word) }

func (s set) add(i int) { s[i/word] |= 1 << (i % word) }

func (s set) has(i int) bool { return s[i/word]&(1<<(i%word)) != 0 }

func (s set) clone() set { return append(set(nil), s...) }

// keep leaves what is in another one, too.
func (s set) keep(o set) {
	for i := range s {
		s[i] &= o[i]
	}
}

// join adds what is in another one, which may be nil. It reports whether that is
// anything.
func (s set) join(o set) bool {
	some := uint64(0)
	for i := range o {
		s[i] |= o[i]
		some |= o[i]
	}
	return some != 0
}

// next returns the first member from i on, -1 if there is none.
func (s set) next(i int) int {
	for w := i / word; w < len(s); w++ {
		rest := s[w]
		if w == i/word {
			rest &= ^uint64(0) << (i % word)
		}
		if rest != 0 {
			return w*word + bits.TrailingZeros64(rest)
		}
	}
	return -1
}
