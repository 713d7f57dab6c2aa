package worlds

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"overrule.dev/overrule/internal/effective"
)

// Overlap reports whether two changes can affect the same path: one touches what the other
// one does, or what that depends on.
func Overlap(a, b *effective.Footprint) bool {
	touchedByA, touchedByB := slices.Collect(a.Touched()), slices.Collect(b.Touched())
	ofA, ofB := sets.New(slices.AppendSeq(slices.Clone(touchedByA), a.Related())...), sets.New(slices.AppendSeq(slices.Clone(touchedByB), b.Related())...)
	return ofA.HasAny(touchedByB...) || ofB.HasAny(touchedByA...)
}
