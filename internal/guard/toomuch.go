package guard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// reportTooMuch reports that the evaluation ended with an error because it was too much,
// and returns false if it ended for another reason.
func (ev *evaluation) reportTooMuch(err error) bool {
	tooMuch, ok := errors.AsType[*effective.TooMuchError](err)
	if !ok {
		tooMuch = ev.budget.Exceeded()
	}
	if tooMuch == nil {
		return false
	}
	ev.truncated = true
	ev.findings.add(tooMuchFinding(ev.change, tooMuch, err))
	return true
}

// tooMuchFinding says what exceeded the limits of an evaluation, and what to do about it.
func tooMuchFinding(c Change, e *effective.TooMuchError, whole error) Finding {
	f := Finding{
		Code: api.ReasonTooMuch, Action: api.Deny,
		What:   fmt.Sprintf("%s: %v", objectText(c), e),
		Advice: "split the change into smaller writes, or ask the cluster administrator",
	}
	own := c.Object().Ref()
	p, _ := c.Object().(*policykind.Policy)
	asking, _ := errors.AsType[*constraintError](whole)
	switch {
	case e.Costliest == own && own.Name != "":
		f.Advice = "simplify its conditions, or give it fewer targets"
	case e.Costliest != (api.Ref{}):
		f.Policy = e.Costliest
		f.Advice = fmt.Sprintf("ask the owner of %s to simplify its conditions", e.Costliest.Key())
	case e.Limit > 0 && asking != nil:
		f.Policy = asking.constraint
		f.Advice = fmt.Sprintf("the last constraint evaluated was %s: ask its owner to simplify it", asking.constraint)
	case p != nil && countRules(p) > manyRules:
		f.Advice = fmt.Sprintf("it has %s: split the policy, or give it fewer targets", api.Plural(countRules(p), "rule"))
	}
	return f
}

// constraintError is an error of evaluating a constraint.
type constraintError struct {
	constraint api.Ref
	err        error
}

func (e *constraintError) Error() string { return fmt.Sprintf("evaluate %s: %v", e.constraint, e.err) }

func (e *constraintError) Unwrap() error { return e.err }

// manyRules is from how many rules of a policy on their number is reported.
const manyRules = 200

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
	ev.warn(api.ReasonNotRead, Finding{Policy: costliest, Advice: fmt.Sprintf("ask the owner of %s to simplify it", costliest.Key())},
		"%s, which does not apply to this write, was not evaluated on all paths: it costs too much", costliest)
}
