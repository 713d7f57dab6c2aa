package effective

import (
	"encoding/binary"
	"sync"

	"overrule.dev/overrule/merge"
)

// memo caches the folds of stacks. Paths with the same stack share one: the result
// depends on the stack alone. A generation that is full becomes the previous one, and
// results that are used again move into the current one.
type memo struct {
	mu                sync.Mutex
	current, previous map[string]*folded
	weight            int // of current
}

// folded is a stack and the result of its fold.
type folded struct {
	layers []merge.Layer
	*merge.Result

	size   int  // of the policies that only the memo may hold, in bytes of JSON
	binds  bool // a policy of the stack has rules that bind to rules of routes
	read   sync.Once
	limits *limits // of the result, computed on first use; nil for none
}

// appendMemoKey appends the key of a stack: the versions, levels, depths, places, tiers and
// parts of its policies, and how they are applied.
func appendMemoKey(b []byte, s *stack) []byte {
	for i := range s.layers {
		b = appendLayer(b, &s.layers[i])
	}
	return b
}

func appendLayer(b []byte, l *layer) []byte {
	b = binary.LittleEndian.AppendUint64(b, l.policy.Version)
	b = binary.AppendUvarint(b, uint64(l.Part))                                                  //nolint:gosec // an index of a list
	return append(b, byte(l.Level), byte(l.Depth), byte(l.Place), byte(l.Tier), appliedAs(l.As)) //nolint:gosec // a handful of levels and places
}

// appliedAs is a code for what overrides how a policy is applied.
func appliedAs(r *merge.Reading) byte {
	if r == nil {
		return 0
	}
	b := 1 | byte(r.Strategy)<<1
	if r.By != nil { // which policy it is follows from the stack
		b |= 1 << 7
	}
	return b
}

func (m *memo) get(key []byte) *folded {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.current[string(key)]; f != nil {
		return f
	}
	f := m.previous[string(key)]
	if f != nil {
		m.store(string(key), f)
	}
	return f
}

func (m *memo) put(key []byte, f *folded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(string(key), f)
}

func (m *memo) store(key string, f *folded) {
	if m.current == nil || m.weight >= maxMemoWeight {
		m.current, m.previous, m.weight = make(map[string]*folded, 64), m.current, 0
	}
	m.current[key] = f
	m.weight += f.weigh()
}

// bytesPerPart is the number of bytes of a policy's JSON that take as much memory as a
// part.
const bytesPerPart = 5

// weigh counts the parts of a result, each of which takes 50 to 100 bytes.
func (f *folded) weigh() int {
	n := 8 + f.size/bytesPerPart + len(f.layers) + len(f.Rules) + len(f.Notes)
	if f.binds {
		n += 12 * len(f.Rules) // their limits
	}
	for i := range f.Outcomes {
		n += 2 + len(f.Outcomes[i].Lost)
	}
	return n
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}
