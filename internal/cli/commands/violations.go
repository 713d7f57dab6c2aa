package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

func violationsCommand(a *app) *cobra.Command {
	var asked question
	var out reportFlags
	cmd := &cobra.Command{
		Use:        "violations [KIND/NAME]",
		SuggestFor: []string{"validate", "lint"},
		Short:      "Show violations in existing policies",
		Long: `Show violations in existing policies: constraints that are violated, overrides that
lower policies weaken, effective policies that do not match the schema of their kind,
limits that are not bound to any rule, and policies, on a path or not, that do not
match the schema of their kind or cannot be read.

KIND/NAME is an object as for effective (a route, a Gateway, a policy, and so on), or a
PolicyConstraint or ClusterPolicyConstraint whose violations are shown. Without it all
paths are checked, or with -n those through a namespace.

The exit code is 1 if there are violations that would deny a write that introduces them.
With --fail-on=warn it is also 1 for those that would only return a warning.`,
		Example: `  # Show all violations on the cluster
  kubectl overrule violations

  # Show the violations on the paths of a gateway as a tree
  kubectl overrule violations -n infra gateway/edge -o tree

  # Show the violations of a constraint
  kubectl overrule violations clusterpolicyconstraint/authenticated

  # Show the violations in a directory of manifests
  kubectl overrule violations -f manifests/

  # Write a report for a scanner beside the table
  kubectl overrule violations -f manifests/ --output-file sarif=overrule.sarif`,
	}
	asked.add(cmd, asked.objectArgs(false, false), func(ctx context.Context) error { return showViolations(ctx, a, asked, out) })
	out.add(cmd, &a.redact, reportFormats)
	out.addFailOn(cmd, "if there are violations that deny a write (deny), also if one returns a warning (warn), or never")
	return cmd
}

func showViolations(ctx context.Context, a *app, asked question, out reportFlags) error {
	kind, name := asked.constraint(), asked.name
	if a.reportsProblems = kind == nil; kind != nil {
		asked.name = ""
	}
	q, err := a.query(ctx, asked)
	if err != nil {
		return err
	}
	found, err := q.violations(ctx, kind, name)
	if err != nil {
		return err
	}
	found = a.warnUnchecked(found)
	a.warnInactiveConstraints(q.source)
	if a.redact {
		redactViolations(found)
	}
	show := func(p printers.Printer) error { return p.Violations(found) }
	if err := out.write(&a.terminal, "violations", show, func(b *reportBuilder) { b.addViolations(q, found) }); err != nil {
		return err
	}
	has := func(action api.Action) bool {
		return slices.ContainsFunc(found, func(v api.Violation) bool { return v.Action == action })
	}
	if len(found) == 0 {
		a.infof("no violations found")
	}
	return out.failOn.result(has(api.Deny), has(api.Warn))
}

// constraint returns the kind of the constraint that the question names, nil if it names another
// object or none.
func (q *question) constraint() *api.PolicyKind {
	for _, kind := range []api.PolicyKind{constraint.Kind, constraint.ClusterKind} {
		if slices.Contains(kindAliases(kind, nil), strings.ToLower(q.kind)) {
			return &kind
		}
	}
	return nil
}

// violations returns the violations on the paths of the query, or those of the constraints of a
// kind and name, nil for none.
func (q *query) violations(ctx context.Context, kind *api.PolicyKind, name string) ([]api.Violation, error) {
	constraints := make(map[api.Ref]bool)
	if kind != nil {
		named, err := q.named(*kind, name, nil, q.allNamespaces)
		if err != nil {
			return nil, err
		}
		for _, o := range named {
			constraints[o.Ref()] = true
		}
	}
	g := &guard.Guard{Engine: q.Engine, ReadsAll: true}
	onPaths := make(map[api.Ref]bool)
	found, err := g.ViolationsOn(ctx, q.view, q.Scope(), func(e *effective.Effective) bool {
		for i := range e.Outcomes {
			onPaths[e.Ref(e.Outcomes[i].Policy)] = true
		}
		return q.Matches(e) || kind != nil && q.IncludesKind(e.Kind.Ref())
	})
	if err != nil {
		return nil, fmt.Errorf("evaluate the effective policies: %w", err)
	}
	if kind != nil {
		return slices.DeleteFunc(found, func(v api.Violation) bool { return v.Policy == nil || !constraints[*v.Policy] }), nil
	}
	selected := q.NamedPolicies()
	q.AddTargeting(selected)
	pathless := slices.DeleteFunc(selected.Sorted(), func(p *policykind.Policy) bool { return onPaths[p.Ref()] })
	more, err := g.ViolationsWithoutPath(ctx, q.view, pathless)
	if err != nil {
		return nil, fmt.Errorf("evaluate the policies that are not on any path: %w", err)
	}
	found = append(found, more...)
	found = append(found, q.schemaViolations(found)...)
	slices.SortStableFunc(found, guard.CompareViolations)
	return found, nil
}

// warnUnchecked removes the findings about objects that could not be checked,
// which are no violations, and prints each message once as a warning.
func (t *terminal) warnUnchecked(found []api.Violation) []api.Violation {
	return slices.DeleteFunc(found, func(v api.Violation) bool {
		if v.Code == api.ReasonNotRead {
			t.warnOnce(v.Message)
		}
		return v.Code == api.ReasonNotRead
	})
}

// warnInactiveConstraints prints which constraints are not in effect, and why.
func (t *terminal) warnInactiveConstraints(s *source) {
	for _, kind := range []api.PolicyKind{constraint.ClusterKind, constraint.Kind} {
		for o := range s.view.Objects(kind) {
			c, ok := o.(*constraint.Constraint)
			switch {
			case !ok:
			case c.Invalid != nil:
				t.warnf("%s is not in effect: %s", c.Ref(), strings.ReplaceAll(c.Invalid.Error(), "\n", "; "))
			case s.view.Kind(c.PolicyKind()) == nil || s.installed != nil && !s.installed[c.PolicyKind()]:
				t.warnf("%s is not in effect: %s is not installed", c.Ref(), c.PolicyKind())
			}
		}
	}
}
