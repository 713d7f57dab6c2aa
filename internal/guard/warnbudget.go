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

var errWarnBudget = errors.New("cost limit of warnings exceeded")

// warnMeter is a meter for constraints that can only warn. It ends with the budget's time.
type warnMeter struct {
	spent  uint64
	budget *effective.Budget
	// of is the constraint that is evaluated; costs is what each of them took.
	of    api.Ref
	costs map[api.Ref]uint64
}

// meter returns the meter for a constraint; ok is false if no more may be spent.
func (m *warnMeter) meter(of api.Ref, budget *effective.Budget) (_ merge.Meter, ok bool) {
	m.of, m.budget = of, budget
	return m, m.spent <= maxWarnCost
}

// Spend implements merge.Meter.
func (m *warnMeter) Spend(_ *merge.Policy, cost uint64) error {
	put(&m.costs, m.of, m.costs[m.of]+cost)
	if m.spent += cost; m.spent > maxWarnCost {
		return errWarnBudget
	}
	return m.budget.Alive()
}

// reportUnevaluated warns that constraints which do not bind the write were not evaluated
// on all paths, and names the one that cost the most.
func (ev *evaluation) reportUnevaluated() {
	m := &ev.requirements.notBindingCost
	if m.spent <= maxWarnCost {
		return
	}
	costliest := slices.MaxFunc(slices.SortedFunc(maps.Keys(m.costs), api.CompareRefs),
		func(a, b api.Ref) int { return cmp.Compare(m.costs[a], m.costs[b]) })
	ev.warn(api.ReasonNotRead, Finding{Policy: &costliest, Advice: fmt.Sprintf("ask the owner of %s to simplify it", costliest.Key())},
		"%s, which does not apply to this write, was not evaluated on all paths: it costs too much", costliest)
}
