package commands

import (
	"context"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/effective"
)

func (a *app) renderCommand() *cobra.Command {
	var flags queryFlags
	var format printers.Format
	cmd := &cobra.Command{
		Use:   "render [KIND/NAME]",
		Short: "Show what limits with triggers come to: the actions of gateways, and the limits of the service that counts.",
		Long: `Show what effective rate limit policies come to where their limits bind to rules of
routes: for each gateway the two documents of Kuadrant's RFC "RateLimitPolicy v2",
the actions of the gateway (gateway_actions) and the limits of the service that
counts (limits). Limits are those in force on each path, whichever policy they are
from, and only where they are bound to a rule.

KIND/NAME is what effective takes: a route, a Gateway, a policy, and so on. Shown is
what falls on its paths, which may be a part of a gateway's documents. Without it
everything is shown, with -n what goes through a namespace.

The output is documents: YAML, as in the RFC. With -o json or -o yaml it is one list.
What is left out, and why, is told on stderr: limits that are bound to no rule, and
those that are written in another way than the RFC's.`,
		Example: `  kubectl overrule render -n istio-system gateway/istio-ingressgateway
  kubectl overrule render -n toystore httproute/toystore
  kubectl overrule render -f manifests/ -o json`,
		Args: withUsage(optional(objectArgs(0))),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.render(cmd.Context(), flags, format, args)
		},
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	cliflag.EnumVarP(cmd.Flags(), &format, "output", "o", printers.Documents, printers.RenderedFormats, "how to show the result: documents, json or yaml")
	return cmd
}

// render shows the documents.
func (a *app) render(ctx context.Context, flags queryFlags, format printers.Format, args []string) error {
	q, err := a.query(ctx, flags, args)
	if err != nil {
		return err
	}
	found := newRenderedLimits()
	if err := q.walk(ctx, func(e *effective.Effective) {
		if q.matches(e) {
			found.add(e)
		}
	}); err != nil {
		return err
	}
	if err := a.reportOmitted(ctx, q, found); err != nil {
		return err
	}
	return printers.Printer{Out: a.Out, Format: format}.Rendered(found.items())
}
