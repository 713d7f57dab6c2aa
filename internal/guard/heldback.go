package guard

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// limitSort is a sort of findings about limits.
type limitSort struct {
	kind   *policykind.Kind
	code   api.ReasonCode
	action api.Action
	more   string // what there are more of
}

// tellLimit reports a finding about a limit, unless many of its sort were told:
// then it counts as one more, and is not made. A write can bring thousands, and to
// look for what is nearest to each takes its time.
func (j *judge) tellLimit(s limitSort, finding func() Finding) {
	if j.binding.told == nil {
		j.binding.told = make(map[limitSort]int)
	}
	j.binding.told[s]++
	if j.binding.told[s] <= mostBindings {
		j.reportOf(s.kind, s.code, s.action, finding())
	}
}

// heldBack tells how many were not told.
func (j *judge) heldBack() {
	for s, n := range j.binding.told {
		if n > mostBindings {
			j.reportOf(s.kind, s.code, s.action, Finding{What: fmt.Sprintf("%s: %d", s.more, n-mostBindings)})
		}
	}
}
