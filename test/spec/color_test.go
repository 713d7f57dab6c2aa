package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// GEP-713, Example 1.
func TestDirectPolicy(t *testing.T) {
	w := read(t, "", "color-direct")
	w.check(t, []expected{
		{
			"1. All traffic directed to Backend b1 must be colored red.",
			hasSpec("g1 > r1 > b1", obj{"color": "red"}),
		},
		{
			"2. Status of Backend b1 should be reported as affected by the ColorPolicy p1.",
			isAffectedBy("b1", "p1"),
		},
		{
			"3. Status of Backend b2 should NOT be reported as affected by any policy.",
			isAffectedBy("b2"),
		},
		{
			"4. Status of ColorPolicy p1 must be reported as enforced.",
			hasState("p1", api.Enforced),
		},
		{
			"5. Status of ColorPolicy p2 must be reported as NOT enforced, due to conflict with ColorPolicy p1.",
			hasState("p2", api.Conflicted, "p1"),
		},
	})
	assert.Equal(t, []string{"g1 > r1 > b1", "g1 > r2 > b2"}, w.paths())
}

// colored are the paths of Examples 2 and 3.
var colored = []string{"g1 > r1 > b1", "g1 > r2 > b1", "g2 > r3 > b1", "g2 > r4 > b2"}

// GEP-713, Example 2.
func TestDefaultsAndOverrides(t *testing.T) {
	w := read(t, "", "color-inherited")
	w.check(t, []expected{
		{
			"1. Traffic directed to g1 > r1 > b1 must be colored blue (more specific p2 spec beats less specific defaults at p1).",
			hasSpec("g1 > r1 > b1", obj{"color": "blue"}),
		},
		{
			"2. Traffic directed to g1 > r2 > b1 must be colored red (implicit defaults specified at p1 not replaced by any other policy).",
			hasSpec("g1 > r2 > b1", obj{"color": "red"}),
		},
		{
			"3. Traffic directed to g2 > r3 > b1 must be colored yellow (overrides specified at p3 not replaced by any other policy).",
			hasSpec("g2 > r3 > b1", obj{"color": "yellow"}),
		},
		{
			"4. Traffic directed to g2 > r4 > b2 must be colored yellow (overrides specified at p3 beats more specific policy p4).",
			hasSpec("g2 > r4 > b2", obj{"color": "yellow"}),
		},
		{
			"5. Status of Backend b1 should be reported as affected by the ColorPolicy resources p1, p2 and p3.",
			isAffectedBy("b1", "p1", "p2", "p3"),
		},
		{
			"6. Status of Backend b2 should be reported as affected by the ColorPolicy resource p3.",
			isAffectedBy("b2", "p3"),
		},
		{
			"7. Status of ColorPolicy p1 must be reported as partially enforced, due to in some cases beaten by p2.",
			hasState("p1", api.PartiallyEnforced, "p2"),
		},
		{
			"8. Status of ColorPolicy p2 must be reported as enforced.",
			hasState("p2", api.Enforced),
		},
		{
			"9. Status of ColorPolicy p3 must be reported as enforced.",
			hasState("p3", api.Enforced),
		},
		{
			"10. Status of ColorPolicy p4 must be reported as NOT enforced, due to being overridden by ColorPolicy p3.",
			hasState("p4", api.Overridden, "p3"),
		},
	})
	assert.Equal(t, colored, w.paths())
}

// GEP-713, Example 3.
func TestMergedSpecs(t *testing.T) {
	colors := func(of obj) map[string]any { return obj{"colors": of} }
	w := read(t, "", "color-merged")
	w.check(t, []expected{
		{
			"1. Traffic directed to g1 > r1 > b1 must be colored dark:UNDEFINED,light:blue (more specific p2 spec beats less specific atomic defaults from p1.",
			hasSpec("g1 > r1 > b1", colors(obj{"light": "blue"})),
		},
		{
			"2. Traffic directed to g1 > r2 > b1 must be colored dark:brown,light:red (implicit atomic defaults specified at p1 not replaced by any other policy).",
			hasSpec("g1 > r2 > b1", colors(obj{"dark": "brown", "light": "red"})),
		},
		{
			"3. Traffic directed to g2 > r3 > b1 must be colored dark:UNDEFINED,light:yellow (patch overrides specified at p3 not replaced, nor extended by any other policy).",
			hasSpec("g2 > r3 > b1", colors(obj{"light": "yellow"})),
		},
		{
			"4. Traffic directed to g2 > r4 > b2 must be colored dark:olive,light:yellow (patch overrides specified by p3 beats more specific policy p4, which still extends the spec with a specific value for dark.",
			hasSpec("g2 > r4 > b2", colors(obj{"dark": "olive", "light": "yellow"})),
		},
		{
			"5. Status of Backend b1 should be reported as affected by the ColorPolicy resources p1, p2 and p3.",
			isAffectedBy("b1", "p1", "p2", "p3"),
		},
		{
			"6. Status of Backend b2 should be reported as affected by the ColorPolicy resource p3 and p4.",
			isAffectedBy("b2", "p3", "p4"),
		},
		{
			"7. Status of ColorPolicy p1 must be reported as partially enforced, due to in some cases atomically beaten by p2.",
			hasState("p1", api.PartiallyEnforced, "p2", "p2"), // both colors of the policy
		},
		{
			"8. Status of ColorPolicy p2 must be reported as enforced.",
			hasState("p2", api.Enforced),
		},
		{
			"9. Status of ColorPolicy p3 must be reported as enforced.",
			hasState("p3", api.Enforced),
		},
		{
			"10. Status of ColorPolicy p4 must be reported as partially enforced, due to being partially overridden by ColorPolicy p3.",
			hasState("p4", api.PartiallyEnforced, "p3"),
		},
	})
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
