package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/policykind"
)

func (a *app) outcomeCommand() *cobra.Command {
	var flags queryFlags
	cmd := &cobra.Command{
		Use:   "outcome KIND/NAME",
		Short: "Show the state of a policy, and which of its rules were replaced by what.",
		Long: `Show what became of a policy over all paths that it is on: its state, its targets,
and which of its rules have no effect because of which other policy.`,
		Example: `  kubectl overrule outcome -n app authpolicy/toystore-auth`,
		Args:    usage(objectArgs(0)),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.outcome(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	return cmd
}

func (a *app) outcome(ctx context.Context, flags queryFlags, args []string) error {
	out, err := a.printer()
	if err != nil {
		return err
	}
	q, err := a.query(ctx, flags, args)
	if err != nil {
		return err
	}
	var policies []*policykind.Policy
	for _, o := range q.objects {
		p, ok := o.(*policykind.Policy)
		if !ok {
			return fmt.Errorf("%s is not a policy; see kubectl overrule effective for its policies", o.Ref())
		}
		policies = append(policies, p)
	}
	outcomes, err := q.outcomes(ctx, policies)
	if err != nil {
		return err
	}
	return out.Outcomes(outcomes)
}
