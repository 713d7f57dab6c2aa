package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// reachFlags are the flags of the reach command.
type reachFlags struct {
	queryFlags
	affecting bool
	section   string
}

func (a *app) reachCommand() *cobra.Command {
	var flags reachFlags
	cmd := &cobra.Command{
		Use:   "reach KIND/NAME [RULE]",
		Short: "Show where a policy has an effect, or which policies affect an object",
		Long: `Show where a policy has an effect: the gateways, listeners, services, routes and
backends on whose paths a rule of it is in effect. RULE limits the output to one rule
by its key, to the rules under a prefix of keys, or to the rules of a name.

With --affecting, KIND/NAME is an object: a Gateway, a ListenerSet, a route, a Service
or other backend; --section names a listener, a rule or a port of it. The output lists
the policies of which a rule is in effect on a path through the object, and where on
these paths it is. Values that the route itself sets are not listed.

The exit code is 0 even if the policy has no effect anywhere.`,
		Example: `  # Show where a policy has an effect
  kubectl overrule reach -n infra authpolicy/gw-auth

  # Show where one rule of a policy has an effect
  kubectl overrule reach -n infra authpolicy/gw-auth rules.authentication.sso

  # Show the policies that affect a rule of a route
  kubectl overrule reach -n app --affecting httproute/toystore --section toys`,
		Args: withUsage(objectArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reach(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	cmd.Flags().BoolVar(&flags.affecting, "affecting", false, "show the policies that affect the object")
	cmd.Flags().StringVar(&flags.section, "section", "", "limit --affecting to a listener, rule or port of the object")
	return cmd
}

func (a *app) reach(ctx context.Context, flags reachFlags, args []string) error {
	rule, err := parseRule(args)
	if err != nil {
		return err
	}
	if flags.section != "" && !flags.affecting {
		return errSection
	}
	q, err := a.query(ctx, flags.queryFlags, args)
	if err != nil {
		return a.reachByReview(ctx, err, flags, args, rule)
	}
	items, messages, err := q.reach(ctx, flags, rule)
	if err != nil {
		return err
	}
	for _, m := range messages {
		a.infof("%s", m)
	}
	return a.printer().Reaches(items)
}

// reach returns where the named policies have an effect, or with --affecting which
// policies affect the object, and messages about those that have none.
func (q *query) reach(ctx context.Context, flags reachFlags, rule *merge.Name) ([]api.Reach, []string, error) {
	if !flags.affecting {
		return q.Reach(ctx, rule)
	}
	items, message, err := q.Affecting(ctx, flags.section, rule)
	if message == "" {
		return items, nil, err
	}
	return items, []string{message}, err
}

var errSection = errors.New("invalid --section: requires --affecting")
