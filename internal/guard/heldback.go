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
func (ev *evaluation) tellLimit(s limitSort, finding func() Finding) {
	if ev.binding.told == nil {
		ev.binding.told = make(map[limitSort]int)
	}
	ev.binding.told[s]++
	if ev.binding.told[s] <= mostBindings {
		ev.reportForKind(s.kind, s.code, s.action, finding())
	}
}

// heldBack tells how many were not told.
func (ev *evaluation) heldBack() {
	for s, n := range ev.binding.told {
		if n > mostBindings {
			ev.reportForKind(s.kind, s.code, s.action, Finding{What: fmt.Sprintf("%s: %d", s.more, n-mostBindings)})
		}
	}
}
