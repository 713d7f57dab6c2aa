package commands

import (
	"context"
	"errors"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/graph"
	"overrule.dev/overrule/merge"
)

// This file has the commands for users who are not allowed to list the cluster.

var errReviewPaths = errors.New("invalid --all-paths or --without: requires the right to list the cluster")

// effectiveByReview is the command effective. cause is why the cluster cannot be listed.
func (a *app) effectiveByReview(ctx context.Context, cause error, flags effectiveFlags, args []string) error {
	r, err := a.review(cause, flags.queryFlags, args, api.ReviewItems, api.ReviewOutcomes)
	if err != nil {
		return err
	}
	if flags.allPaths || flags.withoutPolicy {
		return errReviewPaths
	}
	status, err := r.ask(ctx)
	if err != nil {
		return err
	}
	r.noteOwners(status)
	return a.printer().Effective(api.EffectivePolicyList{Items: status.Items, Outcomes: status.Outcomes, Message: status.Message})
}

// explainByReview is the command explain.
func (a *app) explainByReview(ctx context.Context, cause error, flags queryFlags, args []string, rule *merge.Name) error {
	r, err := a.review(cause, flags, args, api.ReviewExplanations)
	if err != nil {
		return err
	}
	if rule != nil {
		r.spec.Rule = rule.String()
	}
	status, err := r.ask(ctx)
	if err != nil {
		return err
	}
	r.noteOwners(status)
	return a.printer().Explanations(api.ExplanationList{Items: status.Explanations, Message: status.Message})
}

// outcomeByReview is the command outcome.
func (a *app) outcomeByReview(ctx context.Context, cause error, flags queryFlags, args []string) error {
	r, err := a.review(cause, flags, args, api.ReviewOutcomes)
	if err != nil {
		return err
	}
	status, err := r.ask(ctx)
	if err != nil {
		return err
	}
	for _, o := range status.Outcomes {
		if o.Policy == r.ref() {
			r.noteOwners(&api.ReviewStatus{Outcomes: []api.Outcome{o}})
			return a.printer().Outcomes([]api.Outcome{o})
		}
	}
	return notPolicyError(r.ref())
}

// notPolicyError is returned if the outcome of an object is asked for that is no policy.
func notPolicyError(ref api.Ref) error {
	return fmt.Errorf("%s is not a policy; use kubectl overrule effective to show its policies", ref)
}

// reachByReview is the command reach.
func (a *app) reachByReview(ctx context.Context, cause error, flags reachFlags, args []string, rule *merge.Name) error {
	r, err := a.review(cause, flags.queryFlags, args, api.ReviewReaches)
	if err != nil {
		return err
	}
	r.spec.Object.Section = flags.section
	if rule != nil {
		r.spec.Rule = rule.String()
	}
	status, err := r.ask(ctx)
	if err != nil {
		return err
	}
	if status.Message != "" {
		a.infof("%s", status.Message)
	}
	switch policy := len(status.Reaches) == 1 && status.Reaches[0].Policy == r.ref(); {
	case policy && flags.affecting:
		return fmt.Errorf("%s is a policy; omit --affecting to show where it has an effect", r.ref())
	case !policy && !flags.affecting:
		return fmt.Errorf("%s is not a policy; use --affecting to show the policies that affect it", r.ref())
	}
	return a.printer().Reaches(status.Reaches)
}

// graphByReview returns the picture of an object.
func (a *app) graphByReview(ctx context.Context, cause error, flags queryFlags, args []string) (b *graph.Builder, message string, err error) {
	r, err := a.review(cause, flags, args, graphParts...)
	if err != nil {
		return nil, "", err
	}
	status, err := r.ask(ctx)
	if err != nil {
		return nil, "", err
	}
	return reviewedGraph(status), status.Message, nil
}

// graphParts are the parts of an answer that a picture is drawn from.
var graphParts = []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes, api.ReviewExplanations}

// reviewedGraph returns the picture of an answer.
func reviewedGraph(status *api.ReviewStatus) *graph.Builder {
	b := &graph.Builder{}
	for i, item := range status.Items {
		if i < len(status.Explanations) { // both have the same order
			b.Add(reviewedPath(item, status.Explanations[i]))
		}
	}
	for _, o := range status.Outcomes {
		if o.Paths.Total == 0 {
			b.AddPathless(o)
		}
	}
	return b
}

// reviewedPath returns a path of a picture from what an answer says about it.
func reviewedPath(item api.EffectivePolicy, x api.Explanation) graph.Path {
	p := graph.Path{Kind: item.PolicyKind, Elements: item.Path, Rules: item.Rules}
	for i, policy := range item.Policies {
		on := graph.Policy{PolicyOnPath: policy, At: -1}
		if i < len(x.Policies) {
			on.At, on.Blocks = elementIndex(item.Path, x.Policies[i].Target), reviewedBlocks(x.Policies[i])
		}
		p.Policies = append(p.Policies, on)
	}
	return p
}

// reviewedBlocks returns what the applied blocks of a policy acted as. An answer does not
// say whether a bare block acted as defaults or as neither.
func reviewedBlocks(c api.Contribution) []string {
	var found [3]bool
	for _, b := range c.Blocks {
		if !b.TookPart {
			continue
		}
		switch b.Block {
		case merge.Defaults.String():
			found[0] = true
		case merge.Overrides.String():
			found[2] = true
		default:
			found[1] = true
		}
	}
	var out []string
	for i, name := range []string{graph.Defaults, graph.Neither, graph.Overrides} {
		if found[i] {
			out = append(out, name)
		}
	}
	return out
}
