package effective

import (
	"encoding/binary"
	"sync"

	"overrule.dev/overrule/merge"
)

// memoSize is how many results a generation of the memo holds. Two generations
// of 16,384 small results are about 30 MB.
const memoSize = 1 << 14

// memo remembers the folds of stacks. Paths with the same stack share one: the
// result depends on the stack alone. When a generation is full it becomes the
// old one, and what is asked for again moves into the new.
type memo struct {
	mu       sync.Mutex
	now, old map[string]*merge.Result
}

// memoKey identifies a stack by the versions and levels of its policies.
func memoKey(s stack) string {
	b := make([]byte, 0, 9*len(s.layers))
	for i, l := range s.layers {
		b = binary.LittleEndian.AppendUint64(b, s.versions[i])
		b = append(b, byte(l.Level)) //nolint:gosec // a handful of levels
	}
	return string(b)
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
	if m.now == nil || len(m.now) >= memoSize {
		m.now, m.old = make(map[string]*merge.Result, 64), m.now
	}
	m.now[key] = r
}
