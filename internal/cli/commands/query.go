package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/policykind"
)

// query is a query of a source.
type query struct {
	*source
	lookup.Query
	allNamespaces bool
}

// add has a command ask the question, whose arguments args reads: run answers it.
func (q *question) add(cmd *cobra.Command, args cobra.PositionalArgs, run func(context.Context) error) {
	cmd.Args, cmd.RunE = args, func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) }
	pathsFlag(cmd, &q.paths, "read these manifests instead of the cluster")
	cmd.Flags().BoolVarP(&q.allNamespaces, "all-namespaces", "A", false, "select objects in all namespaces")
	cmd.Flags().StringArrayVar(&q.kinds, "kind", nil, "show only policies of this kind, given as KIND or KIND.GROUP (repeatable)")
}

// query loads the source and finds what a question is about.
func (r *reader) query(ctx context.Context, x question) (*query, error) {
	if x.request.given {
		if _, err := x.request.Parse(); err != nil {
			return nil, err // before the cluster is read
		}
	}
	s, err := r.loadSource(ctx, x.paths)
	if err != nil {
		return nil, err
	}
	q, err := s.query(x)
	if err == nil && q.Namespace != "" {
		if hint := lookup.DidYouMean(q.Namespace, s.namespaces()); hint != "" {
			r.warnf("namespace %s %v%s", q.Namespace, errNotFound, hint)
		}
	}
	return q, err
}

// namespaces returns the namespaces of all objects, nil if that of -n is one of them.
func (s *source) namespaces() []string {
	var out []string
	for _, kind := range s.kinds.Objects() {
		for o := range s.view.Objects(kind) {
			ref := o.Ref()
			if kind == (api.PolicyKind{Kind: gateway.KindNamespace}) {
				ref.Namespace = ref.Name
			}
			if ref.Namespace == s.namespace {
				return nil
			}
			out = append(out, ref.Namespace)
		}
	}
	return out
}

// query finds what a question is about: the object that the arguments name, if any, or where a
// request goes.
func (s *source) query(x question) (*query, error) {
	q := &query{source: s, allNamespaces: x.allNamespaces, Query: lookup.Query{
		View: s.view, Engine: effective.NewEngine(), Rule: x.rule, Section: x.section, Parts: x.parts, MaxPaths: x.maxPaths,
	}}
	if !x.allNamespaces && s.namespaceSet {
		q.Namespace = s.namespace
	}
	for _, word := range x.kinds {
		k, err := s.policyKind(word)
		if err != nil {
			return nil, fmt.Errorf("invalid --kind: %w", err)
		}
		q.Kinds = append(q.Kinds, k.Ref())
	}
	var err error
	if x.name != "" {
		if q.Objects, err = s.find(x.kind, x.name, x.allNamespaces); err != nil {
			return nil, err
		}
	}
	for _, p := range q.NamedPolicies().Sorted() {
		if !q.IncludesKind(p.Kind.Ref()) {
			return nil, fmt.Errorf("%s is not of a kind given by --kind", p.Ref())
		}
	}
	if !x.request.given {
		return q, nil
	}
	parsed, err := x.request.Parse()
	if err != nil {
		return nil, err
	}
	q.Asked = &x.request.Request
	q.Asked.Namespace, q.Asked.Explain = s.namespace, slices.Contains(x.parts, api.ReviewExplanations)
	return q, s.checkRead(parsed, q.Asked.ClientNamespace != "")
}

// selectedKinds returns the kinds for which paths without a policy are shown:
// those of --kind, else those that are present.
func (q *query) selectedKinds() []*policykind.Kind {
	return slices.DeleteFunc(slices.Clone(q.view.Kinds()), func(k *policykind.Kind) bool {
		return !q.IncludesKind(k.Ref()) || len(q.Kinds) == 0 && !q.isPresent(k.Ref())
	})
}
