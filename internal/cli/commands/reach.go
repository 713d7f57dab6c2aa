package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
)

func reachCommand(a *app) *cobra.Command {
	var q question
	var affecting bool
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
	}
	q.add(cmd, q.objectArgs(true, true), func(ctx context.Context) error { return showReaches(ctx, a, q, affecting) })
	cmd.Flags().BoolVar(&affecting, "affecting", false, "show the policies that affect the object")
	cmd.Flags().StringVar(&q.section, "section", "", "limit --affecting to a listener, rule or port of the object")
	return cmd
}

func showReaches(ctx context.Context, a *app, q question, affecting bool) error {
	q.parts = []api.ReviewPart{api.ReviewReaches}
	if q.section != "" && !affecting {
		return errors.New("invalid --section: requires --affecting")
	}
	x, err := a.ask(ctx, q)
	if err != nil {
		return err
	}
	objects := x.objects()
	switch policy := len(x.Reaches) > 0 && slices.Contains(objects, x.Reaches[0].Policy); {
	case policy && affecting:
		return fmt.Errorf("%s is a policy; omit --affecting to show where it has an effect", objects[0])
	case !policy && !affecting:
		return fmt.Errorf("%s is not a policy; use --affecting to show the policies that affect it", objects[0])
	}
	if x.Message != "" {
		a.infof("%s", x.Message)
	}
	return a.printer().Reaches(x.Reaches)
}
