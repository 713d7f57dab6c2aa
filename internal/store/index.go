package store

import (
	"iter"
	"strings"
	"sync"

	"github.com/tidwall/btree"
)

// index is a sorted map that is copied on the first write after a freeze.
type index[V any] struct {
	tree *btree.Map[string, V]
	mine bool // the tree is not shared yet
}

// copying guards btree's Copy, which writes to the tree that it copies: two
// views may share a tree and be copied at the same moment.
var copying sync.Mutex

func (x *index[V]) own() {
	if x.mine {
		return
	}
	x.mine = true
	if x.tree == nil {
		x.tree = &btree.Map[string, V]{}
		return
	}
	copying.Lock()
	defer copying.Unlock()
	x.tree = x.tree.Copy()
}

func (x *index[V]) set(key string, v V) {
	x.own()
	x.tree.Set(key, v)
}

func (x *index[V]) remove(key string) {
	x.own()
	x.tree.Delete(key)
}

func (x *index[V]) empty() bool { return x.tree == nil || x.tree.Len() == 0 }

// any reports whether some key starts with the prefix.
func (x *index[V]) any(prefix string) (found bool) {
	if x.tree != nil {
		x.tree.Ascend(prefix, func(key string, _ V) bool {
			found = strings.HasPrefix(key, prefix)
			return false
		})
	}
	return found
}

func (x *index[V]) get(key string) (v V, ok bool) {
	if x.tree == nil {
		return v, false
	}
	return x.tree.Get(key)
}

// under yields the values whose keys start with the prefix, in key order.
func (x *index[V]) under(prefix string) iter.Seq[V] {
	return func(yield func(V) bool) {
		if x.tree == nil {
			return
		}
		x.tree.Ascend(prefix, func(key string, v V) bool {
			return strings.HasPrefix(key, prefix) && yield(v)
		})
	}
}

// key joins parts so that a prefix of parts is a prefix of the key.
func key(parts ...string) string {
	size := len(parts)
	for _, p := range parts {
		size += len(p)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range parts {
		b.WriteString(p)
		b.WriteByte(0)
	}
	return b.String()
}
