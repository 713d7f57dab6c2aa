package ratelimit

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// members lists what next finds.
func members(s bitset) []int {
	var out []int
	for i := s.next(0); i >= 0; i = s.next(i + 1) {
		out = append(out, i)
	}
	return out
}

func setOf(n int, all ...int) bitset {
	s := newBitset(n)
	for _, i := range all {
		s.add(i)
	}
	return s
}

func TestBitsetWords(t *testing.T) {
	all := []int{0, 1, 62, 63, 64, 65, 127, 128, 4095}
	s := setOf(4096, all...)
	assert.Equal(t, all, members(s))
	for _, i := range all {
		assert.True(t, s.has(i), i)
	}
	assert.False(t, s.has(2))
	assert.False(t, s.has(129))
	assert.Equal(t, 128, s.next(128))
	assert.Equal(t, 4095, s.next(129))
	assert.Equal(t, -1, s.next(4096))
}

func TestEmptyBitset(t *testing.T) {
	assert.Equal(t, -1, bitset(nil).next(0))
	assert.Equal(t, -1, newBitset(0).next(0))
	assert.Equal(t, -1, newBitset(100).next(3))
}

func TestBitsetUnionIntersect(t *testing.T) {
	a, b := setOf(130, 1, 64, 129), setOf(130, 64, 129)
	kept := slices.Clone(a)
	kept.intersect(b)
	assert.Equal(t, []int{64, 129}, members(kept))
	assert.True(t, b.union(a))
	assert.Equal(t, []int{1, 64, 129}, members(b))
	assert.False(t, b.union(nil))
	assert.False(t, b.union(newBitset(130)))
	assert.Equal(t, []int{1, 64, 129}, members(b))
}
