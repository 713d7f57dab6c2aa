package commands

import (
	"context"
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

// evaluationsPerStep bounds the search for an order in which all steps are allowed.
const evaluationsPerStep = 20

// orderSearch applies steps in their order, the one in which GitOps tools apply them. As
// these tools do, it tries steps that were denied again. If some are still denied, it looks
// for an order in which they are not.
type orderSearch struct {
	start  func() (*changeEvaluator, error)
	steps  []step
	allows func(*guard.Decision) bool
	// left is the number of evaluations that are left.
	left int
}

// sequence is one application of the steps.
type sequence struct {
	evaluator *changeEvaluator
	results   []evaluatedStep // the last one of each step
	order     []int           // steps by their index, as they took effect
	waiting   []int           // steps that are denied
	early     []int           // steps that were tried before all others
	// denials are the first decisions on the steps that were denied, by their index.
	denials map[int]*guard.Decision
}

// run returns the results of the steps that affect effective policies, in the order of
// the steps, from the sequence in which the fewest are denied.
func (s *orderSearch) run(ctx context.Context) ([]evaluatedStep, error) {
	best, given, err := s.search(ctx)
	if err != nil {
		return nil, err
	}
	s.addOrderWarnings(best, given)
	return slices.DeleteFunc(best.results, func(e evaluatedStep) bool { return e.decision == nil }), nil
}

// search returns the sequence in which the fewest steps are denied, and the one in the
// order of the steps.
func (s *orderSearch) search(ctx context.Context) (best, given *sequence, err error) {
	s.left = 500 + evaluationsPerStep*len(s.steps)
	if given, err = s.apply(ctx, nil); err != nil {
		return nil, nil, err
	}
	best = given
	var early []int
	for _, i := range given.waiting {
		if s.left <= 0 {
			break
		}
		next, err := s.apply(ctx, append(slices.Clone(early), i))
		if err != nil {
			return nil, nil, err
		}
		if len(next.waiting) < len(best.waiting) {
			best, early = next, append(early, i)
		}
	}
	return best, given, nil
}

// apply applies the steps in order, the early ones as soon as they are allowed.
func (s *orderSearch) apply(ctx context.Context, early []int) (*sequence, error) {
	c, err := s.start()
	if err != nil {
		return nil, err
	}
	q := &sequence{
		evaluator: c, results: make([]evaluatedStep, len(s.steps)), waiting: slices.Clone(early), early: early, denials: make(map[int]*guard.Decision),
	}
	if err := s.retry(ctx, q); err != nil {
		return nil, err
	}
	for i := range s.steps {
		if slices.Contains(early, i) {
			continue
		}
		switch ok, err := s.try(ctx, q, i); {
		case err != nil:
			return nil, err
		case !ok:
			q.waiting = append(q.waiting, i)
		case s.left > 0:
			err = s.retry(ctx, q)
			if err != nil {
				return nil, err
			}
		}
	}
	return q, s.retry(ctx, q)
}

// retry tries the waiting steps until none of them is allowed.
func (s *orderSearch) retry(ctx context.Context, q *sequence) error {
	for n := 0; n < len(q.waiting); n++ {
		ok, err := s.try(ctx, q, q.waiting[n])
		if err != nil {
			return err
		}
		if ok {
			q.waiting = slices.Delete(q.waiting, n, n+1)
			n = -1
		}
	}
	return nil
}

// try evaluates a step, and applies it if it is allowed.
func (s *orderSearch) try(ctx context.Context, q *sequence, i int) (allowed bool, err error) {
	s.left--
	e, err := q.evaluator.evaluateStep(ctx, s.steps[i])
	if err != nil {
		return false, err
	}
	if q.results[i] = e; e.decision != nil && !s.allows(e.decision) {
		if q.denials[i] == nil {
			q.denials[i] = e.decision
		}
		return false, nil
	}
	if e.decision != nil {
		if err := q.evaluator.removeStanding(ctx, &q.results[i]); err != nil {
			return false, err
		}
		q.evaluator.apply(e)
	}
	q.order = append(q.order, i)
	return true, nil
}

// addOrderWarnings adds a warning to each step that is allowed, and was denied at its
// place in the order of the steps.
func (s *orderSearch) addOrderWarnings(best, given *sequence) {
	for i, denied := range given.denials {
		if slices.Contains(best.waiting, i) {
			continue
		}
		first, d := denied.Denials[0], best.results[i].decision
		d.Warnings = append([]guard.Finding{{
			Code: api.ReasonApplyOrder, Action: api.Warn, Rule: first.Rule, Policy: first.Policy, Field: first.Field,
			What:   fmt.Sprintf("%s is denied %s: %s: %s", d.Change.Object().Ref(), s.wrongPlace(best, i), first.Code, first.Message()),
			Advice: "split the change, or set sync waves, so that the objects are applied in this order",
		}}, d.Warnings...)
	}
}

// wrongPlace says at which places in the order a step is denied.
func (s *orderSearch) wrongPlace(best *sequence, i int) string {
	at := slices.Index(best.order, i)
	for _, later := range best.order[at+1:] {
		if later < i && slices.Contains(best.early, i) {
			return fmt.Sprintf("unless it is applied before %s", s.describe(best, later))
		}
	}
	if at == 0 {
		return "unless it is applied first"
	}
	return fmt.Sprintf("until after %s", s.describe(best, best.order[at-1]))
}

// describe names a step.
func (s *orderSearch) describe(q *sequence, i int) string {
	ref := s.steps[i].object.Ref(q.evaluator.kinds, q.evaluator.namespace)
	if s.steps[i].remove {
		return "the deletion of " + ref.String()
	}
	return ref.String()
}
