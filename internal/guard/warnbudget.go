package guard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// mostSpare is what constraints may cost where they can only warn, in units of CEL
// cost. It is no part of the budget of the write, which the authors of such
// constraints could else use up.
const mostSpare = 100_000

var errSpare = errors.New("nothing is left for what is only a warning")

// spare is a meter for what is only a warning. It ends with the budget's time.
type spare struct {
	spent  uint64
	budget *effective.Budget
}

// Spend implements merge.Meter.
func (s *spare) Spend(_ *merge.Policy, cost uint64) error {
	if s.spent += cost; s.spent > mostSpare {
		return errSpare
	}
	return s.budget.Alive()
}

// aside returns the meter for a constraint that does not bind the write: its writer
// does not pay for what others demand of objects below.
func (j *judge) aside(c api.Ref) merge.Meter {
	j.needs.above.budget = j.budget
	if j.needs.costs == nil {
		j.needs.costs = make(map[api.Ref]uint64)
	}
	return asideMeter{&j.needs.above, c, j.needs.costs}
}

// asideMeter books what a constraint takes of the spare.
type asideMeter struct {
	*spare
	of    api.Ref
	costs map[api.Ref]uint64
}

// Spend implements merge.Meter.
func (m asideMeter) Spend(by *merge.Policy, cost uint64) error {
	m.costs[m.of] += cost
	return m.spare.Spend(by, cost)
}

// unevaluated warns that constraints which do not bind the write were not evaluated
// on all paths, and names the one that cost the most.
func (j *judge) unevaluated() {
	if j.needs.above.spent <= mostSpare {
		return
	}
	dearest := slices.MaxFunc(slices.SortedFunc(maps.Keys(j.needs.costs), api.CompareRefs),
		func(a, b api.Ref) int { return cmp.Compare(j.needs.costs[a], j.needs.costs[b]) })
	j.report(api.ReasonNotRead, api.Warn, Finding{
		Policy: &dearest,
		What:   fmt.Sprintf("%s, which does not bind this write, was not evaluated on all paths, since it costs too much", dearest),
		Advice: fmt.Sprintf("ask the owner of %s for a simpler one", dearest.Key()),
	})
}
