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

// maxWarnCost is what constraints may cost where they can only warn, in units of CEL cost.
// It is no part of the budget of the write: else the authors of such constraints could use
// that up.
const maxWarnCost = 100_000

var errWarnBudget = errors.New("cost limit of warnings exceeded")

// warnMeter is a meter for evaluations that can only warn. It ends with the budget's time.
type warnMeter struct {
	spent  uint64
	budget *effective.Budget
}

// Spend implements merge.Meter.
func (m *warnMeter) Spend(_ *merge.Policy, cost uint64) error {
	if m.spent += cost; m.spent > maxWarnCost {
		return errWarnBudget
	}
	return m.budget.Alive()
}

// notBindingMeter returns the meter for a constraint that does not bind the write: its writer
// does not pay for what others require of objects below.
func (ev *evaluation) notBindingMeter(c api.Ref) merge.Meter {
	ev.requirements.notBindingCost.budget = ev.budget
	if ev.requirements.costs == nil {
		ev.requirements.costs = make(map[api.Ref]uint64)
	}
	return constraintMeter{&ev.requirements.notBindingCost, c, ev.requirements.costs}
}

// constraintMeter counts what a constraint costs, and spends it from the shared meter.
type constraintMeter struct {
	shared *warnMeter
	of     api.Ref
	costs  map[api.Ref]uint64
}

// Spend implements merge.Meter.
func (m constraintMeter) Spend(by *merge.Policy, cost uint64) error {
	m.costs[m.of] += cost
	return m.shared.Spend(by, cost)
}

// reportUnevaluated warns that constraints which do not bind the write were not evaluated
// on all paths, and names the one that cost the most.
func (ev *evaluation) reportUnevaluated() {
	if ev.requirements.notBindingCost.spent <= maxWarnCost {
		return
	}
	costliest := slices.MaxFunc(slices.SortedFunc(maps.Keys(ev.requirements.costs), api.CompareRefs),
		func(a, b api.Ref) int { return cmp.Compare(ev.requirements.costs[a], ev.requirements.costs[b]) })
	ev.report(api.ReasonNotRead, api.Warn, Finding{
		Policy: &costliest,
		What:   fmt.Sprintf("%s, which does not apply to this write, was not evaluated on all paths: it costs too much", costliest),
		Advice: fmt.Sprintf("ask the owner of %s to simplify it", costliest.Key()),
	})
}
