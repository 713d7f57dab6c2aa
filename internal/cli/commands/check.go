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
		Short: "Check whether a change would be admitted",
		Long: `Check whether the admission server would admit a change, without applying it.

Objects are evaluated in the order of the files, each on top of those allowed before
it. An object that exists is an UPDATE, any other a CREATE; with --delete each is a
DELETE. The exit code is 1 if any object is denied.

On a cluster the check runs with your own rights, or with those of --as: the API
server is asked whether you are allowed to remove overrides. With --against no one is
allowed to unless --may-override is set; --as then sets the user for constraints that
read request.userInfo.`,
		Example: `  # Check a policy against the cluster
  kubectl overrule check -f route-policy.yaml

  # Check a policy against a directory of manifests
  kubectl overrule check -f route-policy.yaml --against manifests/

  # Check which overrides the deletion of a namespace would remove
  kubectl overrule check --delete -f namespace.yaml --blast-radius-limit 10`,
		Args: withUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context(), flags, enforcement) },
	}
	flags.add(cmd)
	flags.checkRights = true
	cliflag.EnumVar(cmd.Flags(), &enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "what to do about findings that deny: deny, or warn or audit to allow the change and print what would be denied")
	cmd.Flags().IntVar(&flags.blastRadius, "blast-radius-limit", 0, "deny a change that affects more paths of a policy kind than this without acknowledgement; 0 means no limit")
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
		return a.checkByDryRun(ctx, err, flags)
	}
	if err := a.printer().Verdicts(verdicts); err != nil {
		return err
	}
	if denied {
		return errDenied
	}
	return nil
}
