package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/graph"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/gateway"
)

// The formats of pictures.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
	formatSVG     = "svg"
)

func graphCommand(a *app) *cobra.Command {
	var q question
	var format string
	cmd := &cobra.Command{
		Use:   "graph [KIND/NAME]",
		Short: "Draw effective policies",
		Long: `Draw effective policies: the targets as boxes, from the GatewayClass to the rule of a
route, the policies on them as notes, and what is in effect at the end. Rules without an
effect are struck through, with the policy that replaces them. A thick line is for
overrides, a thin one for defaults.

KIND/NAME is an object or a policy, as for kubectl overrule effective. Without it all
paths with a policy are drawn, or with -n those through a namespace.

Objects that differ in nothing but their names, such as routes with equal outcomes on
one Gateway, are drawn as one, with their number. If the picture is still too large to
read, or for GitHub to show, those with different outcomes are, too. The picture and a
line on stderr say so; name an object, or use -n or --kind, to see more.`,
		Example: `  # Draw what holds on a route, for a Markdown document
  kubectl overrule graph -n app httproute/toystore

  # Draw a directory of manifests as an image
  kubectl overrule graph -f manifests/ -o svg > policies.svg

  # Draw one kind of policies by Graphviz
  kubectl overrule graph -A --kind AuthPolicy -o dot | dot -Tpdf > policies.pdf`,
	}
	q.add(cmd, q.objectArgs(false, false), func(ctx context.Context) error { return drawGraph(ctx, a, q, format) })
	cliflag.EnumVarP(cmd.Flags(), &format, "output", "o", formatMermaid,
		[]string{formatMermaid, formatDOT, formatSVG}, "output format: mermaid, dot or svg")
	return cmd
}

func drawGraph(ctx context.Context, a *app, q question, format string) error {
	q.parts = graphParts
	x, err := a.ask(ctx, q)
	if err != nil {
		return err
	}
	b := graphOf(x.ReviewStatus)
	options := graph.Options{More: "Name an object, or use -n or --kind, to see more."}
	if format == formatMermaid {
		options.Fits = graph.FitsMermaid
	}
	g := b.Graph(options)
	if g.Paths == 0 || x.Message != "" {
		a.infof("%s", cmp.Or(x.Message, "no effective policies found"))
	}
	if g.Collapsed != "" {
		a.infof("%s", g.Collapsed)
	}
	var text string
	switch format {
	case formatDOT:
		text = g.DOT()
	case formatSVG:
		text = g.SVG(nil)
	default:
		text = g.Mermaid()
	}
	if _, err := io.WriteString(a.Out, text); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// graphParts are the parts of an answer that a picture is drawn from.
var graphParts = []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes, api.ReviewExplanations}

// graphOf returns the picture of an answer.
func graphOf(status *api.ReviewStatus) *graph.Builder {
	b := &graph.Builder{}
	for i := range min(len(status.Items), len(status.Explanations)) { // both have the same order
		b.Add(graphPath(status.Items[i], status.Explanations[i]))
	}
	for _, o := range status.Outcomes {
		if o.Paths.Total == 0 {
			b.AddPathless(o)
		}
	}
	return b
}

// graphPath returns a path of a picture from what an answer says about it. Its lists of
// policies have the same order.
func graphPath(item api.EffectivePolicy, x api.Explanation) graph.Path {
	p := graph.Path{Kind: item.PolicyKind, Elements: item.Path, Rules: item.Rules}
	for i, c := range x.Policies {
		p.Policies = append(p.Policies, graph.Policy{PolicyOnPath: item.Policies[i], At: elementIndex(item.Path, c.Target), Blocks: appliedBlocks(c)})
	}
	return p
}

// effectivePath returns a path of a picture.
func effectivePath(e *effective.Effective) graph.Path {
	x, _ := explain.Explain(e, nil)
	return graphPath(explain.Item(e), x)
}

// elementIndex returns the index of an element of a path, -1 for the whole mesh.
func elementIndex(path []api.PathElement, e api.PathElement) int {
	if e.Kind == gateway.KindMesh {
		return -1
	}
	for i, p := range slices.Backward(path) {
		if p.String() == e.String() {
			return i
		}
	}
	return -1
}

// appliedBlocks returns what the applied blocks of a policy acted as: defaults,
// overrides, or rules that are neither.
func appliedBlocks(c api.Contribution) []string {
	var as []string
	for _, b := range c.Blocks {
		switch {
		case !b.TookPart:
		case len(b.As) > 0:
			as = append(as, b.As...)
		default:
			as = append(as, b.Block)
		}
	}
	var out []string
	for _, b := range []struct{ block, drawn string }{{"defaults", graph.Defaults}, {"bare", graph.Neither}, {"overrides", graph.Overrides}} {
		if slices.Contains(as, b.block) {
			out = append(out, b.drawn)
		}
	}
	return out
}
