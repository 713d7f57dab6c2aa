package cel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A comparison that depends on an opaque value at any depth is unknown.
func TestOpaque(t *testing.T) {
	on := &Variables{Effective: func() any {
		return m{"a": Opaque, "l": []any{int64(1), Opaque}, "m": m{"b": Opaque}, "o": []any{m{"b": Opaque}}, "n": int64(1), "k": m{"n": int64(1)}}
	}}
	for expression, want := range map[string]any{
		// of the answer, nil for none
		`effective.a == 1`: nil, `effective.a != 1`: nil, `1 == effective.a`: nil, `effective.a == "x"`: nil,
		`effective == {"a": 1}`: nil, `effective != {"a": 1}`: nil, `!(effective != {"a": 1})`: nil, `{"a": 1} != effective`: nil,
		`effective.m == {"b": 1}`: nil, `effective.m != {"b": 1}`: nil, `effective.m == {"c": 1}`: nil,
		`[effective] == [{"a": 1}]`: nil, `[effective] != [{"a": 1}]`: nil, `[effective.a] == [1]`: nil, `[1] == [effective.a]`: nil,
		`{"x": effective} == {"x": {"a": 1}}`: nil, `{"x": effective.m} != {"x": {"b": 1}}`: nil, `{"x": [effective.m]} == {"x": [{"b": 1}]}`: nil,
		`effective in [{"a": 1}]`: nil, `!(effective in [{"a": 1}])`: nil, `effective.m in [{"b": 1}]`: nil, `{"b": 1} in effective.o`: nil, `{"b": 1} in [effective.m]`: nil,
		`[effective.m] in [[{"b": 1}]]`: nil, `2 in effective.l`: nil, `2 in [1, effective.a]`: nil, `effective.a in [1]`: nil,
		`sets.contains([effective], [{"a": 1}])`: nil, `sets.contains([1], [effective.a])`: nil, `sets.equivalent([effective.m], [{"b": 1}])`: nil, `sets.intersects([effective.m], [{"b": 1}])`: nil,
		`[effective.m].exists(x, x == {"b": 1})`: nil, `effective.o.all(x, x != {"b": 1})`: nil, `effective.o.filter(x, x == {"b": 1}).size() == 1`: nil,
		`[effective.a].join(",") == "x"`: nil, `["x", effective.a].join(",").size() == 3`: nil, `math.greatest([effective.a, 3]) == 3`: nil,
		`effective.l + [1] == [1, 1, 1]`: nil, `(effective.l + [1])[1] == 1`: nil, `dyn(effective.o)[0] == {"b": 1}`: nil,
		`effective.transformMap(k, v, k == "m", v) == {"m": {"b": 1}}`: nil, `effective.transformList(k, v, v)[3] == {"b": 1}`: nil,
		// which depends on no opaque value
		`"b" in effective.m`: true, `"c" in effective.m`: false, `has(effective.a)`: true, `1 in effective.l`: true, `effective.l.size() == 2`: true,
		`effective.n == 1`: true, `effective.n != 1`: false, `effective.k == {"n": 1}`: true, `effective.k != {"n": 1}`: false, `[effective.k] == [{"n": 1}]`: true, `effective.k in [{"n": 1}]`: true,
		`1 in [effective.a, 1]`: nil, `effective.a == null`: nil,
	} {
		t.Run(expression, func(t *testing.T) {
			v, err := CompileValidation(expression)
			require.NoError(t, err)
			met, _, err := v.Evaluate(on)
			if want == nil {
				require.ErrorIs(t, err, ErrOpaque, "%v", met)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want, met)
		})
	}
}
