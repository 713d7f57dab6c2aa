package cel

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"overrule.dev/overrule/merge"
)

// location is where a value is in the spec. The zero location is the spec.
type location struct {
	parent *location
	key    string
	index  int    // in the list above, -1 in a map
	reads  *reads // nil if reads are not recorded
}

// field returns the location of a field of a map.
func (l *location) field(name string) location {
	return location{parent: l, key: name, index: -1, reads: l.reads}
}

// String returns the path of the location in the format of merge.Key, with [0] for an
// element of a list.
func (l *location) String() string {
	text, names := "", merge.Key{}
	var steps []*location
	for at := l; at.parent != nil; at = at.parent {
		steps = append(steps, at)
	}
	for _, step := range slices.Backward(steps) {
		if step.index < 0 {
			names = names.Child(step.key)
			continue
		}
		text = join(text, names.String()) + "[" + strconv.Itoa(step.index) + "]"
		names = merge.Key{}
	}
	return join(text, names.String())
}

// object is a map of the spec. Unlike cel-go's own maps it has a location, and the
// selection of a missing key is a *missingKeyError. Its values are converted to CEL
// values when they are selected.
type object struct {
	location
	fields map[string]any
}

// list is a list of the spec with its location.
type list struct {
	location
	items []any
}

var (
	_ traits.Mapper = (*object)(nil)
	_ traits.Lister = (*list)(nil)
)

// value converts a value at a location to a CEL value.
func value(native any, at location) ref.Val {
	switch v := native.(type) {
	case map[string]any:
		return &object{location: at, fields: v}
	case []any:
		return &list{location: at, items: v}
	default:
		at.reads.add(&at, native)
		return adapter.NativeToValue(v)
	}
}

// Opaque replaces a value of a variable on which an expression must not depend. The
// expression can test whether it is present; an evaluation that needs more fails with
// ErrOpaque.
var Opaque any = opaque{}

type opaque struct{}

// opaqueAdapter converts decoded JSON that may contain Opaque to CEL values.
type opaqueAdapter struct{ types.Adapter }

var adapter types.Adapter = opaqueAdapter{types.DefaultTypeAdapter}

// NativeToValue implements types.Adapter.
func (a opaqueAdapter) NativeToValue(native any) ref.Val {
	switch v := native.(type) {
	case opaque:
		return types.NewUnknown(1, nil)
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	default:
		return a.Adapter.NativeToValue(native)
	}
}

// HasOpaque reports whether decoded JSON contains Opaque.
func HasOpaque(native any) bool {
	switch v := native.(type) {
	case opaque:
		return true
	case map[string]any:
		for _, below := range v {
			if HasOpaque(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, HasOpaque)
	}
	return false
}

// unpackField returns a field of a map. A packed value is unpacked in place: conditions
// mostly read one of many fields, more than once.
func unpackField(fields map[string]any, name string) (native any, ok bool) {
	native, ok = fields[name]
	if p, packed := native.(merge.Packed); packed {
		native = p.Unpack()
		fields[name] = native
	}
	return native, ok
}

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	native, ok := unpackField(o.fields, string(name))
	if !ok {
		return types.WrapErr(&missingKeyError{from: o, key: string(name)}), false
	}
	return value(native, o.field(string(name))), true
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	v, _ := o.Find(key)
	return v
}

// Contains implements traits.Container. Only strings are keys.
func (o *object) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	if !ok {
		return types.False
	}
	_, ok = o.fields[string(name)]
	return types.Bool(ok)
}

// Size implements traits.Sizer.
func (o *object) Size() ref.Val { return types.Int(len(o.fields)) }

// Iterator implements traits.Iterable, over the keys in order: each evaluation reads the
// same values.
func (o *object) Iterator() traits.Iterator {
	return o.reads.iterator(types.NewStringList(adapter, slices.Sorted(maps.Keys(o.fields))).Iterator(), nil)
}

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val { return o.withoutLocation().(ref.Val).Equal(other) }

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return o.withoutLocation().ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val { return o.withoutLocation().ConvertToType(t) }

// Type implements ref.Val.
func (*object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return merge.UnpackMaps(o.fields) }

// withoutLocation returns the same map as a map of cel-go.
func (o *object) withoutLocation() traits.Mapper {
	return types.NewStringInterfaceMap(adapter, merge.UnpackMaps(o.fields))
}

// Get implements traits.Indexer.
func (l *list) Get(index ref.Val) ref.Val {
	i, err := types.IndexOrError(index)
	if err != nil {
		return types.WrapErr(err)
	}
	if i < 0 || i >= len(l.items) {
		return types.NewErr("index out of bounds: %d", i)
	}
	return value(l.items[i], location{parent: &l.location, index: i, reads: l.reads})
}

// Size implements traits.Sizer.
func (l *list) Size() ref.Val { return types.Int(len(l.items)) }

// Add implements traits.Adder.
func (l *list) Add(other ref.Val) ref.Val { return l.withoutLocation().Add(other) }

// Contains implements traits.Container.
func (l *list) Contains(v ref.Val) ref.Val { return l.withoutLocation().Contains(v) }

// Iterator implements traits.Iterable. Its elements have no location, unless reads are
// recorded: a key that is missing in one is missing inside a comprehension.
func (l *list) Iterator() traits.Iterator { return l.reads.iterator(l.withoutLocation().Iterator(), l) }

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val { return l.withoutLocation().(ref.Val).Equal(other) }

// ConvertToNative implements ref.Val.
func (l *list) ConvertToNative(t reflect.Type) (any, error) {
	return l.withoutLocation().ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(t ref.Type) ref.Val { return l.withoutLocation().ConvertToType(t) }

// Type implements ref.Val.
func (*list) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *list) Value() any { return l.items }

// withoutLocation returns the same list as a list of cel-go.
func (l *list) withoutLocation() traits.Lister { return types.NewDynamicList(adapter, l.items) }

// missingKeyError is the selection of a key that a map of the spec does not have.
type missingKeyError struct {
	from *object
	key  string
}

// MissesKey reports whether the error of an evaluation is a missing key of a variable.
func MissesKey(err error) bool {
	_, misses := errors.AsType[*missingKeyError](err)
	return misses
}

// Error names the key by its path.
func (m *missingKeyError) Error() string { return "no such key: " + m.path() }

func (m *missingKeyError) path() string {
	at := m.from.field(m.key)
	return at.String()
}

// join joins two parts of a path, with a dot if needed.
func join(a, b string) string {
	if a == "" || b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}
