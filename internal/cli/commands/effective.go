package commands

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

type outcome = merge.Outcome

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
		return err
	}
	if flags.withoutPolicy {
		if len(q.namedPolicies()) > 0 {
			return errWithout
		}
		items, err := q.pathsWithoutPolicy(ctx)
		if err != nil {
			return err
		}
		if len(items) == 0 && q.request.err() == nil {
			a.infof("no paths without a policy found")
		}
		return cmp.Or(a.printer().EffectiveFor(q.request.api(), items, nil), q.request.err())
	}
	return a.showEffective(ctx, q, flags.allPaths)
}

var errWithout = errors.New("invalid --without: must not be used with a policy; name another object or none")

// showEffective prints the effective policies of the query.
func (a *app) showEffective(ctx context.Context, q *query, allPaths bool) error {
	items, onPaths, err := q.effective(ctx)
	if err != nil {
		return err
	}
	policies := q.namedPolicies()
	if len(policies) == 0 {
		q.addTargeting(onPaths)
		policies = onPaths
	}
	outcomes, err := q.outcomes(ctx, policies.sorted())
	if err != nil {
		return err
	}
	if len(items) == 0 && q.request.err() == nil {
		a.infof("no effective policies found")
	}
	if allPaths {
		more, err := q.pathsWithoutPolicy(ctx)
		if err != nil {
			return err
		}
		items = append(items, more...)
		slices.SortFunc(items, effective.CompareItems)
	}
	return cmp.Or(a.printer().EffectiveFor(q.request.api(), items, outcomes), q.request.err())
}

// effective returns the effective policies of the query, sorted, and the policies
// on their paths.
func (q *query) effective(ctx context.Context) ([]api.EffectivePolicy, policySet, error) {
	var items, others []api.EffectivePolicy
	onPaths := make(policySet)
	err := q.walk(ctx, func(e *effective.Effective) {
		switch {
		case q.matches(e):
			items = append(items, e.API())
			for i := range e.Outcomes {
				onPaths.add(q.view.Get(e.Ref(e.Outcomes[i].Policy)))
			}
		case len(e.Kind.Controls()) > 0:
			others = append(others, e.API()) // may control the same field of a route
		}
	})
	slices.SortFunc(items, effective.CompareItems)
	all := append(slices.Clip(items), others...)
	slices.SortFunc(all, effective.CompareItems)
	effective.ResolveConflicts(all, q.direct)
	return items, onPaths, err
}

func (q *query) direct(ref api.PolicyKind) bool {
	k := q.view.Kind(ref)
	return k != nil && k.Class == api.Direct
}

// pathsWithoutPolicy returns the paths that have no policy of a kind that can be
// attached there.
func (q *query) pathsWithoutPolicy(ctx context.Context) ([]api.EffectivePolicy, error) {
	var items []api.EffectivePolicy
	err := q.walkView(ctx, q.view.WithKinds(q.selectedKinds()), true, func(e *effective.Effective) {
		if len(e.Outcomes) == 0 && q.matches(e) && attachable(e) {
			items = append(items, e.API())
		}
	})
	slices.SortFunc(items, effective.CompareItems)
	return items, err
}

// policySet is a set of policies.
type policySet map[*policykind.Policy]bool

func (s policySet) add(o snapshot.Object) {
	if p, ok := o.(*policykind.Policy); ok {
		s[p] = true
	}
}

func (s policySet) sorted() []*policykind.Policy {
	out := make([]*policykind.Policy, 0, len(s))
	for p := range s {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *policykind.Policy) int { return api.CompareRefs(a.Ref(), b.Ref()) })
	return out
}

// namedPolicies returns the policies that the arguments name.
func (q *query) namedPolicies() policySet {
	out := make(policySet)
	for _, o := range q.objects {
		out.add(o)
	}
	return out
}

// addTargeting adds the policies that belong to the result although they may be
// on no path: those that target a named object, or without one all policies (of
// the namespace, with -n). For a request there are none.
func (q *query) addTargeting(to policySet) {
	for _, o := range q.objects {
		for p := range q.view.On(o.Ref()) {
			if q.includesKind(p.Kind.Ref()) {
				to.add(p)
			}
		}
	}
	if len(q.objects) == 0 && q.request == nil {
		q.addAll(to)
	}
}

// addAll adds all policies, or with -n those of the namespace.
func (q *query) addAll(to policySet) {
	for _, k := range q.view.Kinds() {
		for p := range q.view.Policies(k.Ref()) {
			if q.includesKind(k.Ref()) && (q.allNamespaces || !q.namespaceSet || p.Namespace == q.namespace) {
				to.add(p)
			}
		}
	}
}
