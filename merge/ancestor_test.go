package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

func TestAncestors(t *testing.T) {
	for name, test := range map[string]struct {
		key  string
		n    int
		want string
		ok   bool
	}{
		"none of its segments":          {"a.b.c", 0, "", true},
		"the first":                     {"a.b.c", 1, "a", true},
		"all but the last":              {"a.b.c", 2, "a.b", true},
		"all of them":                   {"a.b.c", 3, "a.b.c", true},
		"more than it has":              {"a.b.c", 4, "", false},
		"a name in quotes":              {`a["b.c"].d`, 2, `a["b.c"]`, true},
		"before a name in quotes":       {`a.b["c.d"]`, 2, "a.b", true},
		"a name with the separator":     {`a["\x00"].b`, 2, `a["\x00"]`, true},
		"a name with the escape for it": {`a["\x01"].b`, 2, `a["\x01"]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := merge.ParseKey(test.key)
			require.NoError(t, err)
			got, ok := k.Ancestor(test.n)
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.want, got.String())
			if test.want != "" {
				want, err := merge.ParseKey(test.want)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
}
