package guard

import (
	"errors"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// reportTooMuch reports that the evaluation ended with an error because it was too much, with
// what exceeded its limits and what to do about it. It returns false if it ended for another
// reason.
func (ev *evaluation) reportTooMuch(err error) bool {
	tooMuch, ok := errors.AsType[*effective.TooMuchError](err)
	if !ok {
		tooMuch = ev.budget.Exceeded()
	}
	if tooMuch == nil {
		return false
	}
	ev.truncated = true
	f := Finding{
		What:   fmt.Sprintf("%s: %v", objectText(ev.change), tooMuch),
		Advice: "split the change into smaller writes, or ask the cluster administrator",
	}
	own := ev.writtenRef()
	p, _ := ev.change.Object().(*policykind.Policy)
	asking, _ := errors.AsType[*constraintError](err)
	switch {
	case tooMuch.Costliest == own && own.Name != "":
		f.Advice = "simplify its conditions, or give it fewer targets"
	case tooMuch.Costliest != (api.Ref{}):
		f.Policy = tooMuch.Costliest
		f.Advice = fmt.Sprintf("ask the owner of %s to simplify its conditions", f.Policy.Key())
	case tooMuch.Limit > 0 && asking != nil:
		f.Policy = asking.constraint
		f.Advice = fmt.Sprintf("the last constraint evaluated was %s: ask its owner to simplify it", asking.constraint)
	case p != nil && countRules(p) > manyRules:
		f.Advice = fmt.Sprintf("it has %s: split the policy, or give it fewer targets", api.Plural(countRules(p), "rule"))
	}
	ev.report(api.ReasonTooMuch, api.Deny, f)
	return true
}

// manyRules is from how many rules of a policy on their number is reported.
const manyRules = 200
