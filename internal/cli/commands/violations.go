package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

func (a *app) violationsCommand() *cobra.Command {
	var flags queryFlags
	cmd := &cobra.Command{
		Use:   "violations [KIND/NAME]",
		Short: "Show what is wrong with the effective policies as they are.",
		Long: `Show what is wrong with the effective policies as they are, however it came to be:
constraints that are violated, overrides that lower policies weaken, effective
policies that break the schema of their kind, limits that are bound to nothing, and
policies that break the schema of their kind by themselves or cannot be read, also
if they are on no path.

KIND/NAME is what effective takes (a route, a Gateway, a policy, and so on), or a
PolicyConstraint or ClusterPolicyConstraint, for what violates it. Without it all
paths are looked at, with -n those through a namespace.

The exit code is 1 if anything is wrong, whatever would be done about a write that
brought it about.`,
		Example: `  kubectl overrule violations
  kubectl overrule violations -n infra gateway/edge -o tree
  kubectl overrule violations clusterpolicyconstraint/authenticated
  kubectl overrule violations -f manifests/`,
		Args: withUsage(optional(objectArgs(0))),
		RunE: func(cmd *cobra.Command, args []string) error { return a.violations(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	return cmd
}

// errViolated tells that something is wrong; what it is, is on stdout.
var errViolations = errors.New("violated")

func (a *app) violations(ctx context.Context, flags queryFlags, args []string) error {
	of, args, err := parseConstraint(args)
	if err != nil {
		return err
	}
	q, err := a.query(ctx, flags, args)
	if err != nil {
		return err
	}
	found, err := q.violations(ctx, of)
	if err != nil {
		return err
	}
	found = a.warnUnchecked(found)
	a.warnInactiveConstraints(q.source)
	if err := a.printer().Violations(found); err != nil {
		return err
	}
	if len(found) > 0 {
		return errViolations
	}
	a.infof("nothing is wrong with the effective policies")
	return nil
}

// named is a constraint that was asked for.
type constraintRef struct {
	kind api.PolicyKind
	name string
}

// constraintOf takes a constraint off the arguments; nil if they name something
// else, or nothing.
func parseConstraint(args []string) (*constraintRef, []string, error) {
	if len(args) == 0 {
		return nil, args, nil
	}
	word, name, _, err := parseObject(args)
	if err != nil {
		return nil, nil, err
	}
	for _, kind := range []api.PolicyKind{constraint.Kind, constraint.ClusterKind} {
		if slices.Contains(kindAliases(kind, nil), strings.ToLower(word)) {
			return &constraintRef{kind, name}, nil, nil
		}
	}
	return nil, args, nil
}

// violations returns what is wrong on the paths that are asked for, or what
// violates a constraint.
func (q *query) violations(ctx context.Context, of *constraintRef) ([]api.Violation, error) {
	wanted, err := q.constraints(of)
	if err != nil {
		return nil, err
	}
	on, err := q.pathKeys(ctx, of != nil)
	if err != nil {
		return nil, err
	}
	g := &guard.Guard{Engine: q.engine, ShowValues: true} // its user has read them
	found, err := g.Audit(ctx, q.view, q.scope())
	if err != nil {
		return nil, fmt.Errorf("judge the effective policies: %w", err)
	}
	found = slices.DeleteFunc(found, func(v api.Violation) bool {
		return !on[pathKey(v.PolicyKind, v.Path)] || wanted != nil && (v.Policy == nil || !wanted[*v.Policy])
	})
	if of != nil {
		return found, nil
	}
	pathless, err := q.policiesWithoutPath(ctx)
	if err != nil {
		return nil, err
	}
	alone, err := g.AuditPathless(ctx, pathless)
	if err != nil {
		return nil, fmt.Errorf("check policies that are on no path: %w", err)
	}
	found = append(found, alone...)
	slices.SortStableFunc(found, guard.CompareViolations)
	return found, nil
}

// pathless returns the policies that are asked for and on no path.
func (q *query) policiesWithoutPath(ctx context.Context) ([]*policykind.Policy, error) {
	asked := q.namedPolicies()
	q.addTargeting(asked)
	policies := asked.sorted()
	outcomes, err := q.outcomes(ctx, policies)
	if err != nil {
		return nil, fmt.Errorf("find the policies that are on no path: %w", err)
	}
	onPath := make(map[api.Ref]bool)
	for _, o := range outcomes {
		onPath[o.Policy] = o.Paths.Total > 0
	}
	return slices.DeleteFunc(policies, func(p *policykind.Policy) bool { return onPath[p.Ref()] }), nil
}

// tellUnread takes out what could not be checked, which is no violation, and
// tells it.
func (a *app) warnUnchecked(found []api.Violation) []api.Violation {
	reported := make(map[string]bool)
	return slices.DeleteFunc(found, func(v api.Violation) bool {
		if v.Code != api.ReasonNotRead {
			return false
		}
		if !reported[v.Message] {
			a.warnf("%s", v.Message)
		}
		reported[v.Message] = true
		return true
	})
}

// paths returns the paths that are asked for, those without a policy included.
func (q *query) pathKeys(ctx context.Context, everywhere bool) (map[string]bool, error) {
	on := make(map[string]bool)
	scope := q.scope()
	scope.Empty = q.view.Constrained()
	budget := effective.NewBudget(ctx, math.MaxUint64)
	err := q.engine.Walk(q.view, scope, false, budget, func(e *effective.Effective) error {
		if q.matches(e) || everywhere && q.includesKind(e.Kind.Ref()) {
			on[pathKey(e.Kind.Ref(), e.Path.Elements())] = true
		}
		return nil
	})
	return on, err
}

// pathOf is the same for a path of a kind as the engine and the JSON have it.
func pathKey(kind api.PolicyKind, path []api.PathElement) string {
	text, err := json.Marshal([]any{kind, path})
	if err != nil {
		return err.Error() // texts and numbers can be written
	}
	return string(text)
}

// constraints returns the constraints of that name, where one is asked for.
func (q *query) constraints(of *constraintRef) (map[api.Ref]bool, error) {
	if of == nil {
		return nil, nil
	}
	out := make(map[api.Ref]bool)
	for o := range q.view.Objects(of.kind) {
		ref := o.Ref()
		if ref.Name == of.name && (ref.Namespace == "" || q.allNamespaces || ref.Namespace == q.namespace) {
			out[ref] = true
		}
	}
	if len(out) == 0 {
		ref := api.Ref{Kind: of.kind.Kind, Namespace: q.namespace, Name: of.name}
		if of.kind == constraint.ClusterKind {
			ref.Namespace = ""
		}
		return nil, fmt.Errorf("%s %w", ref, errNotFound)
	}
	return out, nil
}

// tellConstraints tells which constraints are not in force.
func (a *app) warnInactiveConstraints(s *source) {
	for _, kind := range []api.PolicyKind{constraint.ClusterKind, constraint.Kind} {
		for o := range s.view.Objects(kind) {
			c, ok := o.(*constraint.Constraint)
			switch {
			case !ok:
			case c.Invalid != nil:
				a.warnf("%s is not in force: %s", c.Ref(), strings.ReplaceAll(c.Invalid.Error(), "\n", "; "))
			case s.view.Kind(c.PolicyKind()) == nil || s.installed != nil && !s.installed[c.PolicyKind()]:
				a.warnf("%s is not in force: %s is not installed", c.Ref(), c.PolicyKind())
			}
		}
	}
}
