package commands

import (
	"context"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/effective"
)

func renderCommand(a *app) *cobra.Command {
	var q question
	var format printers.Format
	cmd := &cobra.Command{
		Use:   "render [KIND/NAME]",
		Short: "Render rate limits as gateway actions and limits of the rate limit service",
		Long: `Render the effective limits that are bound to rules of routes: for each gateway the
two documents of Kuadrant's RFC "RateLimitPolicy v2", the actions of the gateway
(gateway_actions) and the limits of the rate limit service (limits). They contain the
limits in effect on each path, from any policy, where they are bound to a rule.

KIND/NAME is an object as for effective: a route, a Gateway, a policy, and so on. Only
the limits on its paths are rendered, which may be a part of a gateway's documents.
Without it all paths are rendered, or with -n those through a namespace.

The default output is YAML documents as in the RFC; -o json and -o yaml print one list.
Limits that are omitted are listed on stderr with the reason: they are not bound to
any rule, or are not in the format of the RFC.`,
		Example: `  # Render the limits of a gateway
  kubectl overrule render -n istio-system gateway/istio-ingressgateway

  # Render the limits of a route
  kubectl overrule render -n toystore httproute/toystore

  # Render the limits of a directory of manifests as JSON
  kubectl overrule render -f manifests/ -o json`,
	}
	q.add(cmd, q.objectArgs(false, false), func(ctx context.Context) error { return renderLimits(ctx, a, q, format) })
	cliflag.EnumVarP(cmd.Flags(), &format, "output", "o", printers.Documents, printers.RenderedFormats, "output format: documents, json or yaml")
	return cmd
}

// renderLimits prints the rendered limits of a query.
func renderLimits(ctx context.Context, a *app, asked question, format printers.Format) error {
	q, err := a.query(ctx, asked)
	if err != nil {
		return err
	}
	found := newRenderedLimits()
	if err := q.Walk(ctx, func(e *effective.Effective) {
		if q.Matches(e) {
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
