package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// GEP-713, Example 1.
func TestDirectPolicy(t *testing.T) {
	w := read(t, "", "color-direct")
	w.checkTable(t, "color-direct")
	assert.Equal(t, []string{"g1 > r1 > b1", "g1 > r2 > b2"}, w.paths())
}

// colored are the paths of Examples 2 and 3.
var colored = []string{"g1 > r1 > b1", "g1 > r2 > b1", "g2 > r3 > b1", "g2 > r4 > b2"}

// GEP-713, Example 2.
func TestDefaultsAndOverrides(t *testing.T) {
	w := read(t, "", "color-inherited")
	w.checkTable(t, "color-inherited")
	assert.Equal(t, colored, w.paths())
}

// GEP-713, Example 3.
func TestMergedSpecs(t *testing.T) {
	w := read(t, "", "color-merged")
	w.checkTable(t, "color-merged")
	assert.Equal(t, colored, w.paths())
}

// GEP-713, abstract process for calculating effective meta resources.
func TestAbstractProcess(t *testing.T) {
	w := read(t, "", "process")
	combined := obj{"first": "m1", "second": "m2", "shared": "m2"}
	augmented := func(path string, spec obj, policies ...string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			assert.Equal(t, spec, w.at(t, path).Spec)
			assert.Equal(t, policies, on(w.at(t, path)))
		}
	}
	w.check(t, []expected{
		{
			"c1 is augmented by m1, whenever activated in the context of b1",
			augmented("a1 > b1 > c1", obj{"first": "m1", "shared": "m1"}, "m1"),
		},
		{
			"c1 is augmented by the combination of m1 + m2, whenever activated in the context of b2",
			augmented("a1 > b2 > c1", combined, "m1", "m2"),
		},
		{
			"c2 is augmented by the combination of m1 + m2",
			augmented("a1 > b2 > c2", combined, "m1", "m2"),
		},
	})
	assert.Equal(t, []string{"a1 > b1 > c1", "a1 > b2 > c1", "a1 > b2 > c2"}, w.paths(),
		"each of: a1 > b1 > c1, a1 > b2 > c1, and a1 > b2 > c2")
}
