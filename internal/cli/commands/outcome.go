package commands

import (
	"context"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/policykind"
)

func (a *app) outcomeCommand() *cobra.Command {
	var flags queryFlags
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
		Args: withUsage(optional(objectArgs(0))),
		RunE: func(cmd *cobra.Command, args []string) error { return a.outcome(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	return cmd
}

func (a *app) outcome(ctx context.Context, flags queryFlags, args []string) error {
	q, err := a.query(ctx, flags, args)
	if err != nil {
		return a.outcomeByReview(ctx, err, flags, args)
	}
	policies, err := q.policies()
	if err != nil {
		return err
	}
	outcomes, err := q.Outcomes(ctx, policies)
	if err != nil {
		return err
	}
	if len(outcomes) == 0 {
		a.infof("no policies found")
	} else {
		a.warnControllers(q.view)
	}
	return a.printer().Outcomes(outcomes)
}

// policies returns the named policies, or all if none is named.
func (q *query) policies() ([]*policykind.Policy, error) {
	policies := q.NamedPolicies()
	for _, o := range q.Objects {
		if _, ok := o.(*policykind.Policy); !ok {
			return nil, notPolicyError(o.Ref())
		}
	}
	if len(q.Objects) == 0 {
		q.AddAll(policies)
	}
	return policies.Sorted(), nil
}
