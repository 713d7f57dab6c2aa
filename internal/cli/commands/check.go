package commands

import (
	"context"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

func (a *app) checkCommand() *cobra.Command {
	var flags changeFlags
	var enforcement guard.Enforcement
	cmd := &cobra.Command{
		Use:   "check -f CHANGE... [--against PATH...]",
		Short: "Give the admission verdict on a change before it is made.",
		Long: `Give the verdict that the admission server would give on a change, before it is
made. Several objects are judged one after another in the order of the files, each
on top of those allowed before it.

An object that is there already is an UPDATE, any other a CREATE; with --delete each
is a DELETE. The exit code is 1 if anything is denied.

On a cluster the verdict is that on your own write, or on that of whom --as names:
the API server is asked whether you may remove overrides. With --against nobody may,
unless --may-override is given; --as then names the user for constraints that ask.`,
		Example: `  kubectl overrule check -f route-policy.yaml
  kubectl overrule check -f route-policy.yaml --against manifests/
  # what the deletion of a namespace would take out of force
  kubectl overrule check --delete -f namespace.yaml --blast-radius-limit 10`,
		Args: withUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context(), flags, enforcement) },
	}
	flags.add(cmd)
	flags.checkRights = true
	cliflag.EnumVar(cmd.Flags(), &enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "deny, or warn or audit to tell what would be denied and allow it")
	cmd.Flags().IntVar(&flags.blastRadius, "blast-radius-limit", 0, "the most paths of a kind that one change may change unacknowledged; 0 is no limit")
	return cmd
}

func (a *app) check(ctx context.Context, flags changeFlags, enforcement guard.Enforcement) error {
	verdicts := []api.Verdict{}
	denied := false
	err := a.evaluateChanges(ctx, flags, func(j *guard.Decision, _ []effective.Pair) bool {
		v := j.Verdict(enforcement)
		verdicts = append(verdicts, v)
		denied = denied || !v.Allowed
		return v.Allowed
	})
	if err != nil {
		return err
	}
	if err := a.printer().Verdicts(verdicts); err != nil {
		return err
	}
	if denied {
		return errDenied
	}
	return nil
}
