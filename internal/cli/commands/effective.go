package commands

import (
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

// effectiveFlags are those of effective alone.
type effectiveFlags struct {
	queryFlags
	allPaths, withoutPolicy bool
}

func (a *app) effectiveCommand() *cobra.Command {
	var flags effectiveFlags
	cmd := &cobra.Command{
		Use:   "effective [KIND/NAME]",
		Short: "Show the effective policies of a route, a gateway, a policy's paths, or everything.",
		Long: `Show the effective policies: for each path, from a gateway to a route's rule say,
and each kind of policies, the rules that hold there and which policy each is from.
Where the kind's paths end, its profile says (kubectl overrule profiles).

KIND/NAME is a route, a Gateway, a GatewayClass, a ListenerSet, a Service or other
backend, a Namespace, a ReferenceGrant (the paths that hang on it) or a policy (the
paths that it is on). Without it everything is shown, with -n what goes through a
namespace. Below stands what became of the policies: of the one that is named, else
of all on the paths shown.

With --all-paths the paths without a policy are shown, too, for each policy kind
that could be attached there: the kinds that the cluster has, or that occur in the
manifests, and those of --kind. With --without these alone.`,
		Example: `  # what holds on a route
  kubectl overrule effective -n app httproute/toystore
  # what holds anywhere, as a tree, by manifests alone
  kubectl overrule effective -f manifests/ -o tree
  # which paths have no AuthPolicy
  kubectl overrule effective --kind AuthPolicy --without`,
		Args: withUsage(optional(objectArgs(0))),
		RunE: func(cmd *cobra.Command, args []string) error { return a.effective(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	cmd.Flags().BoolVar(&flags.allPaths, "all-paths", false, "show paths without a policy, too")
	cmd.Flags().BoolVar(&flags.withoutPolicy, "without", false, "show paths without a policy alone")
	return cmd
}

func (a *app) effective(ctx context.Context, flags effectiveFlags, args []string) error {
	q, err := a.query(ctx, flags.queryFlags, args)
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
		if len(items) == 0 {
			a.infof("every path has a policy, of each kind that could be there")
		}
		return a.printer().Effective(items, nil)
	}
	return a.showEffective(ctx, q, flags.allPaths)
}

var errWithout = errors.New("a policy is on no path without one: name a route, a gateway or nothing with --without")

// held shows the effective policies.
func (a *app) showEffective(ctx context.Context, q *query, allPaths bool) error {
	items, on, err := q.effective(ctx)
	if err != nil {
		return err
	}
	asked := q.namedPolicies()
	if len(asked) == 0 {
		q.addTargeting(on)
		asked = on
	}
	outcomes, err := q.outcomes(ctx, asked.sorted())
	if err != nil {
		return err
	}
	if len(items) == 0 {
		a.infof("no policy is on any of the paths")
	}
	if allPaths {
		more, err := q.pathsWithoutPolicy(ctx)
		if err != nil {
			return err
		}
		items = append(items, more...)
		slices.SortFunc(items, effective.CompareItems)
	}
	return a.printer().Effective(items, outcomes)
}

// effective returns the effective policies that are asked for, and the policies
// on these paths.
func (q *query) effective(ctx context.Context) ([]api.EffectivePolicy, policySet, error) {
	var items, others []api.EffectivePolicy
	on := make(policySet)
	err := q.walk(ctx, func(e *effective.Effective) {
		switch {
		case q.matches(e):
			items = append(items, e.API())
			for i := range e.Outcomes {
				on.add(q.view.Get(e.Ref(e.Outcomes[i].Policy)))
			}
		case len(e.Kind.Controls()) > 0:
			others = append(others, e.API()) // may want the same field of a route
		}
	})
	slices.SortFunc(items, effective.CompareItems)
	all := append(slices.Clip(items), others...)
	slices.SortFunc(all, effective.CompareItems)
	effective.ResolveConflicts(all, q.direct)
	return items, on, err
}

func (q *query) direct(ref api.PolicyKind) bool {
	k := q.view.Kind(ref)
	return k != nil && k.Class == api.Direct
}

// without returns the paths that have no policy of a kind that could be there.
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

// named returns the policies that are named.
func (q *query) namedPolicies() policySet {
	out := make(policySet)
	for _, o := range q.objects {
		out.add(o)
	}
	return out
}

// addTargeting adds the policies that belong to the answer although they may be
// on no path: those that target what is named; without a name all, or those of
// the namespace if one is given.
func (q *query) addTargeting(on policySet) {
	for _, o := range q.objects {
		for p := range q.view.On(o.Ref()) {
			if q.includesKind(p.Kind.Ref()) {
				on.add(p)
			}
		}
	}
	if len(q.objects) == 0 {
		q.addAll(on)
	}
}

// addAll adds all policies, or those of the namespace if one is given.
func (q *query) addAll(to policySet) {
	for _, k := range q.view.Kinds() {
		for p := range q.view.Policies(k.Ref()) {
			if q.includesKind(k.Ref()) && (q.allNamespaces || !q.namespaceSet || p.Namespace == q.namespace) {
				to.add(p)
			}
		}
	}
}
