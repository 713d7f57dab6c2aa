package effective

import (
	"encoding/binary"
	"sync"

	"overrule.dev/overrule/merge"
)

// memoWeight is how much a generation of the memo holds, in parts of results:
// some 16,000 small ones, and fewer large ones, so that a policy of two thousand
// rules on every route does not fill the memory. Two generations are about
// 40 MB.
const memoWeight = 1 << 18

// memo remembers the folds of stacks. Paths with the same stack share one: the
// result depends on the stack alone. When a generation is full it becomes the
// old one, and what is asked for again moves into the new.
type memo struct {
	mu       sync.Mutex
	now, old map[string]*merge.Result
	weight   int // of now
}

// memoKey identifies a stack by the versions and levels of its policies, and
// how they are read.
func memoKey(s stack) string {
	b := make([]byte, 0, 10*len(s.layers))
	for i, l := range s.layers {
		b = binary.LittleEndian.AppendUint64(b, s.versions[i])
		b = append(b, byte(l.Level), reading(l.As)) //nolint:gosec // a handful of levels
	}
	return string(b)
}

func reading(r *merge.Reading) byte {
	if r == nil {
		return 0
	}
	return 1 | byte(r.Strategy)<<1 | byte(r.Block)<<4
}

func (m *memo) get(key string) (*merge.Result, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.now[key]; ok {
		return r, true
	}
	r, ok := m.old[key]
	if ok {
		m.store(key, r)
	}
	return r, ok
}

func (m *memo) put(key string, r *merge.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(key, r)
}

func (m *memo) store(key string, r *merge.Result) {
	if m.now == nil || m.weight >= memoWeight {
		m.now, m.old, m.weight = make(map[string]*merge.Result, 64), m.now, 0
	}
	m.now[key] = r
	m.weight += weigh(r)
}

// weigh counts the parts of a result, each of which takes 50 to 100 bytes.
func weigh(r *merge.Result) int {
	n := 8 + len(r.Rules) + len(r.Notes)
	for i := range r.Outcomes {
		n += 2 + len(r.Outcomes[i].Lost)
	}
	return n
}
