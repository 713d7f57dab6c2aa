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

// checkOptions are those of check.
type checkOptions struct {
	changeOptions
	enforcement guard.Enforcement
}

func checkCommand(a *app) *cobra.Command {
	o := checkOptions{changeOptions: changeOptions{app: a}}
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
	}
	o.add(cmd, reportFormats, o.check)
	o.out.addFailOn(cmd, "if a change is denied (deny), also if it returns a warning (warn), or never")
	o.checkRights = true
	cliflag.EnumVar(cmd.Flags(), &o.enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "what to do about findings that deny: deny, or warn or audit to allow the change and print what would be denied")
	cmd.Flags().IntVar(&o.blastRadius, "blast-radius-limit", 0, "deny a change that affects more paths of a policy kind than this without acknowledgement; 0 means no limit")
	cmd.Flags().IntVar(&o.maxMatches, "max-matches", guard.DefaultMatchLimit, "deny a route with which its namespace has more matches than this on one hostname of a Gateway, ListenerSet or Service, or ten times as many paths at one Gateway; 0 means no limit")
	return cmd
}

func (o *checkOptions) check(ctx context.Context, c *change) error {
	steps, shown, err := o.evaluateCheck(ctx, c)
	if err != nil {
		return err
	}
	verdicts := []api.Verdict{}
	for _, e := range steps {
		verdicts = append(verdicts, e.decision.Verdict(o.enforcement))
	}
	return o.writeVerdicts(verdicts, func(b *reportBuilder) {
		severity := report.Error
		if !o.enforcement.Denies() {
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
func (o *checkOptions) evaluateCheck(ctx context.Context, c *change) (steps, shown []evaluatedStep, err error) {
	if steps, err = o.evaluate(ctx, c, o.enforcement.Allows); err != nil {
		return nil, nil, err
	}
	denied := func(e evaluatedStep) bool { return !o.enforcement.Allows(e.decision) }
	if !o.out.showsChanges() || !slices.ContainsFunc(steps, denied) {
		return steps, steps, nil
	}
	quiet, _ := o.quietApp(nil)
	if shown, err = quiet.evaluate(ctx, c, allowsAll); err != nil {
		if o.redact {
			err = withoutDetails(err)
		}
		o.warnf("the report shows each denied object as if it were allowed alone: %v", err)
		shown = steps
	}
	return steps, shown, nil
}

// writeVerdicts writes the result of check, and returns errNegative if it fails. fill adds
// what a report has.
func (o *changeOptions) writeVerdicts(verdicts []api.Verdict, fill func(*reportBuilder)) error {
	denied, warned := false, false
	for i := range verdicts {
		v := &verdicts[i]
		denied = denied || !v.Allowed
		warned = warned || len(v.Reasons)+len(v.Warnings) > 0
		for j := range v.Warnings {
			v.Warnings[j].Repeats = v.Warnings[j].Repeats && o.out.failOn != failOnWarn // else why the command fails would not be shown
		}
	}
	show := func(p printers.Printer) error { return p.Verdicts(verdicts) }
	if err := o.out.write(&o.terminal, "check", show, fill); err != nil {
		return err
	}
	return o.out.failOn.result(denied, warned)
}
