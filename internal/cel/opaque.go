package cel

import (
	"slices"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// comparisonFunctions are the functions that compare the values of containers. cel-go
// treats an opaque value in one as equal to all others.
var comparisonFunctions = []string{operators.Equals, operators.NotEquals, "sets.contains", "sets.intersects", "sets.equivalent"}

// unknownIfOpaque returns a function whose result is unknown if an argument contains an
// opaque value.
func unknownIfOpaque(run functions.FunctionOp) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		if slices.ContainsFunc(args, containsOpaque) {
			return types.NewUnknown(1, nil)
		}
		return run(args...)
	}
}

// unknownIfOpaqueIn is unknownIfOpaque for the operator in: keys of a map are never
// opaque, and an item that is found is known.
func unknownIfOpaqueIn(run functions.FunctionOp) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		items, ok := args[1].(traits.Lister)
		if !ok || !containsOpaque(args[0]) && !containsOpaque(args[1]) {
			return run(args...)
		}
		for it := items.Iterator(); !containsOpaque(args[0]) && it.HasNext() == types.True; {
			if item := it.Next(); !containsOpaque(item) && types.Equal(args[0], item) == types.True {
				return types.True
			}
		}
		return types.NewUnknown(1, nil)
	}
}

// containsOpaque reports whether a value is opaque, or contains an opaque one.
func containsOpaque(v ref.Val) bool {
	switch v := v.(type) {
	case *types.Unknown:
		return true
	case *object:
		return HasOpaque(v.fields)
	case *list:
		return HasOpaque(v.items)
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if held, ok := v.Find(it.Next()); ok && containsOpaque(held) {
				return true
			}
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if containsOpaque(it.Next()) {
				return true
			}
		}
	}
	return false
}
