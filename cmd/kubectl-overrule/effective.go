package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

type outcome = merge.Outcome

func (a *app) effectiveCommand() *cobra.Command {
	var flags queryFlags
	var allPaths bool
	cmd := &cobra.Command{
		Use:   "effective [KIND/NAME]",
		Short: "Show the effective policies of a route, a gateway, a policy's paths, or everything.",
		Long: `Show the effective policies: for each path from a gateway to a route's rule, and
each kind of policies, the rules that hold there and which policy each is from.

KIND/NAME is a route, a Gateway, a GatewayClass or a policy (the paths that it is
on). Without it everything is shown, with -n what goes through a namespace. Below
stands what became of the policies: of the one that is named, else of all on the
paths shown.`,
		Example: `  kubectl overrule effective -n app httproute/toystore
  kubectl overrule effective -f manifests/ -o tree`,
		Args: usage(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return objectArgs(0)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.effective(cmd.Context(), flags, allPaths, args)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&allPaths, "all-paths", false, "show paths without a policy, too")
	return cmd
}

func (a *app) effective(ctx context.Context, flags queryFlags, allPaths bool, args []string) error {
	out, err := a.printer()
	if err != nil {
		return err
	}
	q, err := a.query(ctx, flags, args)
	if err != nil {
		return err
	}
	var items []api.EffectivePolicy
	asked, on := q.named(), make(policySet)
	err = q.walk(ctx, allPaths, func(e *effective.Effective) {
		items = append(items, e.API())
		for i := range e.Outcomes {
			on.add(q.view.Get(e.Ref(e.Outcomes[i].Policy)))
		}
	})
	if err != nil {
		return err
	}
	slices.SortFunc(items, effective.CompareItems)
	if len(asked) == 0 {
		q.addTargeting(on)
		asked = on
	}
	outcomes, err := q.outcomes(ctx, asked.sorted())
	if err != nil {
		return err
	}
	if len(items) == 0 {
		a.tell("no policy is on any of the paths")
	}
	return out.Effective(items, outcomes)
}

// policySet is a set of policies.
type policySet map[*policykind.Policy]bool

func (s policySet) add(o store.Object) {
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
func (q *query) named() policySet {
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
			on.add(p)
		}
	}
	if len(q.objects) > 0 {
		return
	}
	for _, k := range q.view.Kinds() {
		for p := range q.view.Policies(k.Ref()) {
			if q.everywhere || !q.given || p.Namespace == q.namespace {
				on.add(p)
			}
		}
	}
}
