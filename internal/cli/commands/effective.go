package commands

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/lookup"
)

// effectiveFlags are the flags of the effective command.
type effectiveFlags struct {
	queryFlags
	request                 requestFlags
	allPaths, withoutPolicy bool
}

func (a *app) effectiveCommand() *cobra.Command {
	var flags effectiveFlags
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
		Args: withUsage(flags.request.args(optional(objectArgs(0)))),
		RunE: func(cmd *cobra.Command, args []string) error { return a.effective(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	flags.request.add(cmd)
	cmd.Flags().BoolVar(&flags.allPaths, "all-paths", false, "also show paths without a policy")
	cmd.Flags().BoolVar(&flags.withoutPolicy, "without", false, "show only paths without a policy")
	return cmd
}

func (a *app) effective(ctx context.Context, flags effectiveFlags, args []string) error {
	q, err := a.queryRequest(ctx, flags.queryFlags, &flags.request, args, false)
	if err != nil {
		return a.effectiveByReview(ctx, err, flags, args)
	}
	if flags.withoutPolicy {
		if len(q.NamedPolicies()) > 0 {
			return errWithout
		}
		items, err := q.WithoutPolicy(ctx, q.selectedKinds())
		if err != nil {
			return err
		}
		if len(items) == 0 && q.Request.Err() == nil {
			a.infof("no paths without a policy found")
		}
		return cmp.Or(a.printer().Effective(api.EffectivePolicyList{Items: items, Request: q.Request.API()}), q.Request.Err())
	}
	return a.showEffective(ctx, q, flags.allPaths)
}

var errWithout = errors.New("invalid --without: must not be used with a policy; name another object or none")

// showEffective prints the effective policies of the query.
func (a *app) showEffective(ctx context.Context, q *query, allPaths bool) error {
	paths, err := q.Paths(ctx)
	if err != nil {
		return err
	}
	items, onPaths := paths.Effective(lookup.Limit{}), paths.Policies
	policies := q.NamedPolicies()
	if len(policies) == 0 {
		q.AddTargeting(onPaths)
		policies = onPaths
	}
	outcomes, err := q.Outcomes(ctx, policies.Sorted())
	if err != nil {
		return err
	}
	if len(items) > 0 {
		a.warnControllers(q.view)
	}
	list := api.EffectivePolicyList{Outcomes: outcomes, Request: q.Request.API()}
	switch {
	case len(items) > 0 || len(outcomes) > 0 || q.Request.Err() != nil:
	case len(q.Objects) == 0 || q.Request != nil:
		a.infof("no effective policies found")
	default:
		if list.Message, err = paths.Message(ctx); err != nil {
			return err
		}
	}
	if allPaths {
		more, err := q.WithoutPolicy(ctx, q.selectedKinds())
		if err != nil {
			return err
		}
		items = append(slices.DeleteFunc(items, func(e api.EffectivePolicy) bool { return e.NotRead != "" && len(e.Policies) == 0 }), more...)
		slices.SortFunc(items, effective.CompareItems)
	}
	list.Items = items
	return cmp.Or(a.printer().Effective(list), q.Request.Err())
}
