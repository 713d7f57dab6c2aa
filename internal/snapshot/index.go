package snapshot

import (
	"iter"
	"maps"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	api "overrule.dev/overrule/api/v1alpha1"
)

// index is a sorted map that is copied on the first write after a freeze.
type index[V any] struct {
	tree  *btree.Map[string, V]
	owned bool // the tree is not shared yet
}

// copyLock guards btree's Copy, which writes to the tree that it copies: two views can
// share a tree and be copied at the same time.
var copyLock sync.Mutex

func (i *index[V]) ensureOwned() {
	if i.owned {
		return
	}
	i.owned = true
	if i.tree == nil {
		i.tree = &btree.Map[string, V]{}
		return
	}
	copyLock.Lock()
	defer copyLock.Unlock()
	i.tree = i.tree.Copy()
}

func (i *index[V]) set(key string, v V) {
	i.ensureOwned()
	i.tree.Set(key, v)
}

func (i *index[V]) remove(key string) {
	i.ensureOwned()
	i.tree.Delete(key)
}

// link is an index of objects by what they refer to.
type link interface {
	put(key string, o Object)
	removeUnless(key string, o Object)
}

func (i *index[V]) put(key string, o Object) { i.set(key, o.(V)) } //nolint:forcetypeassert // links has its type

// removeUnless removes a key, unless it is one of an object.
func (i *index[V]) removeUnless(key string, o Object) {
	if has, ok := i.get(key); ok && any(has) != any(o) {
		i.remove(key)
	}
}

func (i *index[V]) empty() bool { return i.tree == nil || i.tree.Len() == 0 }

func (i *index[V]) get(key string) (v V, ok bool) {
	if i.tree == nil {
		return v, false
	}
	return i.tree.Get(key)
}

// withPrefix yields the values whose keys start with the prefix, in key order.
func (i *index[V]) withPrefix(prefix string) iter.Seq[V] {
	return func(yield func(V) bool) {
		if i.tree == nil {
			return
		}
		i.tree.Ascend(prefix, func(key string, v V) bool {
			return strings.HasPrefix(key, prefix) && yield(v)
		})
	}
}

// counts are the numbers of objects by kind, copied on the first write after a
// freeze.
type counts struct {
	of    map[api.PolicyKind]int
	owned bool
}

// add counts one object less or more, and returns the new count.
func (c *counts) add(kind api.PolicyKind, deleted bool) int {
	if !c.owned {
		c.owned = true
		if c.of = maps.Clone(c.of); c.of == nil {
			c.of = make(map[api.PolicyKind]int)
		}
	}
	if deleted {
		c.of[kind]--
	} else {
		c.of[kind]++
	}
	return c.of[kind]
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

// appendKey is key in a buffer.
func appendKey(to []byte, parts ...string) []byte {
	for _, p := range parts {
		to = append(append(to, p...), 0)
	}
	return to
}
