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
		Short: "Show what a change does to effective policies.",
		Long: `Show what a change does to effective policies: for each path whose effective policy
would differ the rules before (-) and after (+). Several objects are looked at one
after another in the order of the files, each on top of those before it.

Nothing is denied here (see check): the exit code is 0 whatever differs.`,
		Example: `  kubectl overrule diff -f gateway-policy.yaml
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
	if err = errors.Join(append([]error{err}, cut...)...); err != nil {
		return err
	}
	return a.printer().Changes(items, objects)
}

// differences returns the changes of one object, by kind and path.
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
