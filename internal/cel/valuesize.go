package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"overrule.dev/overrule/merge"
)

// weight counts what a value holds, all the way down: one a value, and more
// for a long text. It stops soon after the limit, since a value in which
// others are shared can hold exponentially many.
func weight(v ref.Val) uint64 {
	var w weighing
	w.value(v)
	return w.sum
}

type weighing struct{ sum uint64 }

func (w *weighing) full() bool { return w.sum > Limit }

func (w *weighing) value(v ref.Val) {
	switch v := v.(type) {
	case *object:
		w.native(merge.UnpackMaps(v.fields))
	case *list:
		w.native(v.items)
	case types.String, types.Bytes:
		w.sum += weighText(v)
	case traits.Mapper:
		w.sum++
		for it := v.Iterator(); !w.full() && it.HasNext() == types.True; {
			key := it.Next()
			w.value(key)
			if held, ok := v.Find(key); ok {
				w.value(held)
			}
		}
	case traits.Lister:
		w.sum++
		for it := v.Iterator(); !w.full() && it.HasNext() == types.True; {
			w.value(it.Next())
		}
	default:
		w.sum++
	}
}

// native weighs decoded JSON without making CEL values of it.
func (w *weighing) native(v any) {
	w.sum++
	switch v := v.(type) {
	case string:
		w.sum += uint64(len(v)) / 10
	case []any:
		for i := 0; i < len(v) && !w.full(); i++ {
			w.native(v[i])
		}
	case map[string]any:
		for key, held := range v { // a sum: the order does not matter
			if w.full() {
				return
			}
			w.native(key)
			w.native(held)
		}
	}
}
