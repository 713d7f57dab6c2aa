package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"overrule.dev/overrule/merge"
)

// valueSize returns the number of values in a value, recursively; a long string counts
// for more. It stops soon after Limit, since a value with shared parts can contain
// exponentially many.
func valueSize(v ref.Val) uint64 {
	var w sizeCounter
	w.addValue(v)
	return w.sum
}

type sizeCounter struct{ sum uint64 }

func (c *sizeCounter) exceeded() bool { return c.sum > Limit }

func (c *sizeCounter) addValue(v ref.Val) {
	switch v := v.(type) {
	case *object:
		c.addNative(merge.UnpackMaps(v.fields))
	case *list:
		c.addNative(v.items)
	case types.String, types.Bytes:
		c.sum += costOfText(v)
	case traits.Mapper:
		c.sum++
		for it := v.Iterator(); !c.exceeded() && it.HasNext() == types.True; {
			key := it.Next()
			c.addValue(key)
			if held, ok := v.Find(key); ok {
				c.addValue(held)
			}
		}
	case traits.Lister:
		c.sum++
		for it := v.Iterator(); !c.exceeded() && it.HasNext() == types.True; {
			c.addValue(it.Next())
		}
	default:
		c.sum++
	}
}

// addNative adds decoded JSON without converting it to CEL values.
func (c *sizeCounter) addNative(v any) {
	c.sum++
	switch v := v.(type) {
	case string:
		c.sum += uint64(len(v)) / 10
	case []any:
		for i := 0; i < len(v) && !c.exceeded(); i++ {
			c.addNative(v[i])
		}
	case map[string]any:
		for key, held := range v { // a sum: the order does not matter
			if c.exceeded() {
				return
			}
			c.addNative(key)
			c.addNative(held)
		}
	}
}
