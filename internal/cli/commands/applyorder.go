package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

// applyOrder applies steps in their order, the one in which GitOps tools apply them. As
// these tools do, it tries a step that was denied again after others took effect: so it
// finds an order in which all are allowed, if there is one that does not evade a
// decision. A step that is denied although all others took effect stays denied: that an
// earlier place would be allowed means that the others forbid it.
type applyOrder struct {
	evaluator *changeEvaluator
	steps     []step
	allows    func(*guard.Decision) bool
	// retries is the number of evaluations of waiting steps that are left.
	retries int
	results []evaluatedStep // the last one of each step
	waiting []int           // steps that are denied, by their index
	invalid []error         // of manifests that cannot be read
	// denials are the first decisions on the steps that were denied.
	denials map[int]*guard.Decision
	last    int // the step that took effect last
	applied int // the number of evaluations
}

// maxRetries bounds the evaluations of steps that were denied, for each step.
const maxRetries = 20

// run returns the results of the steps that affect effective policies.
func (o *applyOrder) run(ctx context.Context) ([]evaluatedStep, error) {
	from := o.evaluator.view
	o.retries = 500 + maxRetries*len(o.steps)
	o.results, o.denials = make([]evaluatedStep, len(o.steps)), make(map[int]*guard.Decision)
	for i := range o.steps {
		allowed, err := o.try(ctx, i)
		if err != nil {
			return nil, err
		}
		switch {
		case !allowed:
			o.waiting = append(o.waiting, i)
		case o.results[i].decision == nil: // nothing depends on it
		default:
			if err := o.retry(ctx); err != nil {
				return nil, err
			}
		}
	}
	if len(o.invalid) > 0 {
		return nil, manifestErrors(errors.Join(o.invalid...))
	}
	o.retries = max(o.retries, 2*len(o.waiting)) // with all others in effect, each is tried once more
	if err := o.retry(ctx); err != nil {
		return nil, err
	}
	if o.retries <= 0 && len(o.waiting) > 0 {
		o.evaluator.app.notef("the search for an order in which all changes are allowed was stopped: %d are denied in the orders that were tried", len(o.waiting))
	}
	for _, i := range o.waiting {
		if err := o.evaluator.removeStanding(ctx, &o.results[i]); err != nil {
			return nil, err
		}
	}
	if err := o.judgeAsOne(ctx, from); err != nil {
		return nil, err
	}
	for i := range o.results {
		if err := o.evaluator.removeOutdated(ctx, &o.results[i]); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(o.results, func(e evaluatedStep) bool { return e.decision == nil }), nil
}

// retry tries the waiting steps until none of them is allowed.
func (o *applyOrder) retry(ctx context.Context) error {
	for n := 0; n < len(o.waiting) && o.retries > 0; n++ {
		i, after := o.waiting[n], o.last
		o.retries--
		allowed, err := o.try(ctx, i)
		if err != nil {
			return err
		}
		if allowed {
			o.addWarning(i, after)
			o.waiting = slices.Delete(o.waiting, n, n+1)
			n = -1
		}
	}
	return nil
}

// try evaluates a step, and applies it if it is allowed.
func (o *applyOrder) try(ctx context.Context, i int) (allowed bool, err error) {
	e, err := o.evaluator.evaluateStep(ctx, o.steps[i])
	switch {
	case o.steps[i].remove && errors.Is(err, errNotFound):
		return true, nil // what could not be read is not in force either
	case manifest.IsInvalid(err):
		o.invalid = append(o.invalid, err)
		return true, nil
	case err != nil:
		return false, err
	}
	if o.denials[i] != nil && !o.steps[i].remove && o.evaluator.isDeleted(o.steps[i]) {
		return false, nil // the object cannot be created without its namespace or its kind
	}
	o.results[i], o.applied = e, o.applied+1
	o.results[i].sequence = o.applied
	if e.decision != nil && !o.allows(e.decision) {
		if o.denials[i] == nil {
			o.denials[i] = e.decision
		}
		return false, nil
	}
	o.last = i
	if err := o.evaluator.removeStanding(ctx, &o.results[i]); err != nil {
		return false, err
	}
	if e.decision != nil {
		o.evaluator.apply(e)
	}
	return true, nil
}

// addWarning adds the warning that a step is allowed only after another one.
func (o *applyOrder) addWarning(i, after int) {
	first, d := o.denials[i].Denials[0], o.results[i].decision
	switch {
	case d == nil && o.steps[i].remove:
		return // its namespace or its kind was deleted meanwhile
	case d == nil: // effective policies do not depend on it any more
		d = &guard.Decision{Change: o.denials[i].Change, After: o.evaluator.view}
		o.results[i].decision, o.results[i].final = d, true
	}
	ref := d.Change.Object().Ref()
	d.Warnings = append([]guard.Finding{{
		Code: api.ReasonApplyOrder, Action: api.Warn, Rule: first.Rule, Policy: first.Policy, Field: first.Field,
		What:   fmt.Sprintf("%s is denied until after %s: %s: %s", ref, o.describe(after), first.Code, first.Message()),
		Advice: "split the change, or set sync waves, so that they are applied in this order",
	}}, d.Warnings...)
}

// describe names a step.
func (o *applyOrder) describe(i int) string {
	ref := o.steps[i].object.Ref(o.evaluator.kinds, o.evaluator.namespace)
	if o.steps[i].remove {
		return "the deletion of " + ref.String()
	}
	return ref.String()
}

// compare orders writes as GitOps tools apply them.
func (r *revisions) compare(a, b step) int {
	return cmp.Or(cmp.Compare(r.place(a), r.place(b)), api.CompareRefs(r.ref(a.object), r.ref(b.object)))
}

// place returns the place of a write: what others depend on first, then deletions in the
// reverse order.
func (r *revisions) place(s step) int {
	place := 2 * r.rank(s.object.Kind)
	switch {
	case s.remove:
		return 100 - place
	case gateway.IsRoute(s.object.Kind) && !s.isNew: // a new one takes over what it gives up
		place++
	}
	return place
}

// rank returns the place of a kind in the order in which GitOps tools apply objects.
func (r *revisions) rank(k api.PolicyKind) int {
	switch {
	case k == kindNamespace:
		return 0
	case k == manifest.KindCRD:
		return 1
	case k == policykind.KindProfile:
		return 2
	case constraint.IsKind(k): // it has no effect before its policy kind is known
		return 3
	case r.kinds.Of(k) != nil || r.source.kinds.Of(k) != nil:
		return 9
	case gateway.IsRoute(k):
		return 8
	case k.Kind == gateway.KindGatewayClass:
		return 4
	case k.Kind == gateway.KindGateway:
		return 5
	case k.Kind == gateway.KindReferenceGrant:
		return 7
	default:
		return 6 // ListenerSets, Services
	}
}
