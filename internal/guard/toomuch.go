package guard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
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
func (ev *requirements) reportUnevaluated() {
	m := &ev.notBindingCost
	if m.spent <= maxWarnCost {
		return
	}
	costliest := slices.MaxFunc(slices.SortedFunc(maps.Keys(m.costs), api.CompareRefs),
		func(a, b api.Ref) int { return cmp.Compare(m.costs[a], m.costs[b]) })
	ev.warn(api.ReasonNotRead, Finding{Policy: costliest, Advice: fmt.Sprintf("ask the owner of %s to simplify it", costliest.Key())},
		"%s, which does not apply to this write, was not evaluated on all paths: it costs too much", costliest)
}

// maximumCheck denies writes that bring more of what writes of others are compared with than
// allowed.
type maximumCheck struct{ *requests }

// attachPoint is where policies of a kind have conditions: an object or a section of it;
// client is the namespace whose traffic alone is meant, if one is.
type attachPoint struct {
	object  api.Ref
	kind    api.PolicyKind
	section string
	port    int32
	client  string
}

// conditionCount is the conditions at one attachPoint.
type conditionCount struct {
	conditions int
	policies   []api.Ref
}

// check checks all maxima but that of validations.
func (ev maximumCheck) check() {
	ev.checkConditionLimit()
	ev.checkRuleLimit()
	ev.checkMatchLimit()
	ev.checkPathLimit()
}

// checkConditionLimit denies a write that brings more conditions to a place than allowed.
// One that adds none there is not denied for existing ones.
func (ev maximumCheck) checkConditionLimit() {
	for _, object := range ev.affectedObjects() {
		is := conditionsOn(ev.after, object)
		for at, c := range is {
			if c.conditions > maxConditions && c.conditions > conditionsOn(ev.before, object)[at].conditions {
				slices.SortFunc(c.policies, api.CompareRefs)
				place := policykind.Target{Ref: at.object, Section: at.section, Port: at.port}
				ev.denyTooMany(fmt.Sprintf("%s would have %d conditions (when) of kind %s: must have at most %d", place, c.conditions, at.kind.Kind, maxConditions),
					"every write above it evaluates them; they are in "+joinRefs(c.policies), "combine several into one, or remove one from a policy there")
			}
		}
	}
}

// affectedObjects returns the objects to which the write may bring policies: the targets
// of a policy with conditions, whether they exist or not; what labels or a namespace's
// labels let policies select; what a ReferenceGrant allows them.
func (ev maximumCheck) affectedObjects() []api.Ref {
	switch o := ev.change.After.(type) {
	case nil:
		return nil
	case *policykind.Policy:
		if countConditions(o) == 0 {
			return nil
		}
		return targetsOf(ev.after, o)
	case *gateway.Namespace:
		var out []api.Ref
		for _, c := range ev.after.AllIn(o.Name) {
			out = append(out, c.Ref)
		}
		return out
	case *gateway.Grant:
		var out []api.Ref
		for _, to := range o.To {
			kind := api.PolicyKind{Group: to.Group, Kind: to.Kind}
			for p := range ev.after.TargetsIn(kind, o.Namespace) {
				out = append(out, targetsOf(ev.after, p)...)
			}
			for p := range ev.after.Selecting(kind) {
				out = append(out, targetsOf(ev.after, p)...)
			}
		}
		slices.SortFunc(out, api.CompareRefs)
		return slices.Compact(out)
	default:
		return []api.Ref{o.Ref()}
	}
}

// targetsOf returns the objects that a policy targets, each once.
func targetsOf(v *snapshot.View, p *policykind.Policy) []api.Ref {
	var out []api.Ref
	seen := make(map[api.Ref]bool)
	for _, t := range v.Targets(p) {
		if t.Selector == nil && !seen[t.Ref] {
			seen[t.Ref] = true
			out = append(out, t.Ref)
		}
	}
	return out
}

// conditionsOn returns the conditions that policies have on an object, by place;
// nil for none.
func conditionsOn(v *snapshot.View, object api.Ref) map[attachPoint]conditionCount {
	var out map[attachPoint]conditionCount
	for p, t := range v.On(object) {
		n := countConditions(p)
		if n == 0 || t.Refused != "" || p.Invalid != nil {
			continue
		}
		at := attachPoint{object: object, kind: p.Kind.Ref(), section: t.Section, port: t.Port}
		if t.Consumer {
			at.client = p.Namespace
		}
		put(&out, at, conditionCount{out[at].conditions + n, append(out[at].policies, p.Ref())})
	}
	return out
}

// countConditions counts the blocks of a policy that have a condition.
func countConditions(p *policykind.Policy) int {
	n := 0
	for i := range p.Blocks {
		if p.Blocks[i].When != nil {
			n++
		}
	}
	return n
}

// denyTooMany denies a write with which something would have more of what writes of others
// are compared with than allowed.
func (ev maximumCheck) denyTooMany(what, since, advice string) {
	ev.report(api.ReasonTooMuch, api.Deny, Finding{What: what + ", since " + since, Short: what, Advice: advice})
}

// checkValidationLimit denies a PolicyConstraint that brings more validations to its
// namespace than allowed. One that adds none is not denied for existing ones.
func (ev maximumCheck) checkValidationLimit(c *constraint.Constraint) {
	namespace, kind := c.Ref().Namespace, c.PolicyKind()
	is := countValidations(ev.after.Constraints(kind), namespace)
	if namespace == "" || is <= maxValidations || is <= countValidations(ev.before.Constraints(kind), namespace) {
		return
	}
	ev.report(api.ReasonTooMuch, api.Deny, Finding{
		What: fmt.Sprintf("the PolicyConstraints of namespace %s would have %d validations for %s: must have at most %d, since every write that they apply to evaluates them",
			namespace, is, kind, maxValidations),
		Advice: "combine several into one expression, or use rules instead of validations",
	})
}

// countValidations counts those of the constraints of a namespace.
func countValidations(all []*constraint.Constraint, namespace string) int {
	n := 0
	for _, c := range all {
		if c.Ref().Namespace == namespace {
			n += c.Validations()
		}
	}
	return n
}

// checkRuleLimit denies a policy with which the policies of its kind and namespace have more
// rules than allowed. One that adds none is not denied for existing ones.
func (ev maximumCheck) checkRuleLimit() {
	if ev.policy == nil || countRules(ev.policy) <= fewRules || ev.old != nil && countRules(ev.old) >= countRules(ev.policy) {
		return
	}
	ref, n := ev.policy.Ref(), 0
	for o := range ev.after.In(ref.PolicyKind(), ref.Namespace) {
		if p, ok := o.(*policykind.Policy); ok {
			n += countRules(p)
		}
	}
	if n <= maxRules {
		return
	}
	ev.denyTooMany(fmt.Sprintf("the policies of kind %s in namespace %s would have %d rules: must have at most %d", ref.Kind, ref.Namespace, n, maxRules),
		"every write above them is compared with each", "remove rules that are not needed")
}

// countRules counts the rules of a policy.
func countRules(p *policykind.Policy) int {
	n := 0
	for i := range p.Blocks {
		n += len(p.Blocks[i].Rules)
	}
	return n
}
