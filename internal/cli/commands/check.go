package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/guard"
)

func (a *app) checkCommand() *cobra.Command {
	var flags changeFlags
	var out reportFlags
	var enforcement guard.Enforcement
	cmd := &cobra.Command{
		Use:        "check (-f CHANGE... [--against PATH...] | --from PATH... --to PATH...)",
		Short:      "Check whether a change would be admitted",
		SuggestFor: []string{"validate", "lint", "test"},
		Long: `Check whether the admission server would admit a change, without applying it.

Objects are evaluated in the order of the files, each on top of those allowed before
it. An object that exists is an UPDATE, any other a CREATE; with --delete each is a
DELETE. The exit code is 1 if any object is denied, see --fail-on.

With --from and --to the change is the difference between two revisions of manifests:
all that was added, changed and deleted, in the order in which GitOps tools apply it
(namespaces, CustomResourceDefinitions, Overrule's kinds, GatewayClasses, Gateways,
ReferenceGrants, routes, policies; deletions last). If the change is allowed in another
order only, that is a warning with the order.

On a cluster the check runs with your own rights, or with those of --as: the API
server is asked whether you are allowed to remove overrides. With --against or --from no
one is allowed to unless --may-override is set; --as then sets the user for constraints that
read request.userInfo.`,
		Example: `  # Check a policy against the cluster
  kubectl overrule check -f route-policy.yaml

  # Check a policy against a directory of manifests
  kubectl overrule check -f route-policy.yaml --against manifests/

  # Check the change from one revision to another, with a report for a scanner
  kubectl overrule check --from base/manifests --to head/manifests --output-file sarif=overrule.sarif

  # Check which overrides the deletion of a namespace would remove
  kubectl overrule check --delete -f namespace.yaml --blast-radius-limit 10`,
		Args: withUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context(), flags, out, enforcement) },
	}
	flags.add(cmd)
	a.addReportFlags(cmd, &out, reportFormats)
	out.addFailOn(cmd, "if a change is denied (deny), also if it returns a warning (warn), or never")
	flags.checkRights = true
	cliflag.EnumVar(cmd.Flags(), &enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "what to do about findings that deny: deny, or warn or audit to allow the change and print what would be denied")
	cmd.Flags().IntVar(&flags.blastRadius, "blast-radius-limit", 0, "deny a change that affects more paths of a policy kind than this without acknowledgement; 0 means no limit")
	cmd.Flags().IntVar(&flags.maxMatches, "max-matches", guard.DefaultMatchLimit, "deny a route with which its namespace has more matches than this on one hostname of a Gateway, ListenerSet or Service, or ten times as many paths at one Gateway; 0 means no limit")
	return cmd
}

func (a *app) check(ctx context.Context, flags changeFlags, out reportFlags, enforcement guard.Enforcement) error {
	c, err := a.readChange(ctx, flags)
	if err != nil {
		return a.checkOnCluster(ctx, err, c, out)
	}
	steps, shown, err := a.evaluateCheck(ctx, c, enforcement, out.showsChanges())
	if err != nil {
		return err
	}
	verdicts := []api.Verdict{}
	for _, e := range steps {
		verdicts = append(verdicts, e.decision.Verdict(enforcement))
	}
	return a.writeVerdicts(out, verdicts, func(b *reportBuilder) {
		severity := report.Error
		if !enforcement.Denies() {
			severity = report.Warning
		}
		for i, e := range steps {
			b.addVerdict(verdicts[i], severity, e.stored, e.old)
		}
		b.addChanges(newNetChanges(shown))
	})
}

// evaluateCheck evaluates a change. If changes of effective policies are shown, they are
// those as if it were allowed: shown are the steps for that.
func (a *app) evaluateCheck(ctx context.Context, c *change, enforcement guard.Enforcement, showsChanges bool) (steps, shown []evaluatedStep, err error) {
	if steps, err = a.evaluate(ctx, c, enforcement.Allows); err != nil {
		return nil, nil, err
	}
	denied := func(e evaluatedStep) bool { return !enforcement.Allows(e.decision) }
	if !showsChanges || !slices.ContainsFunc(steps, denied) {
		return steps, steps, nil
	}
	if shown, err = a.evaluateAsAllowed(ctx, c); err != nil {
		if a.redact {
			err = withoutDetails(err)
		}
		a.warnf("the report shows each denied object as if it were allowed alone: %v", err)
		shown = steps
	}
	return steps, shown, nil
}

// writeVerdicts writes the result of check, and returns errDenied if it fails. fill adds
// what a report has.
func (a *app) writeVerdicts(out reportFlags, verdicts []api.Verdict, fill func(*reportBuilder)) error {
	denied, warned := false, false
	for i := range verdicts {
		v := &verdicts[i]
		denied = denied || !v.Allowed
		warned = warned || len(v.Reasons)+len(v.Warnings) > 0
		for j := range v.Warnings {
			v.Warnings[j].Repeats = v.Warnings[j].Repeats && out.failOn != failOnWarn // else why the command fails would not be shown
		}
	}
	show := func(p printers.Printer) error { return p.Verdicts(verdicts) }
	if err := a.writeResult("check", &out, show, fill); err != nil {
		return err
	}
	if out.failOn.fails(denied, warned) {
		return errDenied
	}
	return nil
}
