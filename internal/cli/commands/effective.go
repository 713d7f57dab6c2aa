package commands

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/explain"
)

func effectiveCommand(a *app) *cobra.Command {
	var q question
	var allPaths, withoutPolicy bool
	cmd := &cobra.Command{
		Use:   "effective [KIND/NAME]",
		Short: "Show effective policies",
		Long: `Show effective policies: for each path, such as from a gateway to a rule of a route,
and each policy kind, the rules in effect and the policy that each comes from. The
profile of a kind sets the level at which its paths end (see kubectl overrule
profiles).

KIND/NAME is a route, a Gateway, a GatewayClass, a ListenerSet, a Service or other
backend, a Namespace, a ReferenceGrant (the paths that depend on it) or a policy (the
paths that it is on). Without it all paths are shown, or with -n those through a
namespace. The outcome of the named policy, or of all policies on the paths shown,
follows below.

--all-paths also shows paths without a policy, for each policy kind that can be
attached there: the kinds that are installed on the cluster or occur in the manifests,
and those of --kind. --without shows only these paths.

` + requestHelp,
		Example: `  # Show the effective policies of a route
  kubectl overrule effective -n app httproute/toystore

  # Show the effective policies of a directory of manifests as a tree
  kubectl overrule effective -f manifests/ -o tree

  # Show the paths that have no AuthPolicy
  kubectl overrule effective --kind AuthPolicy --without

  # Show what holds for a request
  kubectl overrule effective --request 'GET https://shop.example.com/cart?x=1' -H 'X-Team: a'

  # Show what holds for a connection to a gateway
  kubectl overrule effective --request tcp://:5432 --gateway infra/edge

  # Show what holds for a request from a pod in namespace web to a Service in the mesh
  kubectl overrule effective --request http://cart.shop/items --client-namespace web`,
	}
	q.add(cmd, q.objectArgs(false, false), func(ctx context.Context) error { return showEffective(ctx, a, q, allPaths, withoutPolicy) })
	q.request.add(cmd)
	cmd.Flags().BoolVar(&allPaths, "all-paths", false, "also show paths without a policy")
	cmd.Flags().BoolVar(&withoutPolicy, "without", false, "show only paths without a policy")
	return cmd
}

func showEffective(ctx context.Context, a *app, q question, allPaths, withoutPolicy bool) error {
	if !withoutPolicy {
		q.parts = []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes}
	}
	x, err := a.ask(ctx, q)
	if err != nil {
		return err
	}
	if withoutPolicy && x.query != nil && len(x.query.NamedPolicies()) > 0 {
		return errors.New("invalid --without: must not be used with a policy; name another object or none")
	}
	list := api.EffectivePolicyList{Items: x.Items, Outcomes: x.Outcomes, Request: x.Request}
	found := len(x.Items) > 0
	if allPaths || withoutPolicy {
		if list.Items, err = x.withPathsWithoutPolicy(ctx); err != nil {
			return err
		}
	}
	x.note(&a.terminal, found)
	switch {
	case x.served() != nil:
	case withoutPolicy:
		if len(list.Items) == 0 {
			a.infof("no paths without a policy found")
		}
	case found:
		list.Message = x.Message
	case len(x.Outcomes) > 0:
	case x.Message == "":
		a.infof("no effective policies found")
	default:
		list.Message = x.Message
	}
	return cmp.Or(a.printer().Effective(list), x.served())
}

// withPathsWithoutPolicy returns the items of the answer and the paths without a policy,
// sorted.
func (x *answer) withPathsWithoutPolicy(ctx context.Context) ([]api.EffectivePolicy, error) {
	if x.review != nil {
		return nil, errors.New("invalid --all-paths or --without: requires the right to list the cluster")
	}
	more, err := x.query.WithoutPolicy(ctx, x.query.selectedKinds())
	items := append(slices.DeleteFunc(x.Items, func(e api.EffectivePolicy) bool { return e.NotRead != "" && len(e.Policies) == 0 }), more...)
	slices.SortFunc(items, explain.CompareItems)
	return items, err
}
