package guard

import (
	"errors"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
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
	asking, _ := errors.AsType[*constraintError](whole)
	switch {
	case e.Costliest == own && own.Name != "":
		f.Advice = "simplify its conditions, or give it fewer targets"
	case e.Costliest != (api.Ref{}):
		f.Policy = &e.Costliest
		f.Advice = fmt.Sprintf("ask the owner of %s to simplify its conditions", e.Costliest.Key())
	case e.Limit > 0 && asking != nil:
		f.Policy = &asking.constraint
		f.Advice = fmt.Sprintf("the last constraint evaluated was %s: ask its owner to simplify it", asking.constraint)
	case ruleCount(c) > manyRules:
		f.Advice = fmt.Sprintf("it has %s: split the policy, or give it fewer targets", api.Plural(ruleCount(c), "rule"))
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

// ruleCount counts the rules of the policy that is written.
func ruleCount(c Change) int {
	p, ok := c.Object().(*policykind.Policy)
	if !ok {
		return 0
	}
	return countRules(p)
}
