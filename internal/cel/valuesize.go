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

func (w *sizeCounter) exceeded() bool { return w.sum > Limit }

func (w *sizeCounter) addValue(v ref.Val) {
	switch v := v.(type) {
	case *object:
		w.addNative(merge.UnpackMaps(v.fields))
	case *list:
		w.addNative(v.items)
	case types.String, types.Bytes:
		w.sum += costOfText(v)
	case traits.Mapper:
		w.sum++
		for it := v.Iterator(); !w.exceeded() && it.HasNext() == types.True; {
			key := it.Next()
			w.addValue(key)
			if held, ok := v.Find(key); ok {
				w.addValue(held)
			}
		}
	case traits.Lister:
		w.sum++
		for it := v.Iterator(); !w.exceeded() && it.HasNext() == types.True; {
			w.addValue(it.Next())
		}
	default:
		w.sum++
	}
}

// addNative adds decoded JSON without converting it to CEL values.
func (w *sizeCounter) addNative(v any) {
	w.sum++
	switch v := v.(type) {
	case string:
		w.sum += uint64(len(v)) / 10
	case []any:
		for i := 0; i < len(v) && !w.exceeded(); i++ {
			w.addNative(v[i])
		}
	case map[string]any:
		for key, held := range v { // a sum: the order does not matter
			if w.exceeded() {
				return
			}
			w.addNative(key)
			w.addNative(held)
		}
	}
}
