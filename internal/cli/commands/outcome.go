package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/policykind"
)

func (a *app) outcomeCommand() *cobra.Command {
	var flags queryFlags
	cmd := &cobra.Command{
		Use:   "outcome [KIND/NAME]",
		Short: "Show the state of a policy, and which of its rules were replaced by what.",
		Long: `Show what became of a policy over all paths that it is on: its state, its targets,
and which of its rules have no effect because of which other policy. Without a name
that of all policies, with -n of those in a namespace.`,
		Example: `  kubectl overrule outcome -n app authpolicy/toystore-auth
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
		return err
	}
	policies, err := q.policies()
	if err != nil {
		return err
	}
	outcomes, err := q.outcomes(ctx, policies)
	if err != nil {
		return err
	}
	if len(outcomes) == 0 {
		a.infof("no policies found")
	}
	return a.printer().Outcomes(outcomes)
}

// policies returns the policies that are named, or else all.
func (q *query) policies() ([]*policykind.Policy, error) {
	policies := q.namedPolicies()
	for _, o := range q.objects {
		if _, ok := o.(*policykind.Policy); !ok {
			return nil, fmt.Errorf("%s is not a policy; see kubectl overrule effective for its policies", o.Ref())
		}
	}
	if len(q.objects) == 0 {
		q.addAll(policies)
	}
	return policies.sorted(), nil
}
