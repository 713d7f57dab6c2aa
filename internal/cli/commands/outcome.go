package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
)

func outcomeCommand(a *app) *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "outcome [KIND/NAME]",
		Short: "Show the state of policies and the rules that they lose",
		Long: `Show the outcome of a policy over all paths that it is on: its state, its targets,
the rules that have no effect, and the policies that replace them. Without a name all
policies are shown, or with -n those in a namespace.`,
		Example: `  # Show the outcome of a policy
  kubectl overrule outcome -n app authpolicy/toystore-auth

  # Show the outcomes of all RateLimitPolicies in a namespace
  kubectl overrule outcome -n app --kind RateLimitPolicy`,
	}
	q.add(cmd, q.objectArgs(false, false), func(ctx context.Context) error { return showOutcomes(ctx, a, q) })
	return cmd
}

func showOutcomes(ctx context.Context, a *app, q question) error {
	q.parts = []api.ReviewPart{api.ReviewOutcomes}
	x, err := a.ask(ctx, q)
	if err != nil {
		return err
	}
	objects := x.objects()
	x.Outcomes = slices.DeleteFunc(x.Outcomes, func(o api.Outcome) bool {
		if len(objects) > 0 {
			return !slices.Contains(objects, o.Policy)
		}
		return x.query.Namespace != "" && o.Policy.Namespace != x.query.Namespace
	})
	for _, ref := range objects {
		if !slices.ContainsFunc(x.Outcomes, func(o api.Outcome) bool { return o.Policy == ref }) {
			return fmt.Errorf("%s is not a policy; use kubectl overrule effective to show its policies", ref)
		}
	}
	x.note(&a.terminal, len(x.Outcomes) > 0)
	if len(x.Outcomes) == 0 {
		a.infof("no policies found")
	}
	return a.printer().Outcomes(x.Outcomes)
}
