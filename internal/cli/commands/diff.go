package commands

import (
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

func (a *app) diffCommand() *cobra.Command {
	var flags changeFlags
	cmd := &cobra.Command{
		Use:   "diff -f CHANGE... [--against PATH...]",
		Short: "Show how a change would alter effective policies",
		Long: `Show how a change would alter effective policies: for each path whose effective
policy differs, the rules before (-) and after (+) the change.

Objects are evaluated in the order of the files, each on top of those before it.
Nothing is denied (see check). The exit code is 0 whether or not anything differs.`,
		Example: `  # Show the effect of a policy on the cluster
  kubectl overrule diff -f gateway-policy.yaml

  # Show the effect of a policy on a directory of manifests
  kubectl overrule diff -f gateway-policy.yaml --against manifests/`,
		Args: withUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.diff(cmd.Context(), flags) },
	}
	flags.add(cmd)
	return cmd
}

func (a *app) diff(ctx context.Context, flags changeFlags) error {
	var items []api.Change
	var objects []printers.ChangedObject
	var cut []error
	err := a.evaluateChanges(ctx, flags, func(j *guard.Decision, pairs []effective.Pair) bool {
		ref, operation := objectAndOperation(j)
		objects = append(objects, printers.ChangedObject{Object: ref, Operation: operation})
		items = append(items, differences(ref, operation, pairs)...)
		for _, f := range j.Denials {
			if j.Cut && f.Code == api.ReasonTooMuch {
				cut = append(cut, fmt.Errorf("%s: %s", ref, f.Message()))
			}
		}
		return true
	})
	if unlisted, ok := errors.AsType[*unlistedError](err); ok {
		return a.diffByDryRun(ctx, unlisted, flags)
	}
	if err = errors.Join(append([]error{err}, cut...)...); err != nil {
		return err
	}
	return a.printer().Changes(items, objects)
}

// differences returns the effective policies that the change of one object
// alters, sorted by kind and path.
func differences(ref api.Ref, operation string, pairs []effective.Pair) []api.Change {
	var out []api.Change
	for _, p := range pairs {
		e := p.Effective()
		out = append(out, api.Change{
			Object: ref, Operation: operation,
			PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(), Rules: p.Rules(),
		})
	}
	slices.SortFunc(out, func(a, b api.Change) int {
		return effective.CompareItems(
			api.EffectivePolicy{PolicyKind: a.PolicyKind, Path: a.Path},
			api.EffectivePolicy{PolicyKind: b.PolicyKind, Path: b.Path},
		)
	})
	return out
}
