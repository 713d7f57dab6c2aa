package commands

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/cliflag"
)

// app is one run of the command with its dependencies.
type app struct {
	reader
	// now returns the creation time of objects that a change creates.
	now func() time.Time
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-overrule",
		Short: "Show and check effective policies of Gateway API policy attachment",
		Long: `Show and check effective policies of Gateway API policy attachment: which rules are in
effect on each path from a gateway to a rule of a route, where they come from, and how
a change would alter them.

The commands read the cluster of the current kubeconfig. With -f (effective, graph, explain,
reach, outcome, violations, render, profiles, ui) or --against (check, diff) they read only
manifests.

Exit codes:
  0  success: the object was found, the change is allowed, there are no violations
  1  the object was not found, the change is denied, there are violations, nothing
     serves the request
  2  error: invalid input or usage, or the cluster cannot be read`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl overrule"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(a.In)
	cmd.SetOut(a.Out)
	cmd.SetErr(a.ErrOut)
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SuggestionsMinimumDistance = 2
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown := cmd.Flags().Args(); !cmd.HasParent() && len(unknown) > 0 { // whose flags are not known either
			return noCommand(cmd, unknown)
		}
		return fmt.Errorf("%w; see %s --help", cliflag.Error(err), cmd.CommandPath())
	})
	a.config = genericclioptions.NewConfigFlags(true)
	a.config.AddFlags(cmd.PersistentFlags())
	flags := cmd.PersistentFlags()
	cliflag.EnumVarP(flags, &a.output, "output", "o", printers.Table, printers.Formats, "output format: table, tree, json or yaml")
	cliflag.EnumVar(flags, &a.validate, "validate", "warn", validateModes, "what to do about fields of manifests that are not in the schema of their kind: strict (or true) to reject them, warn, or ignore (or false)")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "print to stderr what was read and what was ignored")
	cmd.AddCommand(
		effectiveCommand(a), graphCommand(a), explainCommand(a), reachCommand(a), outcomeCommand(a), uiCommand(a),
		checkCommand(a), diffCommand(a), violationsCommand(a), renderCommand(a), profilesCommand(a), build.Command("kubectl-overrule"),
	)
	for _, c := range cmd.Commands() {
		c.Args = withUsage(c.Args)
	}
	return cmd
}

// noCommand returns an error if there are arguments, the first of which is no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "; see " + cmd.CommandPath() + " --help"
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		hint = fmt.Sprintf(": did you mean %s?", strings.Join(meant, " or "))
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
}
