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
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// The formats of pictures.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
	formatSVG     = "svg"
)

func (a *app) graphCommand() *cobra.Command {
	var (
		flags  queryFlags
		format string
	)
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
		Args: withUsage(optional(objectArgs(0))),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.graph(cmd.Context(), flags, format, args)
		},
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	cliflag.EnumVarP(cmd.Flags(), &format, "output", "o", formatMermaid,
		[]string{formatMermaid, formatDOT, formatSVG}, "output format: mermaid, dot or svg")
	return cmd
}

func (a *app) graph(ctx context.Context, flags queryFlags, format string, args []string) error {
	b, message, err := a.graphOf(ctx, flags, args)
	if err != nil {
		return err
	}
	options := graph.Options{More: "Name an object, or use -n or --kind, to see more."}
	if format == formatMermaid {
		options.Fits = graph.FitsMermaid
	}
	g := b.Graph(options)
	if g.Paths == 0 {
		a.infof("%s", cmp.Or(message, "no effective policies found"))
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

// graphOf collects the paths of the named object, or of all. The message says why the
// object has none.
func (a *app) graphOf(ctx context.Context, flags queryFlags, args []string) (b *graph.Builder, message string, err error) {
	q, err := a.query(ctx, flags, args)
	if err != nil {
		return a.graphByReview(ctx, err, flags, args)
	}
	if b, err = q.graph(ctx); err != nil || !b.Empty() {
		return b, "", err
	}
	paths, err := q.Paths(ctx)
	if err != nil {
		return nil, "", err
	}
	message, err = paths.Message(ctx)
	return b, message, err
}

// graph collects the paths of the query, and its policies that are on none.
func (q *query) graph(ctx context.Context) (*graph.Builder, error) {
	b := &graph.Builder{}
	err := q.Walk(ctx, func(e *effective.Effective) {
		if q.Matches(e) {
			b.Add(graphPath(e))
		}
	})
	if err != nil {
		return nil, err
	}
	policies := q.NamedPolicies()
	q.AddTargeting(policies)
	outcomes, err := q.Outcomes(ctx, policies.Sorted())
	if err != nil {
		return nil, err
	}
	for _, o := range outcomes {
		if o.Paths.Total == 0 {
			b.AddPathless(o)
		}
	}
	return b, nil
}

func graphPath(e *effective.Effective) graph.Path {
	item := e.API()
	p := graph.Path{Kind: item.PolicyKind, Elements: item.Path, Rules: item.Rules}
	for i := range e.Outcomes {
		o := &e.Outcomes[i]
		p.Policies = append(p.Policies, graph.Policy{
			PolicyOnPath: item.Policies[i],
			At:           elementIndex(item.Path, e.Path.Element(e.Level(o.Policy))),
			Blocks:       appliedBlocks(o),
		})
	}
	return p
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

// appliedBlocks returns which blocks of a policy were applied: defaults, overrides, or
// rules that are neither.
func appliedBlocks(o *merge.Outcome) []string {
	var out []string
	if o.BlockApplied(merge.Defaults) {
		out = append(out, graph.Defaults)
	}
	if o.BlockApplied(merge.Bare) {
		out = append(out, graph.Neither)
	}
	if o.BlockApplied(merge.Overrides) {
		out = append(out, graph.Overrides)
	}
	return out
}
