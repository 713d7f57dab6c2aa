package commands

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
)

func explainCommand(a *app) *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME [RULE]",
		Short: "Explain which policies an effective policy is made of",
		Long: `Explain which policies an effective policy is made of: for each path every policy on
it, from the highest level to the lowest, with the rules that it contributes and those
that it loses to another policy. Rules of lower policies that weaken an override are
listed, too.

KIND/NAME is an object as for effective: a route, a Gateway, a Service, a policy (the
paths that it is on), and so on. RULE limits the output to one rule by its key, to the
rules under a prefix of keys, or to the rules of a name.

` + requestHelp + `

All rules that match the request are listed in the order of precedence, with what
decides that another rule precedes each.`,
		Example: `  # Explain all effective policies of a route
  kubectl overrule explain -n app httproute/toystore

  # Explain one rule of a policy
  kubectl overrule explain -n app authpolicy/toystore-auth rules.authentication.sso

  # Explain the effective policies of one kind on a gateway
  kubectl overrule explain -n infra gateway/edge --kind RateLimitPolicy

  # Explain which rule of which route serves a request, and which policies hold there
  kubectl overrule explain --request 'POST https://shop.example.com/cart' --gateway infra/edge`,
	}
	q.add(cmd, q.objectArgs(true, true), func(ctx context.Context) error { return showExplanations(ctx, a, q) })
	q.request.add(cmd)
	return cmd
}

func showExplanations(ctx context.Context, a *app, q question) error {
	q.parts = []api.ReviewPart{api.ReviewExplanations}
	x, err := a.ask(ctx, q)
	if err != nil {
		return err
	}
	x.note(&a.terminal, len(x.Explanations) > 0)
	if len(x.Explanations) == 0 && x.Message == "" && x.served() == nil {
		a.infof("no effective policies found for the request")
	}
	return cmp.Or(a.printer().Explanations(api.ExplanationList{Items: x.Explanations, Request: x.Request, Message: x.Message}), x.served())
}
