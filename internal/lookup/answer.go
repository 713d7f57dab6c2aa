package lookup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/policykind"
)

// answering is the state of answering a query.
type answering struct {
	Query
	paths    []onPath
	policies PolicySet // on the paths
	// controls are other paths whose kinds may control the same fields of a route.
	controls []*effective.Effective
	status   api.ReviewStatus
	left     api.ReviewTruncation
	noRule   bool // no path has the rule
}

// Answer answers the query. It returns an error that is ErrNotFound if a section, rule
// or Gateway of the question does not exist, and effective.ErrTooMuch if the answer takes
// too long.
func (q *Query) Answer(ctx context.Context) (*api.ReviewStatus, error) {
	a := &answering{Query: *q}
	if q.Hides != nil {
		a.Hides = func(ref api.Ref) bool {
			hidden := q.Hides(ref)
			a.status.Redacted = a.status.Redacted || hidden
			return hidden
		}
	}
	for _, part := range []func(context.Context) error{a.findRequest, a.findPaths, a.addPaths, a.addOutcomes, a.addReaches, a.setMessages} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	q.served = a.served
	return &a.status, nil
}

// findRequest finds where the request of the question goes, and checks the section.
func (a *answering) findRequest(context.Context) error {
	for _, o := range a.Objects {
		if a.Section != "" && !hasSection(o, a.Section) {
			return fmt.Errorf("section %s of %s %w%s", a.Section, o.Ref(), ErrNotFound, DidYouMean(a.Section, effective.SectionsOf(o)))
		}
	}
	if a.Asked == nil {
		return nil
	}
	f := &finder{view: a.View, Request: *a.Asked}
	if a.Hides != nil {
		f.hides = a.hidesPlace
	}
	served, err := f.find()
	if err != nil {
		return err
	}
	if a.Hides != nil {
		served = a.restrict(served)
	}
	a.served, a.status.Request = served, served.api()
	if a.Limited {
		a.limitRequest()
	}
	return nil
}

// limitRequest leaves out of the answer the last of the places of the request, and of the
// rules that it meets at each. Paths are still those of all.
func (a *answering) limitRequest() {
	limit := limit{bytes: maxRequestBytes}
	kept := []api.RequestAt{}
	for _, at := range a.status.Request.At {
		all := at.Candidates
		at.Candidates = nil
		if !limit.fits(0, at) {
			a.left.Request++
			continue
		}
		for len(at.Candidates) < len(all) && limit.fits(0, all[len(at.Candidates)]) {
			at.Candidates = all[:len(at.Candidates)+1]
		}
		a.left.Request += len(all) - len(at.Candidates)
		kept = append(kept, at)
	}
	a.status.Request.At = kept
}

func (a *answering) has(part api.ReviewPart) bool { return slices.Contains(a.Parts, part) }

// limit returns the limit of a part whose size in bytes is limited for a cluster.
func (a *answering) limit(items, bytes int) limit {
	if !a.Limited {
		bytes = 0
	}
	return limit{items, bytes}
}

// addPaths adds the items and the explanations.
func (a *answering) addPaths(context.Context) error {
	if a.has(api.ReviewItems) {
		a.status.Items = a.items(a.limit(a.MaxPaths, maxItemBytes))
		a.left.Items = len(a.paths) - len(a.status.Items)
	}
	if a.has(api.ReviewExplanations) {
		items, total := a.explanations(a.limit(a.MaxPaths, maxExplanationBytes))
		a.noRule = total == 0 && a.Rule != nil
		a.status.Explanations, a.left.Explanations = items, total-len(items)
	}
	return nil
}

// addOutcomes adds the outcomes of the policies on the paths, and of those that target the
// object. The outcome of a hidden policy counts the paths of the question alone.
func (a *answering) addOutcomes(ctx context.Context) error {
	if !a.has(api.ReviewOutcomes) {
		return nil
	}
	policies := a.NamedPolicies()
	if len(policies) == 0 {
		policies = maps.Clone(a.policies)
		a.AddTargeting(policies)
	}
	var shown, hidden []*policykind.Policy
	for i, p := range policies.Sorted() {
		switch {
		case i >= maxOutcomes && (a.Limited || a.MaxPaths > 0):
			a.left.Outcomes++
		case a.Hides == nil || !a.Hides(p.Ref()):
			shown = append(shown, p)
		case a.policies[p] || a.Section == "": // else its paths are of other sections, and not known
			hidden = append(hidden, p)
		}
	}
	outcomes, err := a.Outcomes(ctx, shown)
	if err != nil && !errors.Is(err, effective.ErrTooMuch) {
		return err
	}
	if err != nil {
		outcomes, a.left.Outcomes = nil, a.left.Outcomes+len(shown)
	}
	outcomes = append(outcomes, a.outcomesHere(hidden)...)
	slices.SortFunc(outcomes, func(x, y api.Outcome) int { return api.CompareRefs(x.Policy, y.Policy) })
	fitting, left := within(a.limit(0, maxOutcomeBytes), outcomes)
	a.status.Outcomes, a.left.Outcomes = fitting, a.left.Outcomes+left
	return nil
}

// outcomesHere returns the outcomes of policies on the paths of the question alone.
func (a *answering) outcomesHere(policies []*policykind.Policy) []api.Outcome {
	if len(policies) == 0 {
		return nil
	}
	var sum explain.Outcomes
	for _, m := range a.paths {
		sum.Add(m.Effective)
	}
	return a.outcomesOf(&sum, policies)
}

// addReaches adds where the named policy has an effect, or which policies affect the
// object.
func (a *answering) addReaches(ctx context.Context) error {
	if !a.has(api.ReviewReaches) {
		return nil
	}
	find := a.affecting
	if len(a.NamedPolicies()) > 0 {
		find = a.reach
	}
	items, message, err := find(ctx)
	if err != nil {
		return err
	}
	a.status.Message = message
	a.status.Reaches, a.left.Reaches = within(a.limit(0, maxReachBytes), items)
	return nil
}

// setMessages says why the answer is empty or not complete.
func (a *answering) setMessages(ctx context.Context) error {
	if a.left != (api.ReviewTruncation{}) {
		a.left.Message = "the answer is limited in size; set spec.policyKinds, spec.rule or spec.object.section, or choose spec.parts"
		a.status.Truncated = &a.left
	}
	if a.status.Message != "" {
		return nil
	}
	var err error
	a.status.Message, err = a.message(ctx)
	if err != nil || a.status.Message != "" || !a.noRule {
		return err
	}
	hint := ""
	if a.Hides == nil {
		hint = ruleHint(a.Rule, a.policies)
	}
	return fmt.Errorf("rule %s %w on the paths of %s%s", a.Rule, ErrNotFound, a.Objects[0].Ref(), hint)
}
