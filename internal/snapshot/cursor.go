package snapshot

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// cursor is a position in an index.
type cursor[V any] struct {
	tree    *btree.Map[string, V]
	iter    btree.MapIter[string, V]
	sought  []byte // the last key that was looked for
	started bool
	end     bool // past the last key
}

func newCursor[V any](tree *btree.Map[string, V]) cursor[V] {
	c := cursor[V]{tree: tree}
	if tree != nil {
		c.iter = tree.Iter()
	}
	return c
}

// maxSteps is the number of steps ahead before a seek searches the tree.
const maxSteps = 4

// seek moves to the first key that is not less than the one given.
func (c *cursor[V]) seek(key []byte) bool {
	if c.tree == nil {
		return false
	}
	ahead := c.started && string(key) > string(c.sought) // for the same key, the cursor may be past the first match
	c.sought, c.started = append(c.sought[:0], key...), true
	if ahead {
		for range maxSteps {
			if c.end || c.key() >= string(key) {
				return !c.end
			}
			c.next()
		}
	}
	c.end = !c.iter.Seek(string(key))
	return !c.end
}

func (c *cursor[V]) next() bool {
	c.end = !c.iter.Next()
	return !c.end
}

func (c *cursor[V]) key() string { return c.iter.Key() }

func (c *cursor[V]) value() V { return c.iter.Value() }

// RoutesOfBoth yields the routes that have a parent in either of two views, each as it is
// in both views: nil where it does not have the parent. They are sorted by kind,
// namespace and name.
func RoutesOfBoth(before, after *View, parent api.Ref) iter.Seq2[*gateway.Route, *gateway.Route] {
	return func(yield func(before, after *gateway.Route) bool) {
		prefix := key(parent.Kind, parent.Namespace, parent.Name)
		if before.byParent.tree == after.byParent.tree {
			for r := range after.byParent.withPrefix(prefix) {
				if !yield(r, r) {
					return
				}
			}
			return
		}
		mergeByKey(before.byParent.tree, after.byParent.tree, prefix, yield)
	}
}

// mergeByKey yields the values of two trees under a prefix by key, nil where one tree
// does not have the key.
func mergeByKey[V any](a, b *btree.Map[string, *V], prefix string, yield func(a, b *V) bool) {
	x, y := newCursor(a), newCursor(b)
	under := func(c *cursor[*V], ok bool) bool { return ok && strings.HasPrefix(c.key(), prefix) }
	hasX, hasY := under(&x, x.seek([]byte(prefix))), under(&y, y.seek([]byte(prefix)))
	for hasX || hasY {
		order := 0
		switch {
		case !hasY:
			order = -1
		case !hasX:
			order = 1
		default:
			order = strings.Compare(x.key(), y.key())
		}
		var left, right *V
		if order <= 0 {
			left, hasX = x.value(), under(&x, x.next())
		}
		if order >= 0 {
			right, hasY = y.value(), under(&y, y.next())
		}
		if !yield(left, right) {
			return
		}
	}
}
