package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/snapshot"
)

// app is one run of the command, with all that it takes from outside.
type app struct {
	genericiooptions.IOStreams
	// now is the time of creates that are judged.
	now func() time.Time
	// list reads the objects of a cluster.
	list func(context.Context, *rest.Config) (*snapshot.View, []cache.Problem, error)
	// listProfiles reads how a cluster's policy kinds are read.
	listProfiles func(context.Context, *rest.Config) ([]api.ProfileInForce, []cache.Problem, error)
	// listWritten reads the objects of a kind from a cluster as they are
	// written; nil means listFrom.
	listRaw func(context.Context, *rest.Config, api.PolicyKind) ([]map[string]any, error)
	// readDefinition reads a CustomResourceDefinition from a cluster by its name,
	// nil if there is none or it may not be read; nil means definitionFrom.
	getCRD func(context.Context, *rest.Config, string) (map[string]any, error)
	// whoAmI asks a cluster who its user is; nil means review.
	whoAmI func(context.Context, *rest.Config) (*authenticationv1.UserInfo, error)
	// color tells that stdout shows colours.
	color bool

	config  *genericclioptions.ConfigFlags
	output  printers.Format
	verbose bool
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-overrule",
		Short: "Effective policies of Gateway API policy attachment: what holds, why, and what a change would do.",
		Long: `Effective policies of Gateway API policy attachment: what holds on each path
from a gateway to a route's rule, why, and what a change would do to it.

The commands read the cluster of the current kubeconfig; with -f (effective,
explain, reach, outcome, violations, render, profiles) or --against (check, diff)
they read manifests alone.

Exit codes: 0 found or allowed, 1 not found or denied, or something is wrong
(violations), 2 unreadable input or wrong usage.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl overrule"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(a.In)
	cmd.SetOut(a.Out)
	cmd.SetErr(a.ErrOut)
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", cliflag.Error(err), cmd.CommandPath())
	})
	a.config = genericclioptions.NewConfigFlags(true)
	a.config.AddFlags(cmd.PersistentFlags())
	flags := cmd.PersistentFlags()
	cliflag.EnumVarP(flags, &a.output, "output", "o", printers.Table, printers.Formats, "how to show the result: table, tree, json or yaml")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "tell on stderr what was read and what was ignored")
	cmd.AddCommand(
		a.effectiveCommand(), a.explainCommand(), a.reachCommand(), a.outcomeCommand(),
		a.checkCommand(), a.diffCommand(), a.violationsCommand(), a.renderCommand(), a.profilesCommand(), build.Command("kubectl-overrule", withUsage(cobra.NoArgs)),
	)
	return cmd
}

// printer returns how results are written, as the flags say.
func (a *app) printer() printers.Printer {
	return printers.Printer{Out: a.Out, Format: a.output, Color: a.color}
}

// infof prints a line to stderr.
func (a *app) infof(format string, args ...any) {
	_, _ = fmt.Fprintf(a.ErrOut, format+"\n", args...) // a failed write to stderr cannot be reported
}

// warnf prints a warning to stderr.
func (a *app) warnf(format string, args ...any) { a.infof("warning: "+format, args...) }
