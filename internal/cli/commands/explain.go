package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
)

func (a *app) explainCommand() *cobra.Command {
	var flags queryFlags
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME [RULE]",
		Short: "Tell why it is so: every policy on the paths, what each gave and lost, and to whom.",
		Long: `Tell why an effective policy is as it is: for each path every policy on it, from
the highest to the lowest, what each gave and lost, and to whom. Rules of lower
policies that take the force of an override's rule are named, too.

KIND/NAME is what effective takes: a route, a Gateway, a Service, a policy (the
paths that it is on), and so on. RULE narrows it to a rule by its key as it is shown, to the rules under a
prefix of keys, or to those of a name.`,
		Example: `  kubectl overrule explain -n app httproute/toystore
  kubectl overrule explain -n app authpolicy/toystore-auth rules.authentication.sso
  kubectl overrule explain -n infra gateway/edge --kind RateLimitPolicy`,
		Args: withUsage(objectArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	return cmd
}

func (a *app) explain(ctx context.Context, flags queryFlags, args []string) error {
	rule, err := parseRule(args)
	if err != nil {
		return err
	}
	q, err := a.query(ctx, flags, args)
	if err != nil {
		return err
	}
	items := []api.Explanation{}
	err = q.walk(ctx, func(e *effective.Effective) {
		if !q.matches(e) {
			return
		}
		if x, ok := e.Explain(rule); ok {
			items = append(items, x)
		}
	})
	switch {
	case err != nil:
		return err
	case len(items) == 0 && rule != nil:
		return fmt.Errorf("rule %s %w on the paths of %s", rule, errNotFound, q.objects[0].Ref())
	case len(items) == 0:
		a.infof("no policy is on any of the paths of %s", q.objects[0].Ref())
	}
	slices.SortFunc(items, effective.CompareExplanations)
	return a.printer().Explanations(items)
}
