package lookup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Question is the question of an EffectivePolicyReview: about one object, by a reader who
// may not be allowed to read all that the answer depends on.
type Question struct {
	View   *snapshot.View
	Engine *effective.Engine
	// Object is one that the reader is allowed to get.
	Object  snapshot.Object
	Section string
	Kinds   []api.PolicyKind
	// Rule limits explanations and reaches, nil for all rules.
	Rule *merge.Name
	// Request limits the answer to the paths along which a request goes, nil for none.
	Request *Request
	Parts   []api.ReviewPart
	// Hides reports whether the reader is not allowed to get an object. It is required.
	Hides effective.Hides
	// Cost and PathCost limit the evaluation of conditions, as in Query.
	Cost, PathCost uint64
	// MaxPaths limits the items and the explanations, 0 for no limit.
	MaxPaths int
}

// Sizes of the parts of an answer in bytes of JSON. With its metadata, its question and
// what the API server adds, an answer stays below the 1.5 MiB of an object in etcd.
const (
	maxItemBytes        = 384 << 10
	maxExplanationBytes = 384 << 10
	maxOutcomeBytes     = 160 << 10
	maxReachBytes       = 96 << 10
	maxRequestBytes     = 64 << 10
)

// maxOutcomes is the number of policies whose outcome is computed.
const maxOutcomes = 100

// answering is the state of answering a question.
type answering struct {
	*Question
	query  *Query
	paths  *Paths
	status api.ReviewStatus
	left   api.ReviewTruncation
}

// Answer answers the question. It returns an error that is ErrNotFound if a section, rule
// or Gateway of the question does not exist, and effective.ErrTooMuch if the answer takes
// too long.
func (q *Question) Answer(ctx context.Context) (*api.ReviewStatus, error) {
	a := &answering{Question: q}
	a.query = &Query{View: q.View, Engine: q.Engine, Objects: []snapshot.Object{q.Object}, Section: q.Section, Kinds: q.Kinds, Cost: q.Cost, PathCost: q.PathCost}
	a.query.Hides = func(ref api.Ref) bool {
		hidden := q.Hides(ref)
		a.status.Redacted = a.status.Redacted || hidden
		return hidden
	}
	if q.Section != "" && !hasSection(q.Object, q.Section) {
		return nil, sectionNotFound(q.Object, q.Section)
	}
	if err := a.findRequest(); err != nil {
		return nil, err
	}
	var err error
	if a.paths, err = a.query.Paths(ctx); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{a.addPaths, a.addOutcomes, a.addReaches} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return &a.status, a.setMessages(ctx)
}

// findRequest finds where the request of the question goes.
func (a *answering) findRequest() error {
	if a.Request == nil {
		return nil
	}
	r := &reader{view: a.View, object: a.Object, hides: a.query.Hides}
	if err := a.Request.checkPlace(r); err != nil {
		return err
	}
	served, err := a.Request.Find(a.View)
	if err != nil {
		return err
	}
	served.restrict(r)
	a.query.Request, a.status.Request = served, served.API()
	a.limitRequest()
	return nil
}

// limitRequest leaves out of the answer the last of the places of the request, and of the
// rules that it meets at each. Paths are still those of all.
func (a *answering) limitRequest() {
	limit := Limit{Bytes: maxRequestBytes}
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

// addPaths adds the items and the explanations.
func (a *answering) addPaths(context.Context) error {
	if a.has(api.ReviewItems) {
		a.status.Items = a.paths.Effective(Limit{Items: a.MaxPaths, Bytes: maxItemBytes})
		a.left.Items = a.paths.Len() - len(a.status.Items)
	}
	if !a.has(api.ReviewExplanations) {
		return nil
	}
	items, total := a.paths.Explanations(a.Rule, Limit{Items: a.MaxPaths, Bytes: maxExplanationBytes})
	if total == 0 && a.Rule != nil {
		return fmt.Errorf("rule %s %w on the paths of %s", a.Rule, ErrNotFound, a.Object.Ref())
	}
	a.status.Explanations, a.left.Explanations = items, total-len(items)
	return nil
}

// addOutcomes adds the outcomes of the policies on the paths, and of those that target the
// object. The outcome of a hidden policy counts the paths of the question alone.
func (a *answering) addOutcomes(ctx context.Context) error {
	if !a.has(api.ReviewOutcomes) {
		return nil
	}
	policies := a.query.NamedPolicies()
	if len(policies) == 0 {
		policies = maps.Clone(a.paths.Policies)
		a.query.AddTargeting(policies)
	}
	var shown, hidden []*policykind.Policy
	for i, p := range policies.Sorted() {
		switch {
		case i >= maxOutcomes:
			a.left.Outcomes++
		case !a.query.Hides(p.Ref()):
			shown = append(shown, p)
		case a.paths.Policies[p] || a.Section == "": // else its paths are of other sections, and not known
			hidden = append(hidden, p)
		}
	}
	outcomes, err := a.query.Outcomes(ctx, shown)
	if err != nil && !errors.Is(err, effective.ErrTooMuch) {
		return err
	}
	if err != nil {
		outcomes, a.left.Outcomes = nil, a.left.Outcomes+len(shown)
	}
	outcomes = append(outcomes, a.paths.outcomes(hidden)...)
	slices.SortFunc(outcomes, func(x, y api.Outcome) int { return api.CompareRefs(x.Policy, y.Policy) })
	limit := Limit{Bytes: maxOutcomeBytes}
	for _, o := range outcomes {
		if !limit.fits(0, o) {
			a.left.Outcomes++
			continue
		}
		a.status.Outcomes = append(a.status.Outcomes, o)
	}
	return nil
}

// outcomes returns the outcomes of policies on the paths.
func (p *Paths) outcomes(policies []*policykind.Policy) []api.Outcome {
	if len(policies) == 0 {
		return nil
	}
	var sum effective.Outcomes
	for _, m := range p.matching {
		sum.Add(m.Effective)
	}
	return p.query.outcomesOf(&sum, policies)
}

// addReaches adds where the named policy has an effect, or which policies affect the
// object.
func (a *answering) addReaches(ctx context.Context) error {
	if !a.has(api.ReviewReaches) {
		return nil
	}
	var items []api.Reach
	var messages []string
	var err error
	if _, ok := a.Object.(*policykind.Policy); ok {
		items, messages, err = a.query.Reach(ctx, a.Rule)
	} else {
		var message string
		items, message, err = a.query.Affecting(ctx, a.Section, a.Rule)
		messages = append(messages, message)
	}
	if err != nil {
		return err
	}
	a.status.Message = strings.Join(messages, "\n")
	limit := Limit{Bytes: maxReachBytes}
	for _, r := range items {
		if !limit.fits(0, r) {
			a.left.Reaches++
			continue
		}
		a.status.Reaches = append(a.status.Reaches, r)
	}
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
	a.status.Message, err = a.paths.Message(ctx)
	return err
}
