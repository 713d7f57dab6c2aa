package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

func diffCommand(a *app) *cobra.Command {
	o := changeOptions{app: a, out: reportFlags{failOn: failOnNever}} // it denies nothing
	cmd := &cobra.Command{
		Use:   "diff (-f CHANGE... [--against PATH...] | --from PATH... --to PATH...)",
		Short: "Show how a change would alter effective policies",
		Long: `Show how a change would alter effective policies: for each path whose effective
policy differs, the rules before (-) and after (+) the change.

Objects are evaluated in the order of the files, each on top of those before it.
Nothing is denied (see check). The exit code is 0 whether or not anything differs.

With --from and --to the change is the difference between two revisions of manifests,
and each path is shown once, as it was before the change and as it is after it.`,
		Example: `  # Show the effect of a policy on the cluster
  kubectl overrule diff -f gateway-policy.yaml

  # Show the effect of a policy on a directory of manifests
  kubectl overrule diff -f gateway-policy.yaml --against manifests/

  # Show the difference between two revisions, for a comment on a pull request
  kubectl overrule diff --from base/manifests --to head/manifests -o markdown`,
	}
	o.add(cmd, changeFormats, o.diff)
	return cmd
}

func (o *changeOptions) diff(ctx context.Context, c *change) error {
	steps, err := o.evaluate(ctx, c, allowsAll)
	if err != nil {
		return err
	}
	net := newNetChanges(steps)
	var items []api.Change
	var objects []api.Verdict
	var cut []error
	for _, e := range steps {
		o.warnSchemaFindings(e.decision)
		objects = append(objects, e.decision.Verdict(guard.EnforceDeny))
		items = append(items, e.differences()...)
		for _, f := range e.decision.Denials {
			if e.decision.Cut && f.Code == api.ReasonTooMuch {
				cut = append(cut, fmt.Errorf("%s: %s", e.decision.Change.Object().Ref(), f.Message()))
			}
		}
	}
	if err := errors.Join(cut...); err != nil {
		return err
	}
	if o.revisions.isSet() {
		items = net.items()
	}
	show := func(p printers.Printer) error { return p.Changes(items, objects) }
	return o.out.write(&o.terminal, "diff", show, func(b *reportBuilder) {
		b.addManifestFindings(steps)
		b.addChanges(net)
	})
}

// changeOf returns what a step does to a path, as the JSON contract shows it.
func (e *evaluatedStep) changeOf(p effective.Pair) api.Change {
	object, operation := e.objectAndOperation()
	on := p.Effective()
	lost, protection := guard.LostGroups(p)
	out := api.Change{
		Object: object, Operation: operation, PolicyKind: on.Kind.Ref(), Path: on.Path.Elements(),
		Rules: p.Rules(), Lost: lost, LostProtection: protection, Gained: guard.Gained(p), Unreached: p.Unreached,
	}
	for _, r := range out.Rules {
		for _, v := range []*api.RuleValue{r.Before, r.After} {
			if e.redacted && v != nil {
				v.Value, v.Redacted = nil, true
			}
		}
	}
	return out
}

// differences returns the effective policies that a step alters, sorted by kind and path.
func (e *evaluatedStep) differences() []api.Change {
	var out []api.Change
	for _, p := range e.pairs {
		out = append(out, e.changeOf(p))
	}
	slices.SortFunc(out, func(a, b api.Change) int {
		return cmp.Or(api.ComparePolicyKinds(a.PolicyKind, b.PolicyKind), api.ComparePaths(a.Path, b.Path))
	})
	return out
}
